"""Ids: UUIDs, in lower case on the wire. Pure."""

import re
from typing import Any, Final

from pydantic_core import PydanticCustomError

_BARE_UUID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def uuid(value: Any) -> str:
    """Validate a UUID and convert it to lower case."""
    lowered = value.lower() if isinstance(value, str) else ""
    if _BARE_UUID.fullmatch(lowered):
        raise PydanticCustomError("bare_uuid", "not a UUID: its hyphens are missing")
    if not _UUID.fullmatch(lowered):
        raise PydanticCustomError("not_uuid", "not a UUID")
    return lowered
