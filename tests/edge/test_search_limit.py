"""The limit on searches, on every edge: of the requests that a reader may make, few may be searches."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import deployment, responses
from tests.support.edges.cloudflare import serving, write
from tests.support.edges.empty_nginx import ask, empty_nginx
from tests.support.edges.in_process import Local, render
from tests.support.edges.servers import Answer
from tests.support.sites.builds import make_config

MARKETS: Final = f"/{keys.MARKETS}"
SEARCHES: Final = 2
#: Of a window that lasts longer than a test.
SETTINGS: Final[Mapping[str, Any]] = {
    "variant": "extended",
    "rate_limit__searches": SEARCHES,
    "rate_limit__requests": 1_000,
    "rate_limit__window": "1 h",
}
#: Searches in all spellings, malformed ones included, and requests that look like them.
SPELLINGS: Final = ("?q=a", "?%71=a", "?limit=5&q=a", "?q=", "?q", "?q=a&q=b", "?q=%ff", "?&=&q=a&", "?a?&q#=&%71")
OTHERS: Final = ("", "?Q=a", "?xq=a", "?a?q=a", "?+q=a", "?%2571=a", "?limit=5", "/snapshot?q=a", "/?q=a", "?q#=a")


def is_refused(answer: Answer) -> bool:
    """Whether the answer is a 429; it has all that the contract says."""
    if answer.status != 429:
        return False
    assert answer.body in (contract.encode(contract.FIXED_ERRORS[429]), b"")
    assert answer.headers["content-type"] == keys.CONTENT_TYPE
    assert int(answer.headers["retry-after"]) in (60, 3600)
    assert responses.COMMON.items() <= answer.headers.items()
    return True


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("name", "layout"), [("nginx.conf", "pages"), ("nginx.conf", "chunks"), ("bucket.conf", "pages")]
)
def test_nginx_grants_few_searches_in_whatever_spelling_and_many_other_requests(name: str, layout: str) -> None:
    with empty_nginx(name, layout=layout, rate_limit__trusted_proxies="127.0.0.1", **SETTINGS) as port:
        for number, query in enumerate(SPELLINGS):
            reader = f"192.0.2.{number}"
            found = [is_refused(ask(port, MARKETS + query, forwarded=reader)) for _ in range(SEARCHES + 2)]
            # nginx grants one more.
            assert found == [False] * (SEARCHES + 1) + [True], query
            for other in OTHERS:
                assert not is_refused(ask(port, MARKETS + other, forwarded=reader)), other
        assert [is_refused(ask(port, f"{MARKETS}{query}", forwarded="198.51.100.1")) for query in SPELLINGS[:4]] == [
            *[False] * (SEARCHES + 1),
            True,
        ]
        assert is_refused(ask(port, f"{MARKETS}?q=a", method="HEAD", forwarded="198.51.100.1"))
        assert not is_refused(ask(port, f"{MARKETS}?q=a", method="OPTIONS", forwarded="198.51.100.1"))


@pytest.fixture
def local(tmp_path: Path) -> Local:
    config = make_config(tmp_path, **SETTINGS)
    render(config)
    return Local(config)


def test_serve_grants_few_searches_in_whatever_spelling_and_many_other_requests(local: Local) -> None:
    for number, query in enumerate(SPELLINGS):
        reader = f"192.0.2.{number}"
        found = [is_refused(local.ask(MARKETS + query, peer=reader)) for _ in range(SEARCHES + 1)]
        assert found == [False] * SEARCHES + [True], query
        assert not any(is_refused(local.ask(MARKETS + other, peer=reader)) for other in OTHERS)
    assert is_refused(local.ask(f"{MARKETS}?q=a", "HEAD", "192.0.2.0"))
    assert not is_refused(local.ask(f"{MARKETS}?q=a", "OPTIONS", "192.0.2.0"))


def test_a_worker_grants_few_searches_and_many_other_requests(tmp_path: Path) -> None:
    settings = make_config(tmp_path, **{**SETTINGS, "rate_limit__window": "60 s"})
    with serving(write(settings, tmp_path), tmp_path) as site:
        for number, query in enumerate(("?q=a", "?limit=5&%71")):
            reader = f"192.0.2.{number}"
            found = [is_refused(site.ask(MARKETS + query, cf_connecting_ip=reader)) for _ in range(2 * SEARCHES + 1)]
            assert found[:SEARCHES] == [False] * SEARCHES
            # Twice the limit passes if a period ends meanwhile.
            assert any(found[SEARCHES:])
            # workerd drops the fragment.
            others = [other for other in OTHERS if "#" not in other]
            assert not any(is_refused(site.ask(MARKETS + other, cf_connecting_ip=reader)) for other in others)


#: What each edge's files say where there is a limit on searches.
SIGNS: Final = {
    "nginx/nginx.conf": "_searches", "nginx/server.conf": "_searches", "nginx/http.conf": "_searches",
    "cloudflare/worker.js": "SEARCH_LIMITER", "cloudflare/wrangler.jsonc": "SEARCH_LIMITER",
    "cloudfront/template.yaml": "SearchLimit",
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "without"),
    [
        ({"variant": "extended", "layout": "chunks"}, set()),
        ({"variant": "extended", "layout": "pages"}, {"cloudfront/template.yaml"}),
        ({"variant": "extended", "layout": "chunks", "search": "off"}, {*SIGNS}),
        ({"layout": "chunks"}, {*SIGNS}),
    ],
)
def test_there_is_a_limit_on_searches_where_there_is_search(settings: dict[str, str], without: set[str]) -> None:
    files = {file.name: file.text for file in deployment.render(Config.model_validate(settings))}
    assert {name for name, sign in SIGNS.items() if sign not in files[f"edge/{name}"]} == without
    if without == {*SIGNS}:
        assert not [
            name for name, text in files.items() if re.search("isSearch|_search(er|es)?\\b|SEARCH_L|Search", text)
        ]
