"""Market slugs of the database: which of them can be used in a path, and why others are refused."""

import pytest

from generator.markets import slugs
from tests.support.sites.rows import market_id


def references(*given_: object) -> slugs.References:
    return slugs.references([(market_id(number), slug) for number, slug in enumerate(given_)])


@pytest.mark.parametrize(
    "slug",
    [
        *("will-it-rain", "Will-It-Rain", "-leading", "--", "_", "a", "0", "A_b-9", "s" * 223, "s" * 255),
        *("snapshots", "snap-shot", "00000000-0000-4000-8000-00000000000", "00000000-0000-4000-8000-00000000000g"),
        *("00000000_0000_4000_8000_000000000000", "0" * 32, "lists", "detail", "slug"),
    ],
)
def test_a_slug_that_can_stand_in_a_path_leads_to_its_market(slug: str) -> None:
    assert references(slug).usable == {market_id(0): slug}
    assert references(slug).refused == {}


@pytest.mark.parametrize(
    ("slug", "reason"),
    [
        *[(slug, "letters, digits, hyphens") for slug in ("a b", "a.b", "ü", "a/b", "a\n", "\u212a", "\udcff", " ")],
        *[(slug, "letters, digits, hyphens") for slug in ("s" * 256, 7, 1.5, b"slug", True)],
        *[(slug, "something else") for slug in ("snapshot", "Snapshot", "SNAPSHOT")],
        *[(slug, "form of a UUID") for slug in (market_id(5), market_id(0xABCDEF).upper())],
    ],
)
def test_any_other_slug_is_refused_with_its_reason(slug: object, reason: str) -> None:
    found = references(slug, "fine")
    assert found.usable == {market_id(1): "fine"}
    assert found.refused.keys() == {market_id(0)}
    assert reason in str(found.refused[market_id(0)])


def test_no_slug_is_no_reason_to_say_anything() -> None:
    assert references(None, "") == slugs.References({}, {})


def test_a_slug_of_two_markets_leads_to_neither_whatever_its_case() -> None:
    found = references("same", "other", "same", "SAME", "Other2", "other3")
    assert found.usable.keys() == {market_id(number) for number in (1, 4, 5)}
    assert found.refused.keys() == {market_id(number) for number in (0, 2, 3)}
    assert all(fault.text.startswith("another market has the same") for fault in found.refused.values())


def test_what_refuses_a_slug_that_several_have_names_the_others() -> None:
    found = references("same", "SAME", "other", "same", "same")
    assert [fault.value for _, fault in sorted(found.refused.items())] == [
        f"same, as has {market_id(1)} and {market_id(3)} and 1 more",
        f"SAME, as has {market_id(0)} and {market_id(3)} and 1 more",
        *[f"same, as has {market_id(0)} and {market_id(1)} and 1 more"] * 2,
    ]


def test_a_slug_that_is_refused_anyway_takes_none_from_others() -> None:
    assert references("\u212aelvin", "kelvin").usable == {market_id(1): "kelvin"}


def test_a_refusal_is_keyed_by_the_id_in_lower_case() -> None:
    upper = market_id(0xABC).upper()
    assert slugs.references([(upper, "a b")]).refused.keys() == {upper.lower()}
