"""Mints and parses list cursors: `check + generation + position`, lower-case letters and digits. Pure.

The check binds a cursor to its list, so that an edge rejects typos, guesses, and cursors of another status, sort or
category without reading the bucket. It is no secret: it protects readers from mistakes, not data from readers.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

CHECK_LENGTH: Final = 10
GENERATION_LENGTH: Final = 20
#: A position has at most this many digits; longer ones cannot belong to a list that fits on a disk.
POSITION_LENGTH: Final = 9

_HEX: Final = frozenset("0123456789abcdef")


class CursorError(ValueError):
    """The cursor was not minted for this list."""


@dataclass(frozen=True, slots=True)
class WalkPlace:
    """Where a walk continues: `position` items (1 or more) of `generation` have been read."""

    generation: str
    position: int


def check(list_name: str, generation: str, position: int) -> str:
    """The digest of list, generation and position; the edge routers compute the same."""
    return hashlib.sha256(f"{list_name}/{generation}/{position}".encode()).hexdigest()[:CHECK_LENGTH]


def mint(list_name: str, generation: str, position: int) -> str:
    """The cursor that continues a walk of `list_name` in `generation` at `position`."""
    return f"{check(list_name, generation, position)}{generation}{position}"


def read(list_name: str, text: str) -> WalkPlace:
    """Parse a cursor; raise CursorError unless it was minted for this list."""
    generation = text[CHECK_LENGTH : CHECK_LENGTH + GENERATION_LENGTH]
    digits = text[CHECK_LENGTH + GENERATION_LENGTH :]
    if not _is_generation(generation) or not _is_position(digits):
        raise CursorError("malformed cursor")
    cursor = WalkPlace(generation, int(digits))
    if mint(list_name, cursor.generation, cursor.position) != text:
        raise CursorError("the cursor belongs to another list")
    return cursor


def _is_generation(text: str) -> bool:
    return len(text) == GENERATION_LENGTH and text[0].islower() and text[0].isascii() and _HEX.issuperset(text[1:])


def _is_position(text: str) -> bool:
    return 0 < len(text) <= POSITION_LENGTH and text.isascii() and text.isdecimal() and text[0] != "0"
