"""Whoever is told that rows break a rule is told what to do about it, however the rule is worded."""

from typing import Any, Final

import pytest
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from generator.markets import faults, row_validation
from generator.markets.categories import CategoryRow
from tests.support.sites.builds import NOW
from tests.support.sites.rows import FX_MEMBER, market_row

#: For each rule, a value that breaks it: of a market's column, of one of its family, or a category's name.
BROKEN: Final[list[tuple[str, Any, str]]] = [
    ("volume", float("inf"), "finite_number"),
    ("volume", -1, "greater_than_equal"),
    ("prob", 45, "less_than_equal"),
    ("status", "paused", "literal_error"),
    ("question", "?" * 2_001, "string_too_long"),
    ("description", "\x1b", "control_character"),
    ("close_time", "soon", "not_time"),
    ("close_time", "2026-02-30 12:00:00", "unknown_time"),
    ("volume", "7", "not_number"),
    ("volume", 10**400, "too_large"),
    ("trader_count", 1.5, "not_whole_number"),
    ("trader_count", 10**400, "too_large"),
    ("question", b"?", "not_text"),
    ("question", "\ud800", "not_unicode"),
    ("status", "\ud800", "string_unicode"),
    ("id", "7", "not_uuid"),
    ("id", "0" * 32, "bare_uuid"),
    ("fx_members.week_start", "soon", "not_date"),
    ("fx_members.threshold_value", float("nan"), "finite_number"),
    *(("category", name, rule) for name, rule in ((" ", "blank"), ("a\nb", "control_character"))),
    *(("category", name, rule) for name, rule in (("x" * 101, "string_too_long"), ("a--0123456789", "derived_slug"))),
]


def remedy_of(column: str, error: ValidationError) -> str:
    (fault,) = faults.of(error)
    assert fault.column == column
    return fault.remedy


def validate(column: str, value: Any) -> object:
    if column == "category":
        return CategoryRow.model_validate({"category": value, "position": 0})
    of_family = column.startswith("fx_members.")
    fx = {**FX_MEMBER, column.removeprefix("fx_members."): value} if of_family else None
    row = market_row() if of_family else market_row(**{column: value})
    return row_validation.market(row, fx=fx, fills24h=0, as_of=NOW)


def broken(column: str, value: Any) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        validate(column, value)
    return caught.value


@pytest.mark.parametrize(("column", "value", "rule"), BROKEN)
def test_each_rule_has_its_remedy(column: str, value: Any, rule: str) -> None:
    assert remedy_of(column, broken(column, value)) == faults.REMEDIES[rule]


def test_there_is_no_remedy_for_a_rule_that_nothing_breaks() -> None:
    assert {rule for *_, rule in BROKEN} | {"not_boolean"} == faults.REMEDIES.keys()  # which `faults.unclear` tells of


def test_a_missing_value_is_to_be_filled_in_whatever_rule_it_breaks() -> None:
    for column in ("prob", "status", "question", "close_time"):
        assert remedy_of(column, broken(column, None)).startswith("fill it in, ")


def test_a_remedy_does_not_depend_on_the_words_of_an_error() -> None:
    def reworded(rule: Any) -> ValidationError:
        error = PydanticCustomError(rule, "Never seen before")
        return ValidationError.from_exception_data("MarketRow", [{"type": error, "loc": ("prob",), "input": 7}])

    for rule, remedy in faults.REMEDIES.items():
        (fault,) = faults.of(reworded(rule))
        assert (fault.what(), fault.remedy) == ("prob: never seen before", remedy)
    assert remedy_of("prob", reworded("unheard_of")) == faults.ANY
