"""The search index takes part in builds and publishes; a takedown makes it anew, and no word of the market remains."""

import json

import pytest

from generator.api import keys
from tests.support.sites.builds import files
from tests.support.sites.publishing import FX, OPEN, PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.sites.searchable_site import RARE, Reads, engine, found, index_of, remains


def left(site: PublishedSite) -> set[str]:
    """The rare words of market 1 that are left in the store or the folder."""
    return remains(site.stored()) | remains(files(site.folder / "output", ""))


@pytest.mark.campaign(short=0)
def test_no_object_has_a_word_of_a_market_that_was_taken_down(searched: PublishedSite) -> None:
    assert remains(searched.stored()) == remains(files(searched.folder / "output", "")) == {*RARE}
    searched.database.execute("ALTER TABLE markets RENAME TO away")
    searched.done("takedown", market_id(1))
    assert left(searched) == set()
    assert found(searched, "zyzzyva") == found(searched, "dzixyzzy") == found(searched, "ⵣⵣⵣ") == []
    assert found(searched, "committee", "&sort=volume") == [market_id(3), market_id(2)]
    searched.database.execute("ALTER TABLE away RENAME TO markets")
    searched.done("rebuild", "--as-of", hour(2))
    assert left(searched) == set()
    searched.check()


@pytest.mark.campaign(short=0)
def test_a_takedown_makes_the_index_of_a_build_without_the_market(searched: PublishedSite) -> None:
    searched.done("takedown", market_id(1), market_id(OPEN[-1]))
    made = index_of(searched.objects())
    for number in (1, OPEN[-1]):
        searched.database.execute("DELETE FROM markets WHERE id = ?", [market_id(number)])
    searched.done("build", "--as-of", hour(1), output="fresh")
    assert made == index_of(searched.built("fresh"))


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("damage", [None, b"[\n]", b"<Error/>"])
def test_an_index_that_cannot_be_read_is_made_again(searched: PublishedSite, damage: bytes | None) -> None:
    spoilt = [key for key, body in searched.objects().items() if keys.SEARCH in key and b"zyva" in body]
    assert spoilt
    for key in spoilt:
        searched.remove(key) if damage is None else searched.put(key, damage)
    searched.done("takedown", market_id(1))
    assert left(searched) == set()
    assert sorted(found(searched, "committee")) == [market_id(number) for number in (2, 3)]
    searched.check()


def test_a_published_site_can_be_searched(searched: PublishedSite) -> None:
    searched.check()
    assert found(searched, "zyzz") == [market_id(1)]
    assert sorted(found(searched, "COMMITTEE", "&limit=1")) == [market_id(number) for number in (1, 2, 3)]
    assert found(searched, "committee", "&sort=volume") == [market_id(number) for number in (3, 2, 1)]
    assert market_id(FX) not in found(searched, "question"), "no list has it"


@pytest.mark.campaign(short=1)
def test_a_walk_goes_on_while_the_site_is_published(searched: PublishedSite) -> None:
    edge, query = engine(searched), "q=committee&status=all&limit=1&sort=volume"
    first = edge.walk(Reads(searched), query)[0]
    searched.edit(2, description="Nobody decides.", volume=5000.0)
    searched.done("rebuild", "--as-of", hour(2))
    rest = edge.walk(Reads(searched), f"{query}&cursor={json.loads(first['body'])['nextCursor']}")
    assert [item["id"] for item in json.loads(rest[0]["body"])["items"]] == [market_id(2)]
    assert found(searched, "committee", "&sort=volume") == [market_id(3), market_id(1)]


def test_an_unchanged_rebuild_writes_nothing(searched: PublishedSite) -> None:
    before = searched.objects()
    searched.done("rebuild", "--as-of", hour(1))
    assert searched.objects() == before
