"""Every edge answers as the oracle, in both layouts and variants."""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api.contract import Variant
from tests.questions import sites
from tests.questions.checker import check
from tests.questions.maker import CANARIES
from tests.questions.oracle import Setting
from tests.questions.served import served
from tests.support.edges.cases import Case
from tests.support.edges.cloudflare import node
from tests.support.edges.cloudfront import distribution
from tests.support.edges.edge_sites import EDGES, edge_site
from tests.support.readers import lists
from tests.support.sites.builds import NO_LIMITS, files, make_config
from tests.support.stores.s3.server import S3Server

_SETTINGS: Final[Mapping[str, Any]] = {"categories": "a,weather", "questions__enabled": "true"}
#: nginx and `serve` also answer from pages; the others cut them.
CASES: Final = tuple(
    (edge, layout, variant)
    for edge, layout, variant in product(EDGES, ("pages", "chunks"), ("core", "extended"))
    if layout == "chunks" or edge in ("nginx", "serve")
)


def below(path: str) -> str:
    """The path with its query of an address in full, or of none."""
    return path.partition("://")[2].partition("/")[2].join(("/", "")) if "://" in path else path


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("edge", "layout", "variant"), CASES)
def test_an_edge_answers_as_the_oracle(edge: str, layout: str, variant: str, tmp_path: Path) -> None:
    is_large = (edge, layout, variant) == ("nginx", "chunks", "extended")
    fill, limit = (sites.troubled, 7) if is_large else (sites.small, 2)
    served(tmp_path, fill, variant=variant, layout=layout, **_SETTINGS)
    made = files(tmp_path / "output")
    with edge_site(edge, layout, variant=variant, rate_limit__requests="1000000", **_SETTINGS) as running:
        for key, body in made.items():
            lists.write(running.output / key, body)
        running.upload(made)

        def get(path: str) -> tuple[int, Mapping[str, str], bytes]:
            found = running.client.send("GET", below(path))
            # nginx compresses what is long enough, and closes a connection after so many requests.
            told = found.headers.keys() - {"connection", "vary"}
            return found.status, {name: found.headers[name] for name in told}, found.body

        found = check(get, tmp_path / "markets.db", Setting(variant), limits=((limit,),), canaries=CANARIES)
    assert found.differences == []
    assert found.definitions == (77 if is_large else 2)


@pytest.fixture
def store() -> Iterator[S3Server]:
    node("@aws-sdk/client-s3")
    with S3Server() as server:
        yield server


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("layout", "variant"), [*product(("pages", "chunks"), ("core", "extended"))])
def test_what_cloudfront_makes_of_requests_is_as_the_oracle(
    layout: str, variant: Variant, store: S3Server, tmp_path: Path
) -> None:
    """Its functions are given all requests at once: those that the checker makes of the same site elsewhere."""
    settings = {**_SETTINGS, "variant": variant, "layout": layout}
    elsewhere, asked = served(tmp_path, sites.small, **settings), dict[str, Case]()
    database, setting = tmp_path / "markets.db", Setting(variant)

    def noted(path: str) -> tuple[int, Mapping[str, str], bytes]:
        target, _, query = below(path).partition("?")
        asked[path] = Case("GET", target, query, 200, None, (), frozenset(), core_only=False, variant=variant)
        return elsewhere(path)

    check(noted, database, setting, limits=((2,),))
    config = make_config(tmp_path, **NO_LIMITS, **settings)
    edge = distribution(config, config.output, tmp_path, store if layout == "chunks" else None)
    answers = dict(zip(asked, edge.answers([*asked.values()], "njs", "raw"), strict=True))

    def get(path: str) -> tuple[int, Mapping[str, str], bytes]:
        found = answers[path]
        return found.status, found.headers, found.body

    found = check(get, database, setting, limits=((2,),), canaries=CANARIES)
    assert found.differences == []
    assert found.definitions == 2
