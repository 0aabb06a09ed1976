"""Numbers in sentences agree with their nouns."""

import re
from datetime import timedelta

import pytest

from generator.wording import are, counted, span
from tests.support.project import ROOT

#: Nouns that messages count.
NOUNS = "builds|bytes|errors|files|lists|markets|minutes|objects|remarks|requests|rows"


@pytest.mark.parametrize(
    ("count", "style", "text"),
    [
        (0, "", "0 markets"),
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
    assert [are(count) for count in (0, 1, 2)] == ["are", "is", "are"]


def test_no_message_counts_in_the_plural_only() -> None:
    """Numbers that cannot be one are exempt: they have a bound below, or the sentence is only made for several."""
    exempt = {"LINES", "patience_s / 60:.0f", "limit.requests", "counts.requests", "config.snapshot.size", "errors"}
    exempt |= {"config.rate_limit.requests"}
    found = {
        f"{path.name}: {match[0]}"
        for path in [*(ROOT / "generator").rglob("*.py"), ROOT / "generator/api/openapi.yaml"]
        for match in re.finditer(rf"{{([^{{}}]+)}}+ (?:{NOUNS})\b", path.read_text("utf-8"))
        if match[1] not in exempt
    }
    assert found == set()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (90, "90 seconds"),
        (60, "1 minute"),
        (5400, "90 minutes"),
        (21_600, "6 hours"),
        (86_400, "1 day"),
    ],
)
def test_a_duration_reads_in_its_largest_unit_without_a_fraction(seconds: int, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words
