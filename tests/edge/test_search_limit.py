"""The limits on every edge: on requests, and on searches, which only few of them may be."""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import deployment, responses
from tests.support.edges.cases import is_error
from tests.support.edges.cloudflare import serving, write
from tests.support.edges.edge_sites import edge_site
from tests.support.edges.empty_nginx import ask, empty_nginx
from tests.support.edges.in_process import Local, render
from tests.support.edges.servers import Answer
from tests.support.sites.builds import make_config
from tests.support.waiting import wait_until

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


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("name", ["cached-nginx", "serve", "worker"])
def test_a_burst_gets_429_until_it_has_waited_and_a_polite_reader_never(name: str) -> None:
    limit, seconds = 5, 10
    rate = {"rate_limit__requests": str(limit), "rate_limit__window": f"{seconds} s"}
    with edge_site(name, "pages", **rate, rate_limit__trusted_proxies="127.0.0.1") as edge:

        def ask(reader: str) -> Answer:
            return edge.client.send("GET", f"/{keys.BUILD}", X_Forwarded_For=reader, CF_Connecting_IP=reader)

        burst = [ask("192.0.2.1") for _ in range(4 * limit)]
        refused = [answer for answer in burst if answer.status != 200]
        assert {answer.status for answer in burst[:limit]} == {200}
        # Twice the limit passes if a window ends meanwhile.
        assert len(refused) >= 2 * limit
        assert all(is_error(answer, 429, retry_after=str(seconds)) for answer in refused)
        for _ in range(2):  # a full window's worth at once, as often as the window allows
            assert {ask("2001:db8::1").status for _ in range(limit)} == {200}
            time.sleep(seconds)
        wait_until(lambda: ask("192.0.2.1").status == 200)


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


@pytest.mark.parametrize("settings", [{"variant": "extended", "layout": "chunks", "search": "off"}, {}])
def test_there_is_no_limit_on_searches_where_there_is_no_search(settings: dict[str, str]) -> None:
    texts = [file.text for file in deployment.render(Config.model_validate(settings))]
    assert not [text for text in texts if re.search("isSearch|_search(er|es)?\\b|SEARCH_L|Search", text)]
