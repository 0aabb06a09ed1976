"""Why a row breaks the contract, in the database's terms: which column, which rule, which value. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import ValidationError

from generator.config.settings import Texts
from generator.markets.quarantine import Fault, printable

#: Columns that have another name on the wire, by model and field.
_COLUMNS: Final = {("FillRow", "timestamp"): "created_at", ("PointRow", "timestamp"): "recorded_at"}


def of(error: ValidationError) -> list[Fault]:
    """All faults of a row that `row_validation` refuses."""
    return [
        _fault(_column(error.title, mistake["loc"]), mistake["msg"], mistake["input"])
        for mistake in error.errors(include_url=False)
    ]


def too_long(allowed: Texts, question: str, description: str | None) -> Iterator[Fault]:
    """The texts of a valid market that are longer than this site allows; worded as the contract's own bounds."""
    for name, text in (("question", question), ("description", description)):
        if text and len(text) > (most := getattr(allowed, name)):
            yield Fault(name, f"string should have at most {most} characters", printable(text))


def _column(model: str, location: Sequence[object]) -> str:
    name = ".".join(map(str, location))
    parent, _, column = name.partition(".")
    return f"fx_members.{column}" if parent == "fx_family_member" else _COLUMNS.get((model, name), name)


def _fault(column: str, message: str, value: object) -> Fault:
    if value is None:
        return Fault(column, "must not be NULL")
    rule = message.removeprefix("Value error, ")
    return Fault(column, f"{rule[:1].lower()}{rule[1:]}", printable(value))
