"""Whole columns of database values → wire values at once, where every value is plainly good. Pure.

`rows` judges row by row and says what is wrong; a database holds millions of rows of which nothing is. Each function
here returns exactly what `rows` would make of the values, or raises UnusualError when there is one to be looked at.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import islice
from math import inf, isnan, nextafter
from types import MappingProxyType
from typing import Any, Final, TypeVar

from generator.api.contract import PRICE_MAX, PRICE_MIN

#: Rows taken at a time: enough to make a call per column cheap, few enough to stay small in memory.
BATCH: Final = 2_000
#: The greatest finite number.
GREATEST: Final = nextafter(inf, 0)

_NUMBERS: Final = frozenset((float, int, Decimal))
#: SQLite's microseconds, and history has millions of them: told by their shape, as patterns take five times as long.
_TIME_OF_ZEROS: Final = b"0000-00-00 00:00:00.000000\n"
#: PostgreSQL's, whose fraction ends with its last digit; and RFC 3339 in UTC.
_UTC: Final = re.compile(r"(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:\+00(?::00)?|Z)?\n)*", re.ASCII)
#: What UTC may end with, and what brings a time without it to milliseconds, by its length.
_NO_OFFSETS: Final = ("+00:00\n", "+00\n", "Z\n")
_PADDING: Final = MappingProxyType({19: ".000", 21: "00", 22: "0"})
_TIME_AS_ZEROS: Final = bytes.maketrans(b"123456789T", b"000000000 ")
_HEX_AS_ZEROS: Final = bytes.maketrans(b"123456789abcdef", b"0" * 15)
_UUID_OF_ZEROS: Final = b"00000000-0000-0000-0000-000000000000\n"

Row = TypeVar("Row")


class UnusualError(ValueError):
    """Not every value is plainly good; the rows must be judged one by one."""


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows in lists of at most BATCH."""
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH)):
        yield batch


def timestamps(values: Sequence[Any]) -> list[str]:
    """Times as `rows.timestamp` brings them to the wire."""
    lines = _lines(values)
    times = values
    if _as_zeros(lines, _TIME_AS_ZEROS) == _TIME_OF_ZEROS * len(values):
        _require_moments(times, lines)
        return [f"{time[:10]}T{time[11:23]}Z" for time in times]
    if not _UTC.fullmatch(lines) or lines.count("\n") != len(values):
        raise UnusualError
    for offset in _NO_OFFSETS:
        lines = lines.replace(offset, "\n")
    times = lines.split("\n")[:-1]
    _require_moments(times, lines)
    return [f"{time[:10]}T{time[11:23]}{_PADDING.get(len(time), '')}Z" for time in times]


def _lines(values: Sequence[Any]) -> str:
    try:
        return "\n".join((*values, ""))
    except TypeError:
        raise UnusualError from None


def _as_zeros(lines: str, table: bytes) -> bytes:
    try:
        return lines.encode().translate(table)
    except ValueError:
        raise UnusualError from None


def _require_moments(times: Sequence[str], lines: str) -> None:
    """Refuse what is in no calendar and on no clock."""
    if " 24:" in lines or "T24:" in lines:  # a moment of the next day, since Python 3.13
        raise UnusualError
    try:
        for _ in map(datetime.fromisoformat, times):
            pass
    except ValueError:
        raise UnusualError from None


def uuids(values: Sequence[Any]) -> list[str]:
    """UUIDs as `ids.uuid` brings them to the wire."""
    lines = _lines(values).lower()
    if _as_zeros(lines, _HEX_AS_ZEROS) != _UUID_OF_ZEROS * len(values):
        raise UnusualError
    return lines.split("\n")[:-1]


def numbers(values: Sequence[Any], least: float, greatest: float) -> list[float]:
    """Numbers as `rows.number` brings them to the wire, all within bounds."""
    kinds = set(map(type, values))
    if not kinds <= _NUMBERS:
        raise UnusualError
    try:
        floats = values if kinds == {float} else [*map(float, values)]
    except (OverflowError, ValueError):
        raise UnusualError from None
    # A NaN may hide from both comparisons, but not from the sum.
    if floats and (isnan(sum(floats)) or min(floats) < least or max(floats) > greatest):
        raise UnusualError
    return [value + 0.0 for value in floats]  # minus zero becomes zero


def prices(values: Sequence[Any]) -> list[float | None]:
    """Prices of fills as `rows.price` brings them to the wire."""
    present = [value for value in values if value is not None]
    shown = (value if PRICE_MIN <= value <= PRICE_MAX else None for value in numbers(present, -GREATEST, GREATEST))
    return list(shown) if len(present) == len(values) else [None if value is None else next(shown) for value in values]
