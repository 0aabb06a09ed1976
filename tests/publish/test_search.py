"""The search index takes part in what happens to a published site: builds, publishes, withdrawals and takedowns."""

import json

import pytest

from generator.api import keys
from tests.support.builds import files
from tests.support.publishing import FX, OPEN, Site, hour
from tests.support.rows import market_id
from tests.support.searched import RARE, Reads, engine, found, index_of, remains


def test_a_published_site_can_be_searched(searched: Site) -> None:
    searched.check()
    assert found(searched, "zyzz") == [market_id(1)]
    assert sorted(found(searched, "COMMITTEE", "&limit=1")) == [market_id(number) for number in (1, 2, 3)]
    assert found(searched, "committee", "&sort=volume") == [market_id(number) for number in (3, 2, 1)]
    assert market_id(FX) not in found(searched, "question"), "no list has it"


def test_an_unchanged_rebuild_writes_nothing(searched: Site) -> None:
    before = searched.objects()
    searched.done("rebuild", "--as-of", hour(1))
    assert searched.objects() == before


def test_a_walk_goes_on_while_the_site_is_published(searched: Site) -> None:
    edge, query = engine(searched), "q=committee&status=all&limit=1&sort=volume"
    first = edge.walk(Reads(searched), query)[0]
    searched.edit(2, description="Nobody decides.", volume=5000.0)
    searched.done("rebuild", "--as-of", hour(2))
    rest = edge.walk(Reads(searched), f"{query}&cursor={json.loads(first['body'])['nextCursor']}")
    assert [item["id"] for item in json.loads(rest[0]["body"])["items"]] == [market_id(2)]
    assert found(searched, "committee", "&sort=volume") == [market_id(3), market_id(1)]


def test_no_object_has_a_word_of_a_market_that_was_taken_down(searched: Site) -> None:
    assert remains(searched.stored()) == remains(files(searched.folder / "output", "")) == {*RARE}
    searched.database.execute("ALTER TABLE markets RENAME TO away")
    searched.done("takedown", market_id(1))
    assert remains(searched.stored()) | remains(files(searched.folder / "output", "")) == set()
    assert found(searched, "zyzzyva") == found(searched, "dzixyzzy") == found(searched, "ⵣⵣⵣ") == []
    assert found(searched, "committee", "&sort=volume") == [market_id(3), market_id(2)]
    searched.database.execute("ALTER TABLE away RENAME TO markets")
    searched.done("rebuild", "--as-of", hour(2))
    assert remains(searched.stored()) | remains(files(searched.folder / "output", "")) == set()
    searched.check()


@pytest.mark.campaign(short=1)
def test_no_object_has_a_word_of_a_market_that_is_no_longer_public(searched: Site) -> None:
    searched.edit(1, approval="rejected")
    searched.done("rebuild", "--as-of", hour(2))
    assert remains(searched.stored()) | remains(files(searched.folder / "output", "")) == set()
    assert found(searched, "dzixyzzy") == []


def test_a_takedown_makes_the_index_of_a_build_without_the_market(searched: Site) -> None:
    searched.done("takedown", market_id(1), market_id(OPEN[-1]))
    index = index_of(searched.objects())
    for number in (1, OPEN[-1]):
        searched.database.execute("DELETE FROM markets WHERE id = ?", [market_id(number)])
    searched.done("build", "--as-of", hour(1), output="fresh")
    assert index == index_of(searched.built("fresh"))


def test_a_takedown_ends_walks_in_earlier_indexes(searched: Site) -> None:
    edge, query = engine(searched), "q=committee&status=all&limit=1"
    cursor = json.loads(edge.walk(Reads(searched), query)[0]["body"])["nextCursor"]
    searched.done("takedown", market_id(1))
    (answer,) = edge.walk(Reads(searched), f"{query}&cursor={cursor}")
    assert answer["status"] == 400
    assert json.loads(answer["body"])["details"][0]["path"] == ["cursor"]


@pytest.mark.parametrize("damage", [None, b"[\n]", b"<Error/>"])
def test_an_index_that_cannot_be_read_ends_with_a_takedown(searched: Site, damage: bytes | None) -> None:
    for key, body in searched.objects().items():
        if keys.SEARCH in key and b"zyva" in body:
            searched.remove(key) if damage is None else searched.put(key, damage)
    assert "the search index could not be read" in searched.done("takedown", market_id(1)).stderr
    assert index_of(searched.objects()) == {}
    assert searched.record().built.search is None
    searched.done("rebuild", "--as-of", hour(2))
    assert sorted(found(searched, "committee")) == [market_id(number) for number in (2, 3)]


def test_a_site_that_ends_search_has_no_index(searched: Site) -> None:
    searched.done("rebuild", "--as-of", hour(2), search="off")
    searched.done("rebuild", "--as-of", hour(12), search="off")
    assert index_of(searched.objects()) == {}
