"""Cursors of a server of the read API: JSON with a check before it, so that an altered one is found out."""

import base64
import hashlib
import json
from typing import Any, Final, TypeAlias

#: What one row is sorted by, its id last.
Position: TypeAlias = list[Any]

#: Characters of a cursor's check.
CHECK_LENGTH: Final = 12


def make_cursor(status: str, sort: str, position: Position | None) -> str:
    """A cursor that goes on after a position of a list."""
    return _checked(json.dumps([status, sort, position]))


def read_cursor(cursor: str) -> tuple[str, str, Position | None]:
    """Status, sort and position of a cursor. Raises ValueError for what is none."""
    text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()[CHECK_LENGTH:]
    if _checked(text) != cursor:
        raise ValueError("the check of a cursor is wrong")
    status, sort, position = json.loads(text)
    return status, sort, position


def _checked(text: str) -> str:
    check = hashlib.sha256(text.encode()).hexdigest()[:CHECK_LENGTH]
    return base64.urlsafe_b64encode((check + text).encode()).decode().rstrip("=")
