"""The fast path of `row_validation`: converts whole columns of database values to wire values. Pure.

Nearly all of millions of rows are valid and in the usual form. Each function here returns exactly what
`row_validation` returns for the values, or raises SlowPathError if any of them needs validation row by row.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import islice
from math import isfinite, isnan
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from generator.api.contract import PRICE_MAX, PRICE_MIN
from generator.markets import row_validation
from generator.markets.row_validation import MAX_FLOAT, TOLERANCE

#: Rows per batch: enough to amortise a call per column, few enough to keep memory low.
BATCH: Final = 2_000

_NUMBERS: Final = frozenset((float, int, Decimal))
#: The form of SQLite's times, recognised by comparison with zeros: a regular expression takes five times as long.
_ZERO_TIME: Final = b"0000-00-00 00:00:00.000000\n"
#: PostgreSQL's times, whose fraction has no trailing zeros, and RFC 3339 in UTC.
_UTC: Final = re.compile(r"(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:\+00(?::00)?|Z)?\n)*", re.ASCII)
#: The suffixes of UTC, and what completes a time without one to milliseconds, by its length.
_UTC_SUFFIXES: Final = ("+00:00\n", "+00\n", "Z\n")
_PADDING: Final = MappingProxyType({19: ".000", 21: "00", 22: "0"})
_TIME_TO_ZEROS: Final = bytes.maketrans(b"123456789T", b"000000000 ")
_HEX_TO_ZEROS: Final = bytes.maketrans(b"123456789abcdef", b"0" * 15)
_ZERO_UUID: Final = b"00000000-0000-0000-0000-000000000000\n"

_Row = TypeVar("_Row")


class SlowPathError(ValueError):
    """Some values are invalid or in an unusual form; validate the rows one by one."""


class Valid(NamedTuple):
    """Rows of one market that were converted together with those of others: columns of wire values.

    There are at most BATCH rows.
    """

    columns: tuple[Sequence[Any], ...]


#: The rows of one market: as the driver delivers them, each after the market's id, or converted already.
RelationRows: TypeAlias = Iterable[Sequence[Any]] | Valid


#: Is given valid rows in wire values, for whoever wants all of them and not only those that a detail shows.
CollectRows: TypeAlias = Callable[[Iterable[Sequence[Any]]], object]


def ignored(_: Iterable[Sequence[Any]]) -> None:
    """Collect nothing."""


def batches(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Split the rows into lists of at most BATCH."""
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH)):
        yield batch


def timestamps(values: Sequence[Any]) -> list[str]:
    """Convert times like `row_validation.timestamp`."""
    lines = _lines(values)
    if _as_zeros(lines, _TIME_TO_ZEROS) == _ZERO_TIME * len(values):
        _require_valid_times(values, lines)
        return _cut_to_milliseconds(lines, len(values))
    if not _UTC.fullmatch(lines) or lines.count("\n") != len(values):
        raise SlowPathError
    for suffix in _UTC_SUFFIXES:
        lines = lines.replace(suffix, "\n")
    times = lines.split("\n")[:-1]
    _require_valid_times(times, lines)
    return [f"{time[:10]}T{time[11:23]}{_PADDING.get(len(time), '')}Z" for time in times]


def _cut_to_milliseconds(lines: str, count: int) -> list[str]:
    """Convert lines of the form of `_ZERO_TIME`; all at once, in a third of the time of one by one."""
    text, width = bytearray(lines, "ascii"), len(_ZERO_TIME)
    for place, letter in ((10, b"T"), (23, b"Z"), (24, b"\n")):
        text[place::width] = letter * count
    # Delete the last digit of the microseconds and the old end of each line.
    del text[width - 1 :: width]
    del text[width - 2 :: width - 1]
    return text.decode().split("\n")[:-1]


def _lines(values: Sequence[Any]) -> str:
    try:
        return "\n".join((*values, ""))
    except TypeError:
        raise SlowPathError from None


def _as_zeros(lines: str, table: bytes) -> bytes:
    try:
        return lines.encode().translate(table)
    except ValueError:
        raise SlowPathError from None


def _require_valid_times(times: Sequence[str], lines: str) -> None:
    """Raise SlowPathError for times that do not exist."""
    if " 24:" in lines or "T24:" in lines:  # Python 3.13 and later accept it as midnight of the next day
        raise SlowPathError
    try:
        deque(map(datetime.fromisoformat, times), maxlen=0)
    except ValueError:
        raise SlowPathError from None


def uuids(values: Sequence[Any]) -> Sequence[str]:
    """Convert UUIDs like `ids.uuid`."""
    lines = _lines(values)
    lowered = lines.lower()
    if _as_zeros(lowered, _HEX_TO_ZEROS) != _ZERO_UUID * len(values):
        raise SlowPathError
    return values if lowered == lines else lowered.split("\n")[:-1]


def numbers(values: Sequence[Any], least: float, greatest: float) -> Sequence[float]:
    """Convert numbers like `row_validation.number`, all within bounds."""
    kinds = set(map(type, values))
    if not kinds <= _NUMBERS:
        raise SlowPathError
    try:
        floats = values if kinds == {float} else [*map(float, values)]
    except (OverflowError, ValueError):
        raise SlowPathError from None
    if not floats:
        return floats
    # min and max may miss a NaN, the sum cannot. If the sum is finite, so is every number.
    total, lowest = sum(floats), min(floats)
    if isnan(total) or lowest < least:
        raise SlowPathError
    if (greatest < MAX_FLOAT or not isfinite(total)) and max(floats) > greatest:
        raise SlowPathError
    if lowest > 0:
        return floats
    return [value + 0.0 for value in floats]  # minus zero becomes zero


def fill_prices(values: Sequence[Any]) -> Sequence[float | None]:
    """Convert prices of fills like `row_validation.fill_price`."""
    try:
        return numbers(values, PRICE_MIN, PRICE_MAX)
    except SlowPathError:
        present = [value for value in values if value is not None]
    paid = numbers(present, -MAX_FLOAT, MAX_FLOAT)
    shown = (value if PRICE_MIN <= value <= PRICE_MAX else row_validation.fill_price(value) for value in paid)
    return list(shown) if len(present) == len(values) else [None if value is None else next(shown) for value in values]


def level_prices(values: Sequence[Any]) -> list[float]:
    """Convert prices of orders like `row_validation.LevelRow`; rounding clamps them, too."""
    prices = numbers(values, PRICE_MIN - TOLERANCE, PRICE_MAX + TOLERANCE)
    rounded = {price: row_validation.level_price(price) for price in {*prices}}  # many orders share a price
    return [rounded[price] for price in prices]
