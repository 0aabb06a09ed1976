"""Values of a fixed form on the wire, as types of the contract's fields: ids, instants, days, numbers within bounds."""

from datetime import date, datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema


def _instant(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def _day(text: str) -> str:
    date.fromisoformat(text)
    return text


Uuid = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
#: RFC 3339 in UTC with milliseconds and `Z`: fixed width, so that text order is time order.
Timestamp = Annotated[
    str,
    StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"),
    AfterValidator(_instant),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Day = Annotated[
    str,
    StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$"),
    AfterValidator(_day),
    WithJsonSchema({"type": "string", "format": "date"}),
]
Url = Annotated[str, WithJsonSchema({"type": "string", "format": "uri"})]
Probability = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


def has_no_control_character(text: str) -> str:
    """Return the text; raise ValueError if it holds a control character."""
    if any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in text):  # noqa: PLR2004 - C0, DEL and C1
        raise ValueError("holds a control character")
    return text


def is_not_blank(text: str) -> str:
    """Return the text; raise ValueError if it is empty or white space."""
    if not text.strip():
        raise ValueError("is empty")
    return text
