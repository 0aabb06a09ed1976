"""Candles of a market, by day and by hour in UTC, and its price at its close: from its points and fills. Pure.

Prices are those of points, which are probabilities; volume and trades those of fills. A period without a point and
without a fill has no candle, and only periods that are over have one, so a candle changes only if its rows do.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from generator.api import times
from generator.api.contract import Closed
from generator.api.downloads import CANDLES, CLOSES
from generator.api.forms import Count, NonNegative, Probability, Timestamp
from generator.downloads import table_rows

#: Time and probability.
_Point: TypeAlias = Sequence[Any]
#: The values of a `markets.fills.Fill`.
_Fill: TypeAlias = Sequence[Any]
#: The values of rows, column by column; the first has their times.
TableColumns: TypeAlias = tuple[Sequence[Any], ...]

DAYS, HOURS = CANDLES
#: How long hourly candles are kept, in whole months.
HOURS_KEPT: Final = timedelta(days=90)
_BEFORE_CLOSE: Final = (timedelta(0), timedelta(days=1), timedelta(days=7))
#: The characters of a time that tell the period.
_LENGTHS: Final = {DAYS: len("2026-10-31"), HOURS: len("2026-10-31T12")}
_START: Final = "2026-10-31T00:00:00.000Z"
#: Amounts are finite, but their sum need not be, and JSON has no infinity.
_GREATEST: Final = math.nextafter(math.inf, 0.0)


class Candle(Closed):
    """What happened in a period, which begins at `start`; a row of `candles/day` or `candles/hour`.

    `open` is the last price before the period or, if there was none, the first one in it; `high` and `low` are the
    greatest and least of `open` and the prices in the period. All are null as long as no price is known.
    """

    start: Timestamp
    open: Probability | None
    high: Probability | None
    low: Probability | None
    close: Probability | None
    volume: NonNegative
    trades: Count


class Close(Closed):
    """A market's price when it closed, a day and a week before; a row of `closes`."""

    closed_at: Timestamp
    prob: Probability
    prob_day_before: Probability | None
    prob_week_before: Probability | None


def closed_at(close_time: str, resolved_at: str | None) -> str:
    """When trading ended or will: at `closeTime`, or earlier at `resolvedAt`."""
    return min(close_time, resolved_at or close_time)


def hours_since(as_of: str) -> str:
    """The first month (`2026-10`) whose hours are kept."""
    return _earlier(as_of, HOURS_KEPT)[: table_rows.MONTH]


def _earlier(instant: str, time: timedelta) -> str:
    """The instant so long before; '' if that is before all years."""
    try:
        return times.instant(datetime.fromisoformat(instant) - time)
    except OverflowError:
        return ""


def over(table: str, times: Sequence[str], as_of: str) -> int:
    """How many rows of a table with these ascending times are final: their period is over, or the market closed."""
    return bisect_right(times, as_of) if table == CLOSES else bisect_left(times, as_of[: _LENGTHS[table]])


def is_over(table: str, time: str, as_of: str) -> bool:
    """Whether the row of a table with this time is final."""
    return over(table, (time,), as_of) == 1


def derived(
    closing: str, as_of: str, points: Iterable[Sequence[_Point]], fills: Iterable[Sequence[_Fill]]
) -> dict[str, TableColumns]:
    """The rows of a market that closes at this instant, by table, in order of time: of all periods, over or not.

    `points` and `fills` are in order of time, in batches. Hours are those that are kept at `as_of`.
    """
    days, hours, prices = _Candles(DAYS), _Candles(HOURS, hours_since(as_of)), _Prices(closing)
    for some in filter(None, points):
        stamps, probs = zip(*some, strict=True)
        for taker in (days, hours, prices):
            taker.add_points(stamps, probs)
    for some in filter(None, fills):
        stamps, _, amounts, *_ = zip(*some, strict=True)
        days.add_fills(stamps, amounts)
        hours.add_fills(stamps, amounts)
    return {DAYS: days.columns(), HOURS: hours.columns(), CLOSES: prices.columns()}


class _Candles:
    """The candles of one market in one table, from this text of a time on. All values are by period."""

    def __init__(self, table: str, since: str = "") -> None:
        self._length, self._since = _LENGTHS[table], since
        self._before: float | None = None
        self._first: float | None = None
        self._highs, self._lows, self._lasts = dict[str, float](), dict[str, float](), dict[str, float]()
        self._volumes, self._trades = dict[str, float](), dict[str, int]()

    def add_points(self, stamps: Sequence[str], probs: Sequence[float]) -> None:
        first = bisect_left(stamps, self._since)
        if first:
            self._before = probs[first - 1]
        if self._first is None and first < len(probs):
            self._first = probs[first]
        highs, lows, lasts = self._highs, self._lows, self._lasts
        for period, start, stop in self._runs(stamps, first):
            last = high = low = probs[stop - 1]
            if stop - start > 1:
                high, low = max(probs[start:stop]), min(probs[start:stop])
            # The first period may have begun in the batch before.
            highs[period] = max(high, highs[period]) if period in highs else high
            lows[period] = min(low, lows[period]) if period in lows else low
            lasts[period] = last

    def add_fills(self, stamps: Sequence[str], amounts: Sequence[float]) -> None:
        volumes, trades = self._volumes, self._trades
        for period, start, stop in self._runs(stamps, bisect_left(stamps, self._since)):
            volume = volumes.get(period, 0.0)
            for amount in amounts[start:stop]:
                volume += amount
            volumes[period] = volume
            trades[period] = trades.get(period, 0) + stop - start

    def _runs(self, stamps: Sequence[str], first: int) -> Iterator[tuple[str, int, int]]:
        """Each period from the `first` row on, and where its rows begin and end."""
        ends = {stamp[: self._length]: place for place, stamp in enumerate(stamps[first:], first + 1)}
        start = first
        for period, stop in ends.items():
            yield period, start, stop
            start = stop

    def columns(self) -> TableColumns:
        lasts, volumes, trades = self._lasts, self._volumes, self._trades
        periods = [*lasts] if volumes.keys() <= lasts.keys() else sorted({*lasts, *volumes})
        opens, price = list[Any](), self._before
        for period in periods:
            if price is None and period in lasts:
                price = self._first
            opens.append(price)
            price = lasts.get(period, price)
        both, rest = [*zip(periods, opens, strict=True)], _START[self._length :]
        highs, lows = self._highs, self._lows
        return (
            [period + rest for period in periods],
            opens,
            [opening if (high := highs.get(period)) is None or high < opening else high for period, opening in both],
            [opening if (low := lows.get(period)) is None or low > opening else low for period, opening in both],
            [lasts.get(period, opening) for period, opening in both],
            [min(volumes.get(period, 0.0), _GREATEST) for period in periods],
            [trades.get(period, 0) for period in periods],
        )


class _Prices:
    """The last prices by the instants of a row of `closes`."""

    def __init__(self, closing: str) -> None:
        self._closing = closing
        self._instants = [_earlier(closing, time) for time in _BEFORE_CLOSE]
        self._found: list[float | None] = [None for _ in _BEFORE_CLOSE]

    def add_points(self, stamps: Sequence[str], probs: Sequence[float]) -> None:
        for place, instant in enumerate(self._instants):
            if number := bisect_right(stamps, instant):
                self._found[place] = probs[number - 1]

    def columns(self) -> TableColumns:
        """The row, if there was a price."""
        values = (self._closing, *self._found)
        return tuple([value] if self._found[0] is not None else [] for value in values)
