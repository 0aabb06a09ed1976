"""What candles of a market are, by day and by hour in UTC, and its price at its close; and which file has a row. Pure.

A period without a point and without a fill has no candle, and only periods that are over have one, so a candle changes
only if its rows do. `derivation` makes them. Where fills are not published, a candle has neither volume nor trades: of
one trade, they would tell the amount.
"""

from collections.abc import Container
from datetime import datetime, timedelta
from typing import Final

from generator.api import forms
from generator.api.downloads import CANDLES, CLOSES

DAYS, HOURS = CANDLES
#: How long hourly candles are kept, in whole months.
HOURS_KEPT: Final = timedelta(days=90)
#: The characters of a time that tell the period.
_DAY: Final = len("2026-10-31")
_LENGTHS: Final = {DAYS: _DAY, HOURS: len("2026-10-31T12")}
_YEAR: Final = len("2026")
#: The characters of a time that tell the month.
MONTH: Final = len("2026-10")


def closed_at(close_time: str, resolved_at: str | None) -> str:
    """When trading ended or will: at `closeTime`, or earlier at `resolvedAt`."""
    return min(close_time, resolved_at or close_time)


def hours_since(as_of: str) -> str:
    """The first month (`2026-10`) whose hours are kept; '' if that is before all years."""
    try:
        return forms.instant(datetime.fromisoformat(as_of) - HOURS_KEPT)[:MONTH]
    except OverflowError:
        return ""


def is_over(table: str, time: str, as_of: str) -> bool:
    """Whether the row of a table with this time is final: its period is over, or the market closed."""
    return time <= as_of if table == CLOSES else time < as_of[: _LENGTHS[table]]


def period(month: str, as_of: str, years: Container[str]) -> str:
    """The period that a month belongs to: its year, if that is over or among these `years`.

    Once the months of a year were put together, they stay so, even if a clock was ahead then.
    """
    year = month[:_YEAR]
    return year if year < as_of[:_YEAR] or year in years else month


def is_running(period: str, as_of: str) -> bool:
    """Whether rows may still come into a period as time goes on, so that its file has parts."""
    return len(period) > _YEAR and period >= as_of[:MONTH]


def is_due(last: str, as_of: str) -> bool:
    """Whether a build is of another day, in UTC, than the last files, by the instants of both."""
    # Not only of a later day: after one build by a clock that was ahead, the files would stay until its date.
    return as_of[:_DAY] != last[:_DAY]
