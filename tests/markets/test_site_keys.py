"""Which keys of markets on the operator's site can be used."""

from typing import Any

import pytest

from generator.api.links import LONGEST_KEY
from generator.markets.slugs import NO_KEYS, SiteKeys


def test_a_key_is_a_text_or_a_whole_number_that_no_other_market_has() -> None:
    longest = "x" * LONGEST_KEY
    found = SiteKeys.of([("A", "will-it-rain"), ("b", 7), ("c", longest), ("d", "Will-It-Rain"), ("e", "a/b ü")])
    assert found == SiteKeys({"a": "will-it-rain", "b": "7", "c": longest, "d": "Will-It-Rain", "e": "a/b ü"}, {})


def test_null_and_an_empty_text_are_no_key_and_no_fault() -> None:
    assert SiteKeys.of([("a", None), ("b", ""), ("c", None)]) == NO_KEYS


@pytest.mark.parametrize("key", [" ", "..", "x" * (LONGEST_KEY + 1), "a\nb", "\x1b[2J", "\ud800", 7.5, b"key", b""])
def test_what_cannot_be_a_key_is_refused_and_shown_so_that_it_can_be_printed(key: Any) -> None:
    found = SiteKeys.of([("a", key), ("b", "fine")])
    assert found.usable == {"b": "fine"}
    fault = found.refused["a"]
    assert fault.reason().startswith("key: not 1 to 200 characters, or blank, or with a control character")
    assert (fault.value or "").isprintable()


def test_a_key_that_two_markets_have_is_none_of_either() -> None:
    found = SiteKeys.of([("a", "same"), ("b", "same"), ("c", "other"), ("d", 5), ("e", "5")])
    assert found.usable == {"c": "other"}
    assert {market: fault.reason() for market, fault in found.refused.items()} == {
        "a": "key: another market has the same (same, as has b)",
        "b": "key: another market has the same (same, as has a)",
        "d": "key: another market has the same (5, as has e)",
        "e": "key: another market has the same (5, as has d)",
    }


def test_of_many_markets_with_one_key_each_names_two_others() -> None:
    found = SiteKeys.of([(market, "same") for market in "cabed"])
    assert [found.refused[market].value for market in "ac"] == [
        "same, as has b and c and 2 more",
        "same, as has a and b and 2 more",
    ]
