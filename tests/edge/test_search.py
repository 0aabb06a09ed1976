"""Searches over HTTP: every edge that can read objects finds what a naive search finds, in both layouts."""

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import pytest

from generator.api import contract, keys
from generator.edge import responses
from tests.support.campaigns import full_tier
from tests.support.edges.edge_sites import EdgeSite, edge_site
from tests.support.edges.servers import Answer
from tests.support.edges.serving import MARKETS as PATH
from tests.support.readers import search
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


def test_other_words_and_other_lists_have_other_etags(edge: EdgeSite) -> None:
    queries = ("q=the", "q=will", "q=the&limit=5", "q=the&status=closed", "q=the&sort=new", "q=the&category=crypto")
    assert len({ask(edge, query).headers["etag"] for query in queries}) == len(queries)
    first = ask(edge, "q=THE")
    assert first.headers["etag"] == ask(edge, "q=the").headers["etag"]
    assert ask(edge, "q=the", If_None_Match=first.headers["etag"]).status == HTTPStatus.NOT_MODIFIED
    cursor = json.loads(first.body)["nextCursor"]
    assert first.headers["link"] == f'<?status=open&sort=popular&q=the&limit=20&cursor={cursor}>; rel="next"'


def test_without_an_index_a_search_is_refused(edge: EdgeSite) -> None:
    head = keys.head(keys.SEARCH)
    whole = (edge.output / head).read_bytes()
    edge.change(head, None)
    wait_until(lambda: ask(edge, "q=absent").status == HTTPStatus.BAD_REQUEST)
    assert contract.SEARCH_ERRORS["q.absent"].encode() in ask(edge, "q=absent").body
    edge.change(head, whole)
    wait_until(lambda: ask(edge, "q=will").status == HTTPStatus.OK)
