"""The search index takes part in what happens to a published site: builds, publishes, withdrawals and takedowns."""

import json

import pytest

from tests.support.sites.publishing import FX, PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.sites.searchable_site import Reads, engine, found


@pytest.mark.campaign(short=0)
def test_a_published_site_can_be_searched(searched: PublishedSite) -> None:
    searched.check()
    assert found(searched, "zyzz") == [market_id(1)]
    assert sorted(found(searched, "COMMITTEE", "&limit=1")) == [market_id(number) for number in (1, 2, 3)]
    assert found(searched, "committee", "&sort=volume") == [market_id(number) for number in (3, 2, 1)]
    assert market_id(FX) not in found(searched, "question"), "no list has it"


@pytest.mark.campaign(short=0)
def test_a_walk_goes_on_while_the_site_is_published(searched: PublishedSite) -> None:
    edge, query = engine(searched), "q=committee&status=all&limit=1&sort=volume"
    first = edge.walk(Reads(searched), query)[0]
    searched.edit(2, description="Nobody decides.", volume=5000.0)
    searched.done("rebuild", "--as-of", hour(2))
    rest = edge.walk(Reads(searched), f"{query}&cursor={json.loads(first['body'])['nextCursor']}")
    assert [item["id"] for item in json.loads(rest[0]["body"])["items"]] == [market_id(2)]
    assert found(searched, "committee", "&sort=volume") == [market_id(3), market_id(1)]


@pytest.mark.campaign(short=0)
def test_an_unchanged_rebuild_writes_nothing(searched: PublishedSite) -> None:
    before = searched.objects()
    searched.done("rebuild", "--as-of", hour(1))
    assert searched.objects() == before
