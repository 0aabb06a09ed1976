"""CloudFront in the layout `chunks`: its function on requests to the origin, run by Node, reads a real S3 server."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import pytest

from generator.api import cursors, keys
from generator.api.contract import Variant
from generator.config.settings import Publish
from generator.tree import chunks, pages
from tests.support.edges.cases import asking, mismatches, requests
from tests.support.edges.cloudflare import node
from tests.support.edges.cloudfront import CHUNKED, CloudFront, distribution
from tests.support.edges.edge_sites import target
from tests.support.edges.servers import Answer
from tests.support.edges.windows import made_up
from tests.support.readers import lists, search
from tests.support.readers.search import Market
from tests.support.readers.search_cases import CASES, MARKETS
from tests.support.sites.builds import VARIANTS, Outputs
from tests.support.stores.s3.bucket import Conditions
from tests.support.stores.s3.server import S3Server

IN_BUCKET = CHUNKED.model_copy(update={"publish": Publish(target="s3://markets/read api/ü")})


@pytest.fixture
def store() -> Iterator[S3Server]:
    node("@aws-sdk/client-s3")
    with S3Server() as server:
        yield server


def put(store: S3Server, key: str, body: bytes) -> None:
    store.bucket.put(key, body, {}, Conditions())


def ask(edge: CloudFront, *asked: tuple[str, int, str | None]) -> list[Answer]:
    """The answers to requests for pages: list, limit, cursor."""
    queries = (target(*one).partition("?")[2] for one in asked)
    return edge.answers([asking(query) for query in queries], "node", "raw")


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_case_of_the_table(variant: Variant, store: S3Server, outputs: Outputs, tmp_path: Path) -> None:
    output = outputs(variant, "chunks")
    edge = distribution(CHUNKED.model_copy(update={"variant": variant}), output, tmp_path, store)
    cases = requests(output)
    assert mismatches(cases, edge.answers(cases, "njs", "raw"), output) == []
    assert store.count("GetObject") > 200


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pages_of_the_other_layout_pass_and_a_site_may_move(store: S3Server, tmp_path: Path) -> None:
    old, new = (made_up("all/new", 150, seed) for seed in ("old", "new"))
    generation, output = pages.Generation(old), tmp_path / "output"
    later = keys.page(old.name, generation.name, 20, 20)
    folder = next(one for one in generation.folders() if one.name == "20-0")
    lists.write(output / later, dict(folder.pages)[20])
    lists.write(output / keys.first_page(old.name, 20), generation.first(20))
    edge = distribution(CHUNKED, output, tmp_path, store)
    first = (old.name, 20, None)
    walked = (old.name, 20, cursors.mint(old.name, generation.name, 20))
    assert [answer.body for answer in ask(edge, first, walked)] == [
        lists.page(old, generation.name, position, 20) for position in (0, 20)
    ]
    made = chunks.Generation(new)
    put(store, keys.head(new.name), made.head())
    assert [answer.body for answer in ask(edge, first, walked)] == [
        lists.page(new, made.name, 0, 20),
        lists.page(old, generation.name, 20, 20),
    ]


# ── searches ──────────────────────────────────────────────────────────────────────────────────────────────────────

SEARCHED = CHUNKED.model_copy(update={"variant": "extended", "search": "title"})


def search_pages(edge: CloudFront, *queries: str) -> list[Answer]:
    """The answers to requests with these queries."""
    return edge.answers([*map(asking, queries)], "njs", "raw")


def searched(store: S3Server, markets: Sequence[Market], folder: Path) -> CloudFront:
    """A distribution of a site with these markets, which can be searched."""
    output = folder / "output"
    for key, body in search.objects(markets, "chunks").items():
        lists.write(output / key, body.encode())
    return distribution(SEARCHED, output, folder, store)


@pytest.mark.campaign(short=0)
def test_searches_are_answered_behind_the_function_and_go_on_when_the_site_is_republished(
    store: S3Server, tmp_path: Path
) -> None:
    edge = searched(store, MARKETS, tmp_path)
    first = search_pages(edge, *(case.target() for case in CASES))
    again = []
    for case, answer in zip(CASES, first, strict=True):
        assert answer.status == HTTPStatus.OK, case
        shown, cursor = search.items_of([{"body": answer.body.decode()}]), json.loads(answer.body)["nextCursor"]
        assert shown == case.items(MARKETS)[: case.limit], case
        assert (cursor is None) == (len(case.items(MARKETS)) <= case.limit), case
        if cursor:
            again.append((case, case.target(cursor)))
    # Half of the titles are others, and all places.
    edge = searched(store, [replace(market, rank=100 - market.rank) for market in MARKETS[65:]], tmp_path)
    for (case, _), answer in zip(again, search_pages(edge, *(query for _, query in again)), strict=True):
        shown = search.items_of([{"body": answer.body.decode()}])
        assert shown == case.items(MARKETS)[case.limit : 2 * case.limit], case
