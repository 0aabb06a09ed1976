"""Which lists hold a market: those of its status, and of its categories in that status."""

from generator.api import keys
from generator.api.contract import MARKET_STATUSES
from generator.tree import membership

#: What holds every market that a list has.
WHOLE = {keys.SEARCH, *keys.DOWNLOADS}


def test_a_market_is_listed_by_its_state_with_and_without_categories() -> None:
    assert membership.memberships_of("open", []) == ("open",)
    assert membership.memberships_of("closed", ["snow", "rain"]) == ("closed", "closed.rain", "closed.snow")
    lists = membership.lists_of(["closed.rain"])
    assert {name.partition("/")[0] for name in lists - WHOLE} == {"closed.rain", "archive.rain", "all.rain"}
    assert len(lists - WHOLE) == 15
    assert membership.lists_of(["closed.rain", "closed"]) == lists | membership.lists_of(["closed"])


def test_a_state_is_held_by_the_lists_that_select_it() -> None:
    assert {name.split("/")[0] for name in membership.lists_of(["open"]) - WHOLE} == {"open", "all"}
    for state in ("closed", "resolved", "cancelled"):
        assert {name.split("/")[0] for name in membership.lists_of([state]) - WHOLE} == {state, "archive", "all"}
    assert len(membership.lists_of(["open"]) - WHOLE) == 10
    assert membership.lists_of(["open"]) >= WHOLE, "search index and downloads have every market that a list has"
    assert membership.lists_of([]) == frozenset()
    assert len(membership.lists_of(MARKET_STATUSES) - WHOLE) == 30
