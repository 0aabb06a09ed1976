"""The files of histories: the past never changes, and only what changed is written."""

from collections import Counter
from typing import NamedTuple

import pytest

from generator.api.contract import MarketStatus
from generator.downloads import partitions
from generator.downloads.partitions import Member
from tests.support.sites.rows import market_id


class Market(NamedTuple):
    id: str
    status: MarketStatus
    close_time: str
    resolved_at: str | None = None


@pytest.mark.parametrize("status", ["closed", "resolved", "cancelled"])
def test_a_market_that_has_ended_belongs_to_the_month_of_its_end(status: str) -> None:
    end = "2026-10-31T23:59:59.999Z"
    for resolved_at, close_time in ((end, "2026-09-30"), (None, end)):
        market = Market(market_id(1), status, close_time, resolved_at)  # type: ignore[arg-type]
        assert partitions.partition(market) == "state=archive/month=2026-10"


def test_open_markets_are_spread_by_their_ids_alone() -> None:
    found = Counter(partitions.partition(Market(market_id(n), "open", f"2026-{n % 12 + 1:02}-01")) for n in range(1600))
    assert [*sorted(found)] == [f"state=open/part={part:02}" for part in range(16)]
    assert max(found.values()) < 2 * min(found.values())


def test_a_digest_stands_for_markets_and_details_in_any_order() -> None:
    members = [Member("a", "1"), Member("b", "2")]
    assert partitions.digest(members) == partitions.digest(members[::-1])
    others = [[], members[:1], [Member("a", "2"), Member("b", "1")], [Member("a", "1"), Member("b", "3")]]
    assert len({partitions.digest(each) for each in [members, *others]}) == 5


@pytest.mark.parametrize(
    ("last", "as_of", "is_due"),
    [
        (None, "2026-10-31T00:00:00.000Z", True),
        ("2026-10-31T00:00:00.000Z", "2026-10-31T23:59:59.999Z", False),
        ("2026-10-31T23:59:59.999Z", "2026-11-01T00:00:00.000Z", True),
        ("2026-11-01T00:00:00.000Z", "2026-10-31T23:59:59.999Z", True),
    ],
)
def test_histories_are_due_with_the_first_build_of_another_day(last: str | None, as_of: str, is_due: bool) -> None:  # noqa: FBT001
    assert partitions.is_due(last, as_of) is is_due
