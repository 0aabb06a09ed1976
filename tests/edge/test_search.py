"""Searches over HTTP: every edge that can read objects finds what a naive search finds, in both layouts."""

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import pytest

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import responses
from generator.search import buckets
from tests.support.campaigns import full_tier
from tests.support.edges.edge_sites import EdgeSite, edge_site
from tests.support.edges.servers import Answer
from tests.support.edges.serving import MARKETS as PATH
from tests.support.readers import search
from tests.support.readers.search import Market
from tests.support.readers.search_cases import CASES, MARKETS
from tests.support.waiting import wait_until

#: Each edge in one layout: test_layout_change.py has both of all.
SERVED: Final = ("nginx pages", "bucket chunks", "serve chunks", "worker pages")


@pytest.fixture(scope="module", params=full_tier(SERVED, short=["nginx pages", "serve chunks"]))
def edge(request: pytest.FixtureRequest) -> Iterator[EdgeSite]:
    """An edge of a site with the MARKETS, which can be searched."""
    name, layout = request.param.split()
    with edge_site(name, layout, variant="extended", search="title") as running:
        running.put_objects(search.objects(MARKETS, layout))
        yield running


def ask(edge: EdgeSite, query: str, **headers: str) -> Answer:
    return edge.client.send("GET", f"{PATH}?{query}", **headers)


def walk(edge: EdgeSite, query: str, cursor: str | None = None) -> list[bytes]:
    """The bodies of the pages of a walk."""
    bodies = list[bytes]()
    while True:
        answer = ask(edge, query if cursor is None else f"{query}&cursor={cursor}")
        assert answer.status == HTTPStatus.OK, (query, cursor, answer)
        assert responses.COMMON.items() <= answer.headers.items()
        bodies.append(answer.body)
        cursor = json.loads(answer.body)["nextCursor"]
        if cursor is None:
            return bodies


def items(bodies: list[bytes]) -> list[bytes]:
    return search.items_of([{"body": body.decode()} for body in bodies])


@pytest.mark.campaign(short=0)
def test_every_search_of_the_table(edge: EdgeSite) -> None:
    for case in CASES:
        assert items(walk(edge, case.target())) == case.items(MARKETS), case


def test_a_q_whose_letters_are_not_encoded_is_read_as_utf_8(edge: EdgeSite) -> None:
    for q in ("élec", "選挙", "𠮷野", "WILL THÉ".replace(" ", "+")):
        plain, encoded = ask(edge, f"q={q}&status=all"), ask(edge, f"q={quote(q, safe='+')}&status=all")
        assert (plain.status, plain.body) == (HTTPStatus.OK, encoded.body), q
        assert b'"id"' in plain.body, q


def test_what_cannot_be_searched_is_refused(edge: EdgeSite) -> None:
    malformed = ("%", "%C3%28", "%FF", "%C0%80", "%ED%A0%80", "%F4%90%80%80", "will%E9", "%ED%A0%B4%ED%B4%9E")
    for q in ("", "-", "%00", "%F0%9F%99%82", "x" * 101, "x" * 3_900, "a&q=b", *malformed):
        answer = ask(edge, f"q={q}")
        assert answer.status == HTTPStatus.BAD_REQUEST, q
        assert [detail["path"] for detail in json.loads(answer.body)["details"]] == [["q"]]


def test_a_page_has_the_headers_of_pages_of_the_list(edge: EdgeSite) -> None:
    query = "q=the&status=all&limit=5"
    first = ask(edge, query)
    cursor = json.loads(first.body)["nextCursor"]
    later = ask(edge, f"{query}&cursor={cursor}")
    assert first.headers["cache-control"] == keys.MUTABLE
    assert later.headers["cache-control"] == keys.IMMUTABLE
    assert first.headers["content-type"] == later.headers["content-type"] == keys.CONTENT_TYPE
    assert first.headers["link"] == f'<?status=all&sort=popular&q=the&limit=5&cursor={cursor}>; rel="next"'
    for answer, target in ((first, query), (later, f"{query}&cursor={cursor}")):
        again = ask(edge, target, If_None_Match=answer.headers["etag"])
        assert (again.status, again.body) == (HTTPStatus.NOT_MODIFIED, b"")


def test_other_words_and_other_lists_have_other_etags(edge: EdgeSite) -> None:
    queries = ("q=the", "q=will", "q=the&limit=5", "q=the&status=closed", "q=the&sort=new", "q=the&category=crypto")
    assert len({ask(edge, query).headers["etag"] for query in queries}) == len(queries)
    assert ask(edge, "q=THE").headers["etag"] == ask(edge, "q=the").headers["etag"]


