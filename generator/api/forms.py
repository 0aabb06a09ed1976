"""Values of a fixed form on the wire, as types of the contract's fields: ids, instants, days, numbers within bounds."""

import re
from datetime import UTC, date, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

#: Characters of a time on the wire.
LENGTH: Final = len("2026-01-31T12:00:00.000Z")


def instant(moment: datetime) -> str:
    """Format an aware time as RFC 3339 in UTC, truncated to milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
UriTemplate = Annotated[str, WithJsonSchema({"type": "string", "format": "uri-template"})]
Probability = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]

_BARE_UUID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
#: In UTF-8: C0 and DEL, without the tab and line breaks that a text may have; and C1.
_CONTROLS: Final = bytes((*range(9), 11, 12, *range(14, 32), 127))
_LATER_CONTROLS: Final = re.compile(rb"\xc2[\x80-\x9f]")


def uuid(value: Any) -> str:
    """Validate a UUID and convert it to lower case."""
    lowered = value.lower() if isinstance(value, str) else ""
    if _BARE_UUID.fullmatch(lowered):
        raise PydanticCustomError("bare_uuid", "not a UUID: its hyphens are missing")
    if not _UUID.fullmatch(lowered):
        raise PydanticCustomError("not_uuid", "not a UUID")
    return lowered


def is_uuid(text: str) -> bool:
    """Whether the text is a UUID, in any case."""
    return _UUID.fullmatch(text.lower()) is not None and not _BARE_UUID.fullmatch(text.lower())


def is_plain(text: str) -> bool:
    """Whether a valid Unicode text holds no control character but tabs and line breaks: terminals obey the others."""
    encoded = text.encode()  # in which looking takes a twentieth of the time
    return len(encoded.translate(None, _CONTROLS)) == len(encoded) and not _LATER_CONTROLS.search(encoded)


def has_no_control_but_breaks(text: str) -> str:
    """Return the text; raise ValueError if it is not plain."""
    if not is_plain(text):
        raise PydanticCustomError("control_character", "holds a control character other than tab and line breaks")
    return text


def has_no_control_character(text: str) -> str:
    """Return the text; raise ValueError if it holds a control character."""
    if any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in text):  # noqa: PLR2004 - C0, DEL and C1
        raise PydanticCustomError("control_character", "holds a control character")
    return text


def is_not_blank(text: str) -> str:
    """Return the text; raise ValueError if it is empty or white space."""
    if not text.strip():
        raise PydanticCustomError("blank", "is empty")
    return text
