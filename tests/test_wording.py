"""Numbers in sentences agree with their nouns."""

import re

import pytest

from generator.wording import are, counted
from tests.support.project import ROOT

#: Nouns that messages count.
NOUNS = "builds|bytes|errors|files|lists|markets|minutes|objects|remarks|requests|rows"


@pytest.mark.parametrize(
    ("count", "style", "text"),
    [
        (0, "", "0 markets"),
        (1, "", "1 market"),
        (2, "", "2 markets"),
        (1_000, "", "1000 markets"),
        (1_000, ",", "1,000 markets"),
        (0.6, ".0f", "1 market"),
        (1.5, "g", "1.5 markets"),
    ],
)
def test_one_thing_is_singular(count: float, style: str, text: str) -> None:
    assert counted(count, "market", style) == text


@pytest.mark.parametrize(("noun", "two"), [("search", "searches"), ("story", "stories"), ("day", "days")])
def test_plurals_are_spelled_as_in_english(noun: str, two: str) -> None:
    assert [counted(number, noun) for number in (1, 2)] == [f"1 {noun}", f"2 {two}"]


def test_one_thing_is_and_two_are() -> None:
    assert [are(count) for count in (0, 1, 2)] == ["are", "is", "are"]


def test_no_message_counts_in_the_plural_only() -> None:
    """Numbers that cannot be one are exempt: they have a bound below, or the sentence is only made for several."""
    exempt = {"LINES", "patience_s / 60:.0f", "limit.requests", "counts.requests", "config.snapshot.size", "errors"}
    found = {
        f"{path.name}: {match[0]}"
        for path in (ROOT / "generator").rglob("*.py")
        for match in re.finditer(rf"{{([^{{}}]+)}} (?:{NOUNS})\b", path.read_text("utf-8"))
        if match[1] not in exempt
    }
    assert found == set()