def test_without_an_index_a_search_is_refused(edge: EdgeSite) -> None:
    head = keys.head(keys.SEARCH)
    whole = (edge.output / head).read_bytes()
    edge.change(head, None)
    wait_until(lambda: ask(edge, "q=absent").status == HTTPStatus.BAD_REQUEST)
    assert contract.SEARCH_ERRORS["q.absent"].encode() in ask(edge, "q=absent").body
    edge.change(head, whole)
    wait_until(lambda: ask(edge, "q=will").status == HTTPStatus.OK)


# ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────────

#: Tells what an edge reads, and which answer it should give; it sees the layout from the objects.
CORE: Final = search.InQuickjs(search.core())
#: A site whose words and sorts have objects of their own, so that a fault harms one search.
FAULTY: Final = [
    Market((f"whole hurt{' faulty' * (number % 2)} élan",), "open", rank=number * 1013 % 7919) for number in range(120)
]
#: A search, the position of an object among those it reads (-1: every object with items), and what replaces the object.
FAULTS: Final[tuple[tuple[str, int, str | None], ...]] = (
    ("q=whole&sort=new", 1, None),
    ("q=faulty", 2, None),
    ("q=%C3%A9lan", 1, None),
    ("q=whole&sort=volume", -1, None),
    ("q=whole&sort=ended", 1, "<Error/>"),
    ("q=hurt", 2, '[\n"hur t!#$"'),
    ("q=whole&sort=activity", -1, "{}"),
)


@pytest.fixture
def faulty(edge: EdgeSite) -> Iterator[Mapping[str, str]]:
    """The objects of the site FAULTY, which the edge serves with all FAULTS."""
    whole = search.objects(FAULTY, edge.layout, buckets.Sizes(target=1))
    harmed = dict(whole)
    for query, place, instead in FAULTS:
        for key in read_by(whole, query, place):
            if instead is None:
                del harmed[key]
            else:
                harmed[key] = instead
    edge.put_objects(harmed)
    # The table is the same for all sites.
    edge.delete(key for key in whole.keys() - harmed.keys() if (edge.output / key).exists())
    wait_until(lambda: b'"id"' in ask(edge, "q=whole").body and ask(edge, "q=%C3%A9lan").status != HTTPStatus.OK)
    yield whole
    edge.put_objects(search.objects(MARKETS, edge.layout))
    wait_until(lambda: b'"id"' in ask(edge, "q=will").body)


def read_by(objects: Mapping[str, str], query: str, place: int) -> set[str]:
    """The object that the first page reads at this place; the last stands for all items that the walk reads."""
    answers = CORE.walk(objects, f"{query}&limit=50")
    if place != -1:
        return {answers[0]["read"][place]}
    return {key for answer in answers for key in answer["read"] if keys.SEARCH not in key and keys.INDEX not in key}


def test_what_is_lost_or_damaged_in_mid_search_is_no_mistake_of_the_reader(
    edge: EdgeSite, faulty: Mapping[str, str]
) -> None:
    gone = contract.encode(contract.invalid("cursor.gone", variant="extended"))
    unavailable = contract.encode(contract.FIXED_ERRORS[503])
    for query, _, instead in FAULTS:
        cursor = json.loads(CORE.walk(faulty, f"{query}&limit=50")[0]["body"])["nextCursor"]
        first, later = ask(edge, f"{query}&limit=50"), ask(edge, f"{query}&limit=50&cursor={cursor}")
        assert (first.status, first.body) == (503, unavailable), query
        status = 503 if instead else 400
        assert (later.status, later.body) == (status, unavailable if instead else gone), query
        for answer in (first, later):
            wanted = responses.error_headers(answer.status, Config()) | responses.COMMON
            assert answer.headers.items() >= wanted.items(), query


def test_a_withdrawal_interrupts_no_search(edge: EdgeSite) -> None:
    before, after = (search.objects(markets, edge.layout) for markets in (MARKETS, MARKETS[1:]))
    assert items([ask(edge, "q=will&status=all&sort=new&limit=100").body])
    edge.put_objects(after)
    edge.delete(sorted(before.keys() - after.keys()))
    answer = ask(edge, "q=will&status=all&sort=volume&limit=100")
    assert items([answer.body]) == search.scan(MARKETS[1:], "all", "volume", "will")[:100]
    edge.put_objects(before)
