"""A withdrawal or takedown makes the search index anew, without the database: no word of the market remains."""

import json

import pytest

from generator.api import keys
from tests.support.sites.builds import files
from tests.support.sites.publishing import OPEN, PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.sites.searchable_site import RARE, Reads, engine, found, in_one_layout, index_of, remains


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


@pytest.mark.campaign(short=0)
def test_a_takedown_ends_walks_in_earlier_indexes(searched: PublishedSite) -> None:
    edge, query = engine(searched), "q=committee&status=all&limit=1"
    cursor = json.loads(edge.walk(Reads(searched), query)[0]["body"])["nextCursor"]
    searched.done("takedown", market_id(1))
    (answer,) = edge.walk(Reads(searched), f"{query}&cursor={cursor}")
    assert answer["status"] == 400
    assert json.loads(answer["body"])["details"][0]["path"] == ["cursor"]


@pytest.mark.campaign(short=0)
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


@pytest.mark.campaign(short=0)
@in_one_layout
def test_no_index_that_an_edit_replaced_comes_back_with_a_takedown(searched: PublishedSite) -> None:
    """The lists are the same, as they show no description; the index that is published now cannot be read."""
    searched.edit(2, description="Nobody decides about quaggas.")
    searched.done("rebuild", "--as-of", hour(2))
    current = searched.record().built.current[keys.SEARCH]
    searched.remove(keys.index(keys.SEARCH, current.generation))
    searched.done("takedown", market_id(1))
    assert found(searched, "quaggas") == [market_id(2)]
    assert found(searched, "committee") == [market_id(3)]
    searched.check()


@pytest.mark.campaign(short=0)
@in_one_layout
def test_a_market_is_taken_down_by_its_slug_and_comes_back(searched: PublishedSite) -> None:
    searched.done("publish", "--purge-retired")
    before = index_of(searched.objects())
    searched.done("takedown", "dzixyzzy")
    assert left(searched) == set()
    assert [entry for entry in searched.record().built.retired if entry.list == keys.SEARCH] == []
    searched.done("takedown", "--undo", market_id(1))
    assert left(searched) == set()
    searched.done("rebuild", "--as-of", hour(2))
    assert found(searched, "zyzzyva") == [market_id(1)]
    searched.done("publish", "--purge-retired")
    assert index_of(searched.objects()) == before


@pytest.mark.campaign(short=0)
@in_one_layout
def test_a_folder_built_before_a_takedown_elsewhere_is_published_without_the_word(searched: PublishedSite) -> None:
    searched.edit(2, description="Nobody decides about quaggas.")
    searched.done("build", "--as-of", hour(2))
    searched.done("takedown", market_id(1), output="elsewhere")
    assert remains(searched.stored()) == set()
    searched.done("publish")
    assert left(searched) == set()
    assert found(searched, "quaggas") == [market_id(2)]
    searched.check()
    searched.database.execute("DELETE FROM markets WHERE id = ?", [market_id(1)])
    searched.done("build", "--as-of", hour(2), output="fresh")
    current = {key for key in searched.built("fresh") if keys.SEARCH in key}
    assert {key: searched.objects()[key] for key in current} == index_of(searched.built("fresh"))


# Rules, each taken away: the test that is about it notices
