"""Pages that edges cut out of chunks: every edge that can read objects, asked over HTTP."""

import gzip
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from itertools import cycle, islice, product, repeat
from typing import Final

import pytest

from generator.api import contract, cursors, keys
from generator.edge import responses
from generator.tree import chunks, pages
from generator.tree.generation import ItemList
from generator.tree.layouts import LAYOUTS
from tests.support import lists
from tests.support.faults import wait_until
from tests.support.servers import Answer, connected
from tests.support.sites import EDGES, Site, site, target

#: Names of both border rules, and as many items as matter to either.
LENGTHS: Final = {
    "open/popular": 0,
    "open/new": 0,
    "closed/popular": 1,
    "closed/new": 1,
    "resolved/popular": 99,
    "resolved/new": 99,
    "cancelled/popular": 100,
    "cancelled/new": 100,
    "archive/popular": 101,
    "archive/ended": 101,
    "all/volume": 200,
    "all/ended": 200,
    "all/activity": 201,
    "all/new": 201,
    "open/ended": 350,
    "open/volume": 350,
}
#: What a program that cuts texts could trip over.
TEXTS: Final = (
    "plain",
    "Ñandú, Łódź, הבחירות, 選挙",
    "🙂👩‍👩‍👧‍👦",
    "two\u2028separators\u2029that once ended lines",
    'quoted "],"nextCursor":null}',
    "a\nline\r\nbreak,\n]}",
    "\ufeffmark \x00\x1f\x7f\ud7ff\uffff",
    "\\n \\u000a \\",
    "long " + "ü" * 5000,
)


def made_up(name: str, count: int, seed: str = "") -> ItemList:
    """A list with items like the contract's, and unlike any with another seed."""
    texts = islice(cycle(TEXTS), count)
    encoded = (contract.encode({"id": f"{seed}{i}", "question": text}) for i, text in enumerate(texts))
    return ItemList(name, tuple(encoded))


LISTS: Final = {name: made_up(name, count) for name, count in LENGTHS.items()}


@pytest.fixture(scope="module", params=EDGES)
def edge(request: pytest.FixtureRequest) -> Iterator[Site]:
    """An edge of a site in the layout `chunks`, which has all LISTS."""
    with site(request.param, "chunks") as running:
        running.put(*LISTS.values())
        yield running


@pytest.fixture(scope="module")
def generations() -> dict[str, str]:
    return {name: chunks.Generation(one).name for name, one in LISTS.items()}


def walk(at: Site, one: ItemList, limits: Iterator[int], cursor: str | None = None) -> int:
    """Walk the list, every page to the byte what it must be; returns how many there were."""
    generation, position, number = chunks.Generation(one).name, 0, 0
    if cursor is not None:
        position = int(cursor[30:])
    while True:
        limit = next(limits)
        answer = at.ask(one.name, limit, cursor)
        assert answer.status == HTTPStatus.OK, (one.name, position, limit, answer)
        assert answer.body == lists.page(one, generation, position, limit), (one.name, position, limit)
        cursor, position, number = json.loads(answer.body)["nextCursor"], position + limit, number + 1
        if cursor is None:
            assert position >= len(one.items)
            return number


def refused(answer: Answer) -> tuple[str, ...]:
    assert answer.status == HTTPStatus.BAD_REQUEST, answer
    assert responses.CORS.items() <= answer.headers.items()
    return tuple(one.path[0] for one in contract.ErrorResponse.model_validate_json(answer.body).details or ())


