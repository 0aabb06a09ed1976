"""A withdrawal or takedown makes the search index anew, without the database: no word of the market remains."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.config.settings import Config
from generator.site.catalog import Catalog
from generator.tree import manifest
from tests.support.sites.builds import files
from tests.support.sites.publishing import OPEN, PublishedSite, hour, tamper
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
def test_no_object_has_a_word_of_a_market_that_is_no_longer_public(searched: PublishedSite) -> None:
    searched.edit(1, approval="rejected")
    searched.done("rebuild", "--as-of", hour(2))
    assert left(searched) == set()
    assert found(searched, "dzixyzzy") == []


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


@in_one_layout
def test_after_a_takedown_no_machine_brings_the_word_back(searched: PublishedSite) -> None:
    searched.done("build", "--as-of", hour(2), output="other")
    searched.done("takedown", market_id(1), output="elsewhere")
    searched.done("rebuild", "--as-of", hour(3), output="other")
    searched.done("rebuild", "--as-of", hour(4))
    assert left(searched) == set()
    assert remains(files(searched.folder / "other", "")) == set()


@pytest.mark.campaign(short=0)
@in_one_layout
def test_a_retired_index_of_a_site_without_search_ends_with_a_takedown(searched: PublishedSite) -> None:
    searched.done("rebuild", "--as-of", hour(2), search="off")
    assert remains(searched.stored())
    searched.done("takedown", market_id(1), search="off")
    assert left(searched) == set()
    searched.check()


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("is_complete", [True, False])
def test_a_takedown_from_a_folder_makes_the_index_of_a_build_without_the_market(
    searched: PublishedSite, *, is_complete: bool
) -> None:
    """Even from one that a killed build left, whose objects the manifest does not describe."""
    content = json.loads(Path("output/manifest.json").read_bytes())
    tamper(Path("output/manifest.json"), json.dumps({**content, "complete": is_complete}).encode())
    searched.done("takedown", market_id(1), publish__target="")
    assert remains(files(searched.folder / "output", "")) == set()
    searched.database.execute("DELETE FROM markets WHERE id = ?", [market_id(1)])
    searched.done("build", "--as-of", hour(1), output="fresh")
    assert index_of(searched.built()) == index_of(searched.built("fresh"))


# Rules, each taken away: the test that is about it notices


#: Every rule: what keeps it, what breaks it, and the test that notices.
RULES: Final[dict[str, tuple[str, Callable[..., Any], Callable[..., None]]]] = {
    "the market is left out": (
        "generator.site.catalog.Catalog.without",
        lambda catalog, _: catalog,
        test_no_object_has_a_word_of_a_market_that_was_taken_down,
    ),
    "every earlier index ends": (
        "generator.tree.manifest.withdrawn_lists",
        lambda *given, lists_of=manifest.withdrawn_lists: lists_of(*given) - {keys.SEARCH},
        test_no_object_has_a_word_of_a_market_that_was_taken_down,
    ),
    "the index has the texts that the published one has": (
        "generator.site.published.Catalog.published",
        lambda lines, _, as_of, made=Catalog.published: made(lines, ["title"], as_of),
        test_a_takedown_makes_the_index_of_a_build_without_the_market,
    ),
    "the settings are those that were published": (
        "generator.site.published.shaped",
        lambda _: Config(),
        test_a_takedown_makes_the_index_of_a_build_without_the_market,
    ),
}


@in_one_layout
@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_its_test_fails(searched: PublishedSite, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    kept_by, broken, notices = RULES[rule]
    given = {"searched": searched, "monkeypatch": monkeypatch}
    wanted = inspect.signature(notices).parameters
    monkeypatch.setattr(kept_by, broken)
    with pytest.raises(AssertionError):
        notices(**{name: value for name, value in given.items() if name in wanted})
