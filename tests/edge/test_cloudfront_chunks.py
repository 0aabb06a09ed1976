"""CloudFront in the layout `chunks`: its function on requests to the origin, run by Node, reads a real S3 server."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, cursors, keys
from generator.api.contract import Variant
from generator.edge.compaction import compact
from generator.search import generation as index
from generator.tree import chunks, pages
from generator.tree.generation import ItemList
from tests.support.edges.cases import asking, is_error, mismatches, requests
from tests.support.edges.cloudflare import node
from tests.support.edges.cloudfront import CHUNKED, CloudFront, distribution
from tests.support.edges.edge_sites import target
from tests.support.edges.servers import Answer
from tests.support.edges.windows import made_up
from tests.support.readers import lists, search
from tests.support.readers.search import Market
from tests.support.readers.search_cases import CASES, MARKETS
from tests.support.sites.builds import VARIANTS, Outputs
from tests.support.stores.s3.behaviour import CUT_SHORT, Fault
from tests.support.stores.s3.server import S3Server
from tests.support.stores.s3.wire import Request


@pytest.fixture
def store() -> Iterator[S3Server]:
    node("@aws-sdk/client-s3")
    with S3Server() as server:
        yield server


def put(store: S3Server, key: str, body: bytes) -> None:
    store.bucket.put(key, body, {})


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
    generation, output = pages.PagedList(old), tmp_path / "output"
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
    made = chunks.ChunkedList(new)
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


# ── limits and failures ───────────────────────────────────────────────────────────────────────────────────────────────


#: A part of it grows when an answer is written as JSON.
LONG: Final = "ü" * 8_000 + '"' * 1_000
LATER: Final = keys.immutable_control(SEARCHED)


@pytest.fixture
def edge(store: S3Server, tmp_path: Path) -> CloudFront:
    put(store, keys.BUILD, b"{}")
    return distribution(SEARCHED, tmp_path / "output", tmp_path, store)


def put_all(store: S3Server, markets: list[Market]) -> list[bytes]:
    """Publish the markets and their index; returns the items of `all/new`."""
    found, made = search.generation(markets, "chunks")
    for key, body in (*found.objects(), *found.first_pages()):
        put(store, key, body)
    for one in made:
        assert isinstance(one, chunks.ChunkedList)
        for key, body in (*one.objects(), (keys.head(one.list_name), one.head())):
            put(store, key, body)
    return [search.item(number, market) for number, market in reversed([*enumerate(markets)])]


def items(answer: Answer) -> list[bytes]:
    return search.items_of([{"body": answer.body.decode()}])


# ── size ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_that_is_too_large_for_cloudfront_is_short_and_leads_on(edge: CloudFront, store: S3Server) -> None:
    published = put_all(store, [Market((f"needle {number} {LONG}",), rank=number) for number in range(100)])
    queries = [f"status=all&sort=new&limit=100{words}" for words in ("", "&q=needle")]
    firsts = search_pages(edge, *queries)
    cursors = [json.loads(answer.body)["nextCursor"] for answer in firsts]
    seconds = search_pages(edge, *(f"{query}&cursor={cursor}" for query, cursor in zip(queries, cursors, strict=True)))
    for first, second in zip(firsts, seconds, strict=True):
        assert (first.headers["cache-control"], second.headers["cache-control"]) == (keys.MUTABLE, LATER)
        shown = items(first) + items(second)
        assert shown == published[: len(shown)]
        assert len(items(first)) >= 25
        assert json.loads(second.body)["nextCursor"] is None or len(items(second)) >= 25
    # However often a page is made, every object is read once: head; index and two chunks; and those of the searches.
    assert store.count("GetObject") <= 1 + 3 + 2 * index.MOST_OBJECTS


def test_a_search_begins_anew_with_the_index_that_replaces_its_own(edge: CloudFront, store: S3Server) -> None:
    put_all(store, [Market(("needle",)), Market(("hay",))])

    def replace_index(request: Request) -> None:
        if f"/{keys.CHUNKS}/" in request.key:
            store.before = None
            for key in [key for key in store.objects() if keys.SEARCH in key]:
                store.bucket.delete(key)
            put_all(store, [Market(("a needle",))])

    store.before = replace_index
    (found,) = search_pages(edge, "status=all&q=needle")
    assert items(found) == [search.item(0, Market(("a needle",)))]


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_bucket_that_fails_is_a_503(edge: CloudFront, store: S3Server) -> None:
    put_all(store, [Market((f"needle {number}",)) for number in range(3)])
    faults = {
        "all/new": Fault(500, "InternalError"),
        "all/volume": Fault(403, "AccessDenied"),
        "all/ended": CUT_SHORT,
        "all/search/chunks": Fault(403, "AccessDenied"),
    }

    def fail(request: Request) -> Fault | None:
        return next((fault for name, fault in faults.items() if f"/{name}/" in request.key), None)

    store.before = fail
    asked = [f"status=all&sort={sort}" for sort in ("new", "volume", "ended")]
    found = search_pages(edge, *asked, "status=all&q=needle")
    assert [is_error(answer, 503, SEARCHED) for answer in found] == [True] * 4
    store.before = None
    assert search_pages(edge, "status=all&q=needle")[0].status == HTTPStatus.OK


def test_a_bucket_that_is_slow_is_a_503_before_lambda_ends_the_function(edge: CloudFront, store: S3Server) -> None:
    store.before = lambda _: time.sleep(1)
    patient, hasty = compact("8000, new Error").strip(), compact("100, new Error").strip()
    assert patient in edge.origin_request
    hasty_edge = replace(edge, origin_request=edge.origin_request.replace(patient, hasty))
    assert is_error(search_pages(hasty_edge, "status=all&q=needle")[0], 503, SEARCHED)


def test_an_empty_bucket_is_a_503_and_one_without_an_index_a_400(edge: CloudFront, store: S3Server) -> None:
    generation = chunks.ChunkedList(ItemList("all/new", [contract.encode({"id": "1"})])).name
    cursor = f"0123456789{generation.replace('c', 's', 1)}20"
    asked = ("q=needle", f"q=needle&cursor={cursor}")
    missing = search_pages(edge, *asked)
    sentences = [json.loads(answer.body)["details"][0]["message"] for answer in missing]
    assert sentences == [contract.SEARCH_ERRORS["q.absent"], contract.SEARCH_ERRORS["cursor.gone"]]
    store.bucket.delete(keys.BUILD)
    assert [is_error(answer, 503, SEARCHED) for answer in search_pages(edge, *asked)] == [True, True]
