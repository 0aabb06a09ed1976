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
from typing import Any, Final, TypeVar

from generator.contract import PRICE_MAX, PRICE_MIN

#: Rows taken at a time: enough to make a call per column cheap, few enough to stay small in memory.
BATCH: Final = 2_000
#: The greatest finite number.
GREATEST: Final = nextafter(inf, 0)

_NUMBERS: Final = frozenset((float, int, Decimal))
_SECONDS: Final = r"\d{4}-\d\d-\d\d[ T](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
#: SQLite's microseconds, and history has millions of them.
_MICROSECONDS: Final = re.compile(rf"(?:{_SECONDS}\.\d{{6}}\n)*", re.ASCII)
#: PostgreSQL's, whose fraction ends with its last digit; and RFC 3339 in UTC.
_UTC: Final = re.compile(rf"(?:{_SECONDS}(?:\.\d{{1,6}})?(?:\+00(?::00)?|Z)?\n)*", re.ASCII)
_AS_ZEROS: Final = bytes.maketrans(b"123456789abcdef", b"0" * 15)
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
    try:
        text = "\n".join((*values, ""))
        moments = [*map(datetime.fromisoformat, values)]  # refuses days that are in no calendar
    except (TypeError, ValueError):
        raise UnusualError from None
    if _MICROSECONDS.fullmatch(text):
        return [f"{value[:10]}T{value[11:23]}Z" for value in values]
    if _UTC.fullmatch(text):
        return [f"{moment.isoformat(timespec='milliseconds')[:23]}Z" for moment in moments]
    raise UnusualError


def uuids(values: Sequence[Any]) -> list[str]:
    """UUIDs as `rows.uuid` brings them to the wire."""
    try:
        lines = "\n".join((*values, "")).lower()
        zeros = lines.encode().translate(_AS_ZEROS)
    except (TypeError, ValueError):
        raise UnusualError from None
    if zeros != _UUID_OF_ZEROS * len(values):
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
