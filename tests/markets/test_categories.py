"""Names of categories that differ only in case, spaces or Unicode form are one category, in one spelling."""

from typing import Any, Final

import pytest

from generator.api import slugs
from generator.markets import categories
from generator.markets.categories import AS_GIVEN, Spellings
from generator.markets.quarantine import Quarantine

#: Found by hashing 2.5 million names: `nature--e77676cdae` is the slug of both.
SAME_SLUG: Final = ("Nature \u03bc\u03bb\u03bc\u03ba\u03b6\u03b3", "Nature \u03b3\u03b2\u03c0\u03bb\u03b6\u03b3")


def rows(*names: Any) -> list[tuple[str, Any]]:
    return [("market", name) for name in names]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["Sports", "sports", "sports"], {"Sports": "sports"}),
        (["sports", "Sports"], {"sports": "Sports"}),
        (["SPORTS", "Sports", "sports", "Sports"], {"SPORTS": "Sports", "sports": "Sports"}),
        (["Über", "über", "über", "ÜBER"], {"Über": "über", "ÜBER": "über"}),
        (["Straße", "STRASSE"], {"Straße": "STRASSE"}),
        (["Caf\u00e9", "Cafe\u0301", "Cafe\u0301"], {"Caf\u00e9": "Cafe\u0301"}),
        (["u.s.  polls", "U.S. polls", " u.s. polls"], {"u.s.  polls": " u.s. polls", "U.S. polls": " u.s. polls"}),
        (["sports", "sport", "esports", "s ports"], {}),
        (["sports", "sports"], {}),
        ([], {}),
    ],
)
def test_the_most_frequent_spelling_is_shown_and_then_the_first(names: list[str], shown: dict[str, str]) -> None:
    assert categories.spellings(rows(*names)) == (shown, {})
    assert categories.spellings(rows(*names[::-1])) == (shown, {})


def test_no_spelling_that_is_quarantined_is_shown() -> None:
    bad = ["FINE\n", "FINE\n", None, b"fine", "\ud800", "x" * 101, "X" * 101, "fine--0123456789", ""]
    assert categories.spellings(rows(*bad, "fine")) == ({}, {})


@pytest.mark.parametrize("step", [1, -1], ids=["in order", "the other way round"])
def test_a_market_has_a_category_once_however_it_is_spelled_and_whichever_row_comes_first(
    quarantine: Quarantine, step: int
) -> None:
    found = [("m", "Sports", 3), ("m", "sports", 1), ("m", "news", 2), ("m", "SPORTS", 3)]
    spellings = Spellings({"sports": "Sports", "SPORTS": "Sports"}, {})
    shown = categories.of_market(found[::step], spellings, quarantine)
    assert shown == ["Sports", "news"]
    assert [row.reason.partition("already ")[2] for row in quarantine] == ["(SPORTS)", "(Sports)"]


@pytest.mark.parametrize("name", ["sports--0123456789", "a-b--abcdef0123", slugs.of_category("Sports")])
def test_a_name_that_could_be_the_slug_of_another_is_quarantined(quarantine: Quarantine, name: str) -> None:
    assert categories.of_market([("m", name, 0), ("m", "Sports", 1)], AS_GIVEN, quarantine) == ["Sports"]
    (row,) = quarantine
    assert row.reason.startswith("category: has the form of another category's slug")


@pytest.mark.parametrize(
    "name", ["sports-0123456789", "Sports--0123456789", "sports--012345678", "sports--012345678g", "--0123456789"]
)
def test_any_other_name_may_look_like_a_slug(quarantine: Quarantine, name: str) -> None:
    assert categories.of_market([("m", name, 0)], AS_GIVEN, quarantine) == [name]


def test_a_category_is_found_by_its_slug_and_by_its_name_in_any_spelling() -> None:
    known = {slugs.of_category(name): name for name in ("Sports", "über", "u.s. 2024 elections")}
    for reference in ("Sports", "sports", "SPORTS", " sports ", slugs.of_category("Sports")):
        assert categories.slug_of(reference, known) == slugs.of_category("Sports")
    assert categories.slug_of("ÜBER", known) == slugs.of_category("über")
    assert categories.slug_of("sport", known) is None


def test_of_two_names_with_one_slug_the_rarer_is_refused_in_every_spelling() -> None:
    first, second = SAME_SLUG
    assert slugs.of_category(first) == slugs.of_category(second)
    for names, kept, refused in (
        ([first, second], second, [first]),
        ([first, second, first, "x"], first, [second]),
        ([second, first, second], second, [first]),
        ([first, first, second, second.lower(), second], second, [first]),
    ):
        for found in (names, names[::-1]):
            assert categories.spellings(rows(*found)).refused == dict.fromkeys(refused, kept)


def test_a_refused_name_costs_the_row_and_is_named(quarantine: Quarantine) -> None:
    first, second = SAME_SLUG
    found = [("m", second, 0), ("m", "news", 1)]
    assert categories.of_market(found, Spellings({}, {second: first}), quarantine) == ["news"]
    (row,) = quarantine
    assert row.reason == f"category: another category has the same slug ({second})"


def test_a_market_has_at_most_twenty_categories_the_first_ones(quarantine: Quarantine) -> None:
    found = [("m", f"c{number}", number) for number in range(22)]
    assert categories.of_market(found[::-1], AS_GIVEN, quarantine) == [f"c{number}" for number in range(20)]
    assert [row.reason for row in quarantine] == [
        f"category: the market has as many as 20 before it (c{number})" for number in (20, 21)
    ]
