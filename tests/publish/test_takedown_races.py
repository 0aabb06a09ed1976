"""A takedown that meets another run: both succeed, and nothing of the markets remains."""

from collections.abc import Callable
from itertools import cycle

import pytest

from generator.publish import blocklist
from generator.tree.blocklist import BlockedList
from tests.support.sites.builds import NOW
from tests.support.sites.publishing import PublishedSite, fill_parquet, hour
from tests.support.sites.rows import market_id
from tests.support.stores.s3.wire import Answer, Request

#: After how many requests of a run the other one begins; the last ones are hardly ever made.
PLACES = (*range(7), 9, 12, 20)
#: Each place with Parquet files or without.
CASES = [*zip(cycle(["parquet", "ndjson"]), PLACES)]


@pytest.fixture(params=["ndjson", "parquet"])
def filed(published_site: PublishedSite, request: pytest.FixtureRequest) -> PublishedSite:
    """A published site with downloads, with or without Parquet files."""
    if request.param == "parquet":
        fill_parquet(published_site)
    published_site.done("rebuild", "--as-of", hour(1))
    return published_site


def after_requests(site: PublishedSite, count: int, act: Callable[[], object]) -> None:
    """Have another machine act after so many requests."""
    left = [count]

    def look(_: Request, __: Answer) -> None:
        left[0] -= 1
        if left[0] == 0:
            act()

    site.server.after = look


def blocking(number: int) -> BlockedList:
    return BlockedList().decided([market_id(number)], is_blocked=True, now=NOW)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(("filed", "place"), CASES, indirect=["filed"])
def test_a_takedown_that_begins_during_a_rebuild_stops_neither(filed: PublishedSite, place: int) -> None:
    filed.edit(3, volume=77.0)
    after_requests(filed, place + 1, lambda: blocklist.merge(filed.store(), blocking(1)))
    filed.done("rebuild", "--as-of", hour(2))
    filed.server.after = None
    filed.done("takedown", market_id(1))
    assert filed.traces(1) == []
    filed.check()
