"""Pages that edges cut out of chunks: every edge that can read objects, asked over HTTP."""

import gzip
import random
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from itertools import cycle, product, repeat
from typing import TypeVar

import pytest

from generator.api import contract, cursors, keys
from generator.edge import responses
from generator.tree import borders, chunks
from tests.support.campaigns import full_tier, rounds
from tests.support.edges.cases import is_error
from tests.support.edges.edge_sites import EDGES, EdgeSite, edge_site
from tests.support.edges.servers import Answer
from tests.support.edges.windows import LISTS, damaged_chunks, damaged_heads, damaged_indexes, made_up, refused, walk
from tests.support.waiting import wait_until


@pytest.fixture(scope="module", params=full_tier(EDGES, short=["nginx", "worker"]))
def edge(request: pytest.FixtureRequest) -> Iterator[EdgeSite]:
    """An edge of a site in the layout `chunks`, which has all LISTS."""
    with edge_site(request.param, "chunks") as running:
        running.put(*LISTS.values())
        yield running


@pytest.fixture(scope="module")
def generations() -> dict[str, str]:
    return {name: chunks.ChunkedList(one).name for name, one in LISTS.items()}


_T = TypeVar("_T")


def some(edge: EdgeSite, cases: Iterable[_T], short: int) -> list[_T]:
    """All cases; for the Worker, whose requests take ten times as long as others, so many, twice in the full tier."""
    found, dice = [*cases], random.Random(1)  # noqa: S311 - no secret
    return dice.sample(found, min(len(found), rounds(short, 2 * short))) if edge.edge == "worker" else found


# ── walks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_a_reader_may_change_the_limit_at_every_request_and_gets_as_many_items(edge: EdgeSite) -> None:
    """Or have one limit for all of them."""
    dice = random.Random(1)  # noqa: S311 - no secret
    walked = walk(edge, LISTS["archive/popular"], repeat(1))
    assert walked == len(LISTS["archive/popular"].items)
    for one in some(edge, LISTS.values(), 6):
        random_ones = repeat(iter(lambda: dice.randint(1, 100), 0), 3)
        for limits in (repeat(7), repeat(99), cycle([20, 100]), cycle([100, 7, 1, 33]), *random_ones):
            walked += walk(edge, one, limits)
    assert walked > 150


# ── where there is nothing ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
def test_a_place_at_or_behind_the_end_is_no_place(edge: EdgeSite, generations: dict[str, str]) -> None:
    for name, one in LISTS.items():
        count = len(one.items)
        for position in (max(1, count), count + 1, count + 100, 999_999_999):
            place = cursors.mint(name, generations[name], position)
            assert refused(edge.ask(name, 20, place)) == ("cursor.gone",), (name, position)


def test_a_generation_that_was_taken_down_is_gone_and_so_is_what_lacks_a_chunk(edge: EdgeSite) -> None:
    one = made_up("closed/volume", 550, "takedown")
    generation = edge.put(one)[one.name]
    made, (_, first, second, *_) = chunks.ChunkedList(one), borders.of(one.items)
    wholly = cursors.mint(one.name, generation, second)
    across = cursors.mint(one.name, generation, first - 10)
    assert {edge.ask(one.name, 50, place).status for place in (wholly, across)} == {HTTPStatus.OK}
    edge.change(keys.chunk(one.name, made.chunks[1]), None)

    def is_gone(limit: int, place: str) -> bool:
        answer = edge.ask(one.name, limit, place)
        return answer.status != HTTPStatus.OK and refused(answer) == ("cursor.gone",)

    wait_until(lambda: is_gone(50, across))
    assert is_gone(100, across)
    assert edge.ask(one.name, 50, wholly).status == HTTPStatus.OK
    edge.change(keys.index(one.name, generation), None)
    wait_until(lambda: is_gone(50, wholly))
    assert edge.ask(one.name, 100).status == HTTPStatus.OK, "the head is another object"


def damaged(edge: EdgeSite) -> Iterator[Answer]:
    """The answer for each damaged object, none of which was read before."""
    names = [f"cancelled/{sort}" for sort in ("activity", "volume", "ended")]
    names += [f"archive/{sort}" for sort in ("activity", "new")] + ["resolved/activity", "resolved/ended"]
    for number, name in enumerate(names):
        one = made_up(name, 250, "damage")
        edge.put(one)
        edge.change(keys.head(name), damaged_heads(chunks.ChunkedList(one))[number])
        yield edge.ask(name, 100)
    for number in range(14):
        one = made_up("archive/volume", 250, f"damage {number}")
        edge.put(one)
        made = chunks.ChunkedList(one)
        if number < 8:
            edge.change(keys.index(one.name, made.name), damaged_indexes(made)[number])
        else:
            edge.change(keys.chunk(one.name, made.chunks[1]), damaged_chunks(made)[number - 8])
        yield edge.ask(one.name, 100, cursors.mint(one.name, made.name, 150))


@pytest.mark.campaign(short=1)
def test_no_damaged_object_becomes_a_page(edge: EdgeSite) -> None:
    found = [*damaged(edge)]
    assert len(found) == 21
    for number, answer in enumerate(found):
        assert is_error(answer, 503), (number, answer)


# ── what a page has beside its bytes ──────────────────────────────────────────────────────────────────────────────


def test_every_page_has_an_etag_of_its_own_by_which_it_is_not_sent_again(
    edge: EdgeSite, generations: dict[str, str]
) -> None:
    tags = set()
    places = [None, *(cursors.mint("all/new", generations["all/new"], position) for position in (30, 31))]
    for at, limit in product(places, (20, 21)):
        first = edge.ask("all/new", limit, at)
        tags.add(first.headers["etag"].removeprefix("W/"))
        for known in (first.headers["etag"], f'"other", W/{first.headers["etag"].removeprefix("W/")}', "*"):
            again = edge.ask("all/new", limit, at, If_None_Match=known)
            assert (again.status, again.body) == (HTTPStatus.NOT_MODIFIED, b"")
            assert again.headers.get("content-length", "") != "0", "that would say that the page is empty"
            assert responses.COMMON.items() <= again.headers.items()
            assert {again.headers[name] == first.headers[name] for name in ("etag", "cache-control")} == {True}
        for other in ('"other"', first.headers["etag"].replace("-", "+"), ""):
            assert edge.ask("all/new", limit, at, If_None_Match=other).body == first.body
    assert len(tags) == 6


def test_pages_are_compressed_for_those_who_ask(edge: EdgeSite, generations: dict[str, str]) -> None:
    if edge.edge == "worker":
        assert "no-transform" not in edge.ask("all/new", 20).headers["cache-control"], "Cloudflare's network compresses"
        return
    for at in (None, cursors.mint("all/new", generations["all/new"], 30)):
        plain, packed = edge.ask("all/new", 20, at), edge.ask("all/new", 20, at, Accept_Encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body
        assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
        again = edge.ask("all/new", 20, at, Accept_Encoding="gzip", If_None_Match=packed.headers["etag"])
        assert again.status == HTTPStatus.NOT_MODIFIED


@pytest.mark.parametrize("path", ["/-/objects/v1/build.json", "/-/objects/", "/-/objects/../v1/build.json"])
def test_readers_reach_no_object_by_its_key(edge: EdgeSite, path: str) -> None:
    answer = edge.client.send("GET", path)
    assert (answer.status, answer.body) == (404, contract.encode(contract.FIXED_ERRORS[404]))
