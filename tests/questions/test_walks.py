"""What the checker says of walks that go on, end, or go on with other rows."""

from pathlib import Path

import pytest

from tests.questions import walks
from tests.questions.asking import Get, Site
from tests.questions.oracle import Oracle
from tests.questions.pretended import Answered, Pretended

_EXPIRED = b'{"error":"","details":[{"path":["cursor"],"message":"has expired, or its pages were withdrawn"}]}'


@pytest.fixture
def begun(get: Get, oracle: Oracle) -> tuple[Pretended, list[walks.Begun]]:
    site = Pretended(get, oracle)
    found = walks.begin(Site(site), oracle)
    assert len(found) > 30
    return site, found


def test_a_walk_goes_on_with_its_rows(begun: tuple[Pretended, list[walks.Begun]], oracle: Oracle) -> None:
    site, found = begun
    assert [one for walk in found for one in walks.unlike(Site(site), walk, (), oracle)] == []


def test_a_walk_must_not_end_while_all_is_public(begun: tuple[Pretended, list[walks.Begun]], oracle: Oracle) -> None:
    def ending(path: str) -> Answered:
        return 400, {}, _EXPIRED

    for walk in begun[1]:
        assert "although nothing in it was withdrawn" in next(walks.unlike(Site(ending), walk, (), oracle))


def test_a_walk_must_not_bring_other_rows(begun: tuple[Pretended, list[walks.Begun]], oracle: Oracle) -> None:
    other = b'{"items":[{"id":"1"}],"nextCursor":null}'
    for walk in begun[1]:
        assert "not the" in next(walks.unlike(Site(lambda _: (200, {}, other)), walk, (), oracle))


def test_a_walk_ends_where_a_member_was_withdrawn_that_no_row_shows(
    begun: tuple[Pretended, list[walks.Begun]], oracle: Oracle
) -> None:
    site, found = begun
    many = next(one for one in oracle.questions.values() if one.question.title == "Many")
    shown = {market["id"] for market in many.row.value["markets"]}
    hidden = next(member.market_id for member in many.members if member.market_id not in shown)
    walk = next(walk for walk in found if walk.list == ("all", "new", None))
    changed = Oracle.__new__(Oracle)  # of a later build, whose list is another
    changed.__dict__ |= oracle.__dict__ | {"rows": oracle.rows[1:]}
    assert "although" in next(walks.unlike(Site(site), walk, {hidden}, changed))
    assert [*walks.unlike(Site(lambda _: (400, {}, _EXPIRED)), walk, {hidden}, changed)] == []
    assert [*walks.unlike(Site(site), walk, {hidden}, oracle)] == []  # all is back


def test_what_is_withdrawn_is_told_by_two_states(oracle: Oracle, troubled: Path) -> None:
    later = Oracle.__new__(Oracle)
    first, second = [*oracle.questions][:2]
    markets = {name: item for name, item in oracle.markets.items() if name != second}
    gone = [*markets][:2]
    for name in gone:
        del markets[name]
    later.__dict__ |= oracle.__dict__ | {"markets": markets, "questions": {second: oracle.questions[second]}}
    found = walks.withdrawn(oracle, later, lambda name: name == gone[1])
    assert found == {gone[0], *oracle.questions} - {second}
    assert first in found
