"""Why a row breaks the contract, in the database's terms: which column, rule and value; and the remedy. Pure."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from generator.findings import Finding
from generator.markets.quarantine import printable

#: Columns that have another name on the wire, by model and field.
_COLUMNS: Final = {("FillRow", "timestamp"): "created_at", ("PointRow", "timestamp"): "recorded_at"}
#: The remedy for each rule, by the type of its error.
REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # pydantic's
        "finite_number": "correct it, or make it NULL or leave the row out in a view",
        "greater_than_equal": "correct it",
        "less_than_equal": "correct it, or convert it in a view (0.45 rather than 45)",
        "literal_error": "map your words to these in a view",
        "string_too_long": "shorten it, or cut it in a view",
        "string_unicode": "correct its encoding",
        # our validators'
        "bare_uuid": "put them in, as docs/recipes.md shows under `Keys that are not UUIDs`",
        "blank": "name it, or leave the row out in a view",
        "control_character": "remove the character, or replace it in a view",
        "derived_slug": "rename it",
        "not_boolean": "make it 1 or 0 in a view",
        "not_date": "correct it, or cast it to a date in a view",
        "not_number": "cast it to a number in a view",
        "not_text": "cast it to text in a view",
        "not_time": "correct it, or convert it to a timestamp in a view",
        "not_unicode": "correct its encoding",
        "not_uuid": "give each row a UUID in a view, such as a keyed hash of its own key",
        "not_whole_number": "correct it, or round it in a view",
        "too_large": "correct it",
        "unknown_time": "correct it",
    }
)
#: The remedy for rules that no value of a column is known to break.
ANY: Final = "correct it in the database or in a view"
#: The remedy where rows share an id that should be their own.
REPEATED: Final = "make ids unique; a join in a view may repeat rows"
_NULL: Final = Finding(text="must not be NULL", remedy="fill it in, or give it a value in a view")


def of(error: ValidationError) -> list[Finding]:
    """All faults of a row that `row_validation` refuses."""
    return [
        _fault(_column(error.title, mistake["loc"]), mistake["type"], mistake["msg"], mistake["input"])
        for mistake in error.errors(include_url=False)
    ]


def unclear(column: str, value: object) -> Finding:
    """The fault of a row of which nobody can tell whether it is public: what should be a boolean has this value."""
    return _fault(column, "not_boolean", "neither true (1), false (0) nor NULL", "''" if value == "" else value)


def _column(model: str, location: Sequence[object]) -> str:
    name = ".".join(map(str, location))
    parent, _, column = name.partition(".")
    return f"fx_members.{column}" if parent == "fx_family_member" else _COLUMNS.get((model, name), name)


def _fault(column: str, rule: str, message: str, value: object) -> Finding:
    if value is None:
        return _NULL._replace(column=column)
    text = f"{message[:1].lower()}{message[1:]}"
    return Finding(column=column, text=text, remedy=REMEDIES.get(rule, ANY), value=printable(value))