# ── walks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=2)
def test_every_list_is_walked_whole_with_every_kind_of_limit(edge: Site) -> None:
    for one in LISTS.values():
        for limit in (7, 20, 99, 100):
            assert walk(edge, one, repeat(limit)) == max(1, -(-len(one.items) // limit))
    assert walk(edge, LISTS["all/new"], repeat(1)) == len(LISTS["all/new"].items)


def test_a_reader_may_change_the_limit_at_every_request_and_gets_as_many_items(edge: Site) -> None:
    dice = random.Random(1)  # noqa: S311 - no secret
    walked = 0
    for one in LISTS.values():
        for limits in (cycle([20, 100]), cycle([100, 7, 1, 33]), *repeat(iter(lambda: dice.randint(1, 100), 0), 3)):
            walked += walk(edge, one, limits)
    assert walked > 200


def test_a_page_may_begin_and_end_anywhere_around_a_border(edge: Site, generations: dict[str, str]) -> None:
    asked = 0
    for name in ("all/activity", "all/new", "open/ended", "open/volume"):
        one = LISTS[name]
        near = {border + by for border in chunks.borders(name, len(one.items)) for by in (-2, -1, 0, 1)}
        for position in sorted(near & set(range(1, len(one.items)))):
            for limit in (1, 2, 99, 100):
                place = cursors.mint(name, generations[name], position)
                expected = lists.page(one, generations[name], position, limit)
                assert edge.ask(name, limit, place).body == expected, (name, position, limit)
                asked += 1
    assert asked > 150


def test_items_may_be_long(edge: Site) -> None:
    texts = (f"{i} " + "ü🙂" * 5_000 for i in range(250))
    one = ItemList("all/popular", tuple(contract.encode({"question": text}) for text in texts))
    generation = edge.put(one)[one.name]
    for position in (0, 150):
        place = cursors.mint(one.name, generation, position) if position else None
        page = edge.ask(one.name, 100, place).body
        assert page == lists.page(one, generation, position, 100)
        assert len(page) > 3_000_000


def test_readers_at_the_same_time_do_not_disturb_each_other(edge: Site) -> None:
    port = edge.client.port

    def read(number: int) -> int:
        with connected(port) as client:
            own = Site(edge.edge, edge.layout, edge.output, client, edge.upload)
            limits = iter(lambda: random.Random(number).randint(20, 100), 0)  # noqa: S311 - no secret
            return sum(walk(own, LISTS[name], limits) for name in ("open/ended", "all/new", "all/volume"))

    with ThreadPoolExecutor(8) as readers:
        assert len([*readers.map(read, range(16))]) == 16


# ── where there is nothing ────────────────────────────────────────────────────────────────────────────────────────


def test_a_place_at_or_behind_the_end_is_no_place(edge: Site, generations: dict[str, str]) -> None:
    for name, one in LISTS.items():
        count = len(one.items)
        for position in (max(1, count), count + 1, count + 100, 999_999_999):
            place = cursors.mint(name, generations[name], position)
            assert refused(edge.ask(name, 20, place)) == ("cursor",), (name, position)


def test_a_list_without_a_head_is_unknown(edge: Site) -> None:
    assert refused(edge.ask("closed/activity", 20)) == ("category",)


def test_a_generation_that_was_taken_down_is_gone_and_so_is_what_lacks_a_chunk(edge: Site) -> None:
    one = made_up("closed/volume", 350, "takedown")
    generation = edge.put(one)[one.name]
    made = chunks.Generation(one)
    wholly = cursors.mint(one.name, generation, 210)
    across = cursors.mint(one.name, generation, 150)
    assert {edge.ask(one.name, 50, place).status for place in (wholly, across)} == {HTTPStatus.OK}
    edge.change(keys.chunk(one.name, made.chunks[1]), None)

    def is_gone(limit: int, place: str) -> bool:
        answer = edge.ask(one.name, limit, place)
        return answer.status != HTTPStatus.OK and refused(answer) == ("cursor",)

    wait_until(lambda: is_gone(50, across), 10)
    assert is_gone(100, across)
    assert edge.ask(one.name, 50, wholly).status == HTTPStatus.OK
    edge.change(keys.index(one.name, generation), None)
    wait_until(lambda: is_gone(50, wholly), 10)
    assert edge.ask(one.name, 100).status == HTTPStatus.OK, "the head is another object"


def damaged_heads(made: chunks.Generation) -> list[bytes]:
    """Damaged, of another kind, or with something in it that was never written."""
    whole = made.head()
    forged = (b'"count":250', b'"count":25'), (made.name.encode(), b"../../../../../build")
    return [whole[:-1], whole[:-9000], b"", b"<Error/>", b"null", *(whole.replace(*change) for change in forged)]


def damaged_indexes(made: chunks.Generation) -> list[bytes]:
    whole = dict(made.objects())[keys.index(made.list_name, made.name)]
    content = json.loads(whole)
    forged = {"first": 50}, {"chunks": content["chunks"][:1]}, {"chunks": ["../../../../../../build"] * 3}
    return [whole[:-20], b"", b"null", b"{}", *(contract.encode(content | change) for change in forged)]


def damaged_chunks(made: chunks.Generation) -> list[bytes]:
    whole = dict(made.objects())[keys.chunk(made.list_name, made.chunks[1])]
    return [whole[:-1], whole[:-9000], b"", b"[\n]", b"<Error/>"]


def damaged(edge: Site) -> Iterator[Answer]:
    """The answer for each damaged object, none of which was read before."""
    names = [f"cancelled/{sort}" for sort in ("activity", "volume", "ended")]
    names += [f"archive/{sort}" for sort in ("activity", "new")] + ["resolved/activity", "resolved/ended"]
    for number, name in enumerate(names):
        one = made_up(name, 250, "damage")
        edge.put(one)
        edge.change(keys.head(name), damaged_heads(chunks.Generation(one))[number])
        yield edge.ask(name, 100)
    for number in range(12):
        one = made_up("archive/volume", 250, f"damage {number}")
        edge.put(one)
        made = chunks.Generation(one)
        if number < 7:
            edge.change(keys.index(one.name, made.name), damaged_indexes(made)[number])
        else:
            edge.change(keys.chunk(one.name, made.chunks[1]), damaged_chunks(made)[number - 7])
        yield edge.ask(one.name, 100, cursors.mint(one.name, made.name, 150))


def test_no_damaged_object_becomes_a_page(edge: Site) -> None:
    found = [*damaged(edge)]
    assert len(found) == 19
    for number, answer in enumerate(found):
        assert answer.status == (500 if edge.edge == "serve" else 503), (number, answer)
        assert answer.headers["content-type"] == keys.CONTENT_TYPE
        assert answer.headers["cache-control"] == "no-store"
        assert responses.CORS.items() <= answer.headers.items()
        contract.ErrorResponse.model_validate_json(answer.body)


# ── what a page has beside its bytes ──────────────────────────────────────────────────────────────────────────────


def test_a_page_has_the_headers_of_the_object_that_the_other_layout_has(
    edge: Site, generations: dict[str, str]
) -> None:
    place = cursors.mint("all/new", generations["all/new"], 30)
    for at, control in ((None, keys.MUTABLE), (place, keys.IMMUTABLE)):
        answer = edge.ask("all/new", 20, at)
        assert responses.CORS.items() <= answer.headers.items()
        assert (answer.headers["content-type"], answer.headers["cache-control"]) == (keys.CONTENT_TYPE, control)


def test_every_page_has_an_etag_of_its_own_by_which_it_is_not_sent_again(
    edge: Site, generations: dict[str, str]
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
            assert responses.CORS.items() <= again.headers.items()
            assert {again.headers[name] == first.headers[name] for name in ("etag", "cache-control")} == {True}
        for other in ('"other"', first.headers["etag"].replace("-", "+"), ""):
            assert edge.ask("all/new", limit, at, If_None_Match=other).body == first.body
    assert len(tags) == 6


def test_head_is_get_without_the_body(edge: Site, generations: dict[str, str]) -> None:
    for at in (None, cursors.mint("all/new", generations["all/new"], 30)):
        full, head = (edge.client.send(method, target("all/new", 20, at)) for method in ("GET", "HEAD"))
        assert (head.status, head.body) == (HTTPStatus.OK, b"")
        # Cloudflare's network adds the length of what it sends, and workerd none to what is empty.
        assert {**full.headers, **head.headers, "date": ""} == {**full.headers, "date": ""}


def test_pages_are_compressed_for_those_who_ask(edge: Site, generations: dict[str, str]) -> None:
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
def test_readers_reach_no_object_by_its_key(edge: Site, path: str) -> None:
    lists.write(edge.output / keys.BUILD, b"{}")
    answer = edge.client.send("GET", path)
    assert (answer.status, answer.body) == (404, contract.encode(contract.FIXED_ERRORS[404]))


# ── while lists change ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_walk_stays_in_its_generation_while_others_come(edge: Site) -> None:
    one, following = (made_up("closed/volume", 250, seed) for seed in ("one", "following"))
    edge.put(one)
    first = lists.page(one, chunks.Generation(one).name, 0, 60)
    wait_until(lambda: edge.ask(one.name, 60).body == first, 10)
    edge.put(following)
    assert walk(edge, one, cycle([60, 100, 7]), json.loads(first)["nextCursor"]) > 2
    wait_until(lambda: edge.ask(one.name, 60).body != first, 10)
    assert walk(edge, following, repeat(60)) == 5


@pytest.fixture(scope="module", params=[*product(EDGES, LAYOUTS)], ids="-".join)
def moving(request: pytest.FixtureRequest) -> Iterator[Site]:
    """An edge that was rendered for either layout, with an empty store."""
    with site(*request.param) as running:
        yield running


def in_pages(at: Site, one: ItemList, limit: int, page: bytes) -> None:
    """Walk what is in the layout `pages`, from a page on."""
    generation, position = pages.Generation(one).name, 0
    while following := json.loads(page)["nextCursor"]:
        position += limit
        page = at.ask(one.name, limit, following).body
        assert page == lists.page(one, generation, position, limit)
    assert position + limit >= len(one.items)


@pytest.mark.campaign(short=4)
def test_a_site_may_move_to_the_other_layout_and_back_and_no_walk_breaks(moving: Site) -> None:
    name, limit = "all/new", 20
    paged, cut, again = (made_up(name, 150, seed) for seed in ("paged", "cut", "paged again"))
    first = {one: pages.Generation(one).first(limit) for one in (paged, again)}
    first[cut] = lists.page(cut, chunks.Generation(cut).name, 0, limit)

    def shows(one: ItemList) -> bool:
        return moving.ask(name, limit).body == first[one]

    moving.put_pages(paged, limit)
    assert shows(paged)
    moving.put(cut)
    assert shows(paged if moving.layout == "pages" else cut), "of two pointers that of the edge's own layout counts"
    moving.change(keys.first_page(name, limit), None)
    wait_until(lambda: shows(cut), 10)
    in_pages(moving, paged, limit, first[paged])
    moving.put_pages(again, limit)
    moving.change(keys.head(name), None)
    wait_until(lambda: shows(again), 10)
    assert walk(moving, cut, repeat(limit), json.loads(first[cut])["nextCursor"]) == 7
    in_pages(moving, again, limit, first[again])
    in_pages(moving, paged, limit, first[paged])


def test_a_pointer_of_the_other_layout_is_as_good(moving: Site) -> None:
    one = made_up("all/volume", 30)
    moving.put_pages(one, 20)
    found = moving.ask(one.name, 20)
    assert found.headers["cache-control"] == keys.MUTABLE
    assert found.headers["content-type"] == keys.CONTENT_TYPE
    assert moving.ask(one.name, 20, If_None_Match=found.headers["etag"]).status == HTTPStatus.NOT_MODIFIED
    assert moving.client.send("HEAD", target(one.name, 20)).body == b""
    assert refused(moving.ask(one.name, 21)) == ("category",), "no pointer of either kind"
