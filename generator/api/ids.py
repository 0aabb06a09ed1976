"""Ids: UUIDs, in lower case on the wire. Pure."""

import re
from typing import Any, Final

from pydantic_core import PydanticCustomError

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def uuid(value: Any) -> str:
    """Validate a UUID and convert it to lower case."""
    lowered = value.lower() if isinstance(value, str) else ""
    if not _UUID.fullmatch(lowered):
        raise PydanticCustomError("not_uuid", "not a UUID")
    return lowered
