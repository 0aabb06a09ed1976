"""Texts of a fixed form on the wire: ids, instants and days, as types of the contract's fields."""

from datetime import date, datetime
from typing import Annotated

from pydantic import AfterValidator, StringConstraints, WithJsonSchema


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
