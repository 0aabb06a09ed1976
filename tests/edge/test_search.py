"""Searches over HTTP: every edge that can read objects finds what a naive search finds, in both layouts."""

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from itertools import product
from typing import Final

import pytest

from generator.api import contract, keys
from generator.edge import responses
from generator.tree.layouts import LAYOUTS
from tests.search.test_rules import CASES, MARKETS, Case
from tests.support import search
from tests.support.edges import full_tier
from tests.support.faults import wait_until
from tests.support.search import Market
from tests.support.servers import Answer
from tests.support.serving import MARKETS as PATH
from tests.support.sites import EDGES, Site, site


@pytest.fixture(
    scope="module", params=full_tier(map(" ".join, product(EDGES, LAYOUTS)), short=["nginx pages", "worker chunks"])
)
def edge(request: pytest.FixtureRequest) -> Iterator[Site]:
    """An edge of a site with the MARKETS, which can be searched."""
    name, layout = request.param.split()
    with site(name, layout, variant="extended", search="title") as running:
        running.put_objects(search.objects(MARKETS, layout))
        yield running


#: Rules of a search, each with a change that the table must show on whatever runs it.
BROKEN: Final = (
    ("point >= 65 && point <= 90 ? point + 32 : point", "point"),
    ("if (seen[number] === step) {", "if (seen[number] <= step) {"),
    ("wanted.indexOf(1, search.from)", "wanted.indexOf(1, 0)"),
    ("if (asked.category !== '') words.push", "if (false) words.push"),
    ("number += gap * 57 +", "number += 0 * 57 +"),
)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(("name", "rule"), [*product(EDGES, BROKEN)])
def test_a_broken_rule_turns_the_table_red(name: str, rule: tuple[str, str]) -> None:
    with site(name, "chunks", rule=rule, variant="extended", search="title") as running:
        running.put_objects(search.objects(MARKETS, "chunks"))
        assert any(is_wrong(running, case) for case in CASES)


def is_wrong(edge: Site, case: Case) -> bool:
    """Whether the first two pages are not those of the naive search."""
    answers = [ask(edge, case.query())]
    if answers[0].status == HTTPStatus.OK and (cursor := json.loads(answers[0].body)["nextCursor"]):
        answers.append(ask(edge, f"{case.query()}&cursor={cursor}"))
    if {answer.status for answer in answers} != {HTTPStatus.OK}:
        return True
    return items([answer.body for answer in answers]) != case.expected()[: len(answers) * case.limit]


def ask(edge: Site, query: str, **headers: str) -> Answer:
    return edge.client.send("GET", f"{PATH}?{query}", **headers)


def walk(edge: Site, query: str, cursor: str | None = None) -> list[bytes]:
    """The bodies of the pages of a walk."""
    bodies = list[bytes]()
    while True:
        answer = ask(edge, query if cursor is None else f"{query}&cursor={cursor}")
        assert answer.status == HTTPStatus.OK, (query, cursor, answer)
        assert responses.CORS.items() <= answer.headers.items()
        bodies.append(answer.body)
        cursor = json.loads(answer.body)["nextCursor"]
        if cursor is None:
            return bodies


def items(bodies: list[bytes]) -> list[bytes]:
    return search.items_of([{"body": body.decode()} for body in bodies])


def test_every_search_of_the_table(edge: Site) -> None:
    for case in CASES:
        assert items(walk(edge, case.query())) == case.expected(), case


def test_what_cannot_be_searched_is_refused(edge: Site) -> None:
    for q in ("", "-", "%F0%9F%99%82", "x" * 101, "a&q=b"):
        answer = ask(edge, f"q={q}")
        assert answer.status == HTTPStatus.BAD_REQUEST, q
        assert [detail["path"] for detail in json.loads(answer.body)["details"]] == [["q"]]


def test_a_page_has_the_headers_of_pages_of_the_list(edge: Site) -> None:
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


def test_other_words_and_other_lists_have_other_etags(edge: Site) -> None:
    queries = ("q=the", "q=will", "q=the&limit=5", "q=the&status=closed", "q=the&sort=new", "q=the&category=crypto")
    assert len({ask(edge, query).headers["etag"] for query in queries}) == len(queries)
    assert ask(edge, "q=THE").headers["etag"] == ask(edge, "q=the").headers["etag"]


def test_a_walk_goes_on_while_other_markets_are_published(edge: Site) -> None:
    case = Case("the", limit=9)
    first = ask(edge, case.query())
    later: Mapping[str, str] = search.objects([*MARKETS[9:], Market(("the new one",), rank=60)], edge.layout)
    edge.put_objects(later)
    rest = walk(edge, case.query(), json.loads(first.body)["nextCursor"])
    assert items([first.body, *rest]) == case.expected()
    wait_until(lambda: ask(edge, case.query()).body != first.body, 10)
    edge.put_objects(search.objects(MARKETS, edge.layout))
    wait_until(lambda: ask(edge, case.query()).body == first.body, 10)


def test_without_an_index_a_search_is_refused(edge: Site) -> None:
    head = keys.head(keys.SEARCH)
    whole = (edge.output / head).read_bytes()
    edge.change(head, None)
    wait_until(lambda: ask(edge, "q=absent").status == HTTPStatus.BAD_REQUEST, 10)
    assert contract.SEARCH_ERRORS["q.absent"].encode() in ask(edge, "q=absent").body
    edge.change(head, whole)
    wait_until(lambda: ask(edge, "q=will").status == HTTPStatus.OK, 10)
