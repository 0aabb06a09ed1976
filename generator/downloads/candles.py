"""Candles of a market, by day and by hour in UTC, and its price at its close: from its points and fills. Pure.

Prices are those of points, which are probabilities; volume and trades those of fills. A period without a point and
without a fill has no candle, and only periods that are over have one, so a candle changes only if its rows do.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeAlias

from generator.api import times
from generator.api.contract import Closed
from generator.api.downloads import CANDLES, CLOSES
from generator.api.forms import Count, NonNegative, Probability, Timestamp

#: Time and probability.
_Point: TypeAlias = Sequence[Any]
#: The values of a `markets.fills.Fill`.
_Fill: TypeAlias = Sequence[Any]

DAYS, HOURS = CANDLES
#: How long candles of hours are kept, in whole months.
HOURS_KEPT: Final = timedelta(days=90)
_BEFORE_CLOSE: Final = (timedelta(0), timedelta(days=1), timedelta(days=7))
_MONTH: Final = len("2026-10")
#: The characters of a time that tell the period.
_LENGTHS: Final = {DAYS: len("2026-10-31"), HOURS: len("2026-10-31T12")}
_START: Final = "2026-10-31T00:00:00.000Z"


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


class _Market(Protocol):
    @property
    def close_time(self) -> str: ...
    @property
    def resolved_at(self) -> str | None: ...


def closed_at(market: _Market) -> str:
    """When trading ended or will: at `closeTime`, or earlier at `resolvedAt`."""
    return min(market.close_time, market.resolved_at or market.close_time)


def hours_since(as_of: str) -> str:
    """The first month (`2026-10`) whose hours are kept."""
    return _earlier(as_of, HOURS_KEPT)[:_MONTH]


def _earlier(instant: str, time: timedelta) -> str:
    """The instant so long before; '' if that is before all years."""
    try:
        return times.instant(datetime.fromisoformat(instant) - time)
    except OverflowError:
        return ""


def is_over(table: str, time: str, as_of: str) -> bool:
    """Whether the row of a table with this time is final: its period is over, or the market closed."""
    if table == CLOSES:
        return time <= as_of
    length = _LENGTHS[table]
    return time[:length] < as_of[:length]


def derived(
    closing: str, as_of: str, points: Iterable[Sequence[_Point]], fills: Iterable[Sequence[_Fill]]
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of a market that closes at this instant, by table, in order of time: of all periods, over or not.

    `points` and `fills` are in order of time, in batches. Hours are those that are kept at `as_of`.
    """
    days, hours, prices = _Candles(DAYS), _Candles(HOURS, hours_since(as_of)), _Prices(closing)
    for some in points:
        days.add_points(some)
        hours.add_points(some)
        prices.add(some)
    for trades in fills:
        days.add_fills(trades)
        hours.add_fills(trades)
    return {DAYS: [*days.rows()], HOURS: [*hours.rows()], CLOSES: prices.rows()}


class _Candles:
    """The candles of one market in one table, from this text of a time on."""

    def __init__(self, table: str, since: str = "") -> None:
        self._length, self._since = _LENGTHS[table], since
        self._before: float | None = None
        # First, highest, lowest and last price, volume and trades.
        self._periods: dict[str, list[Any]] = {}

    def add_points(self, points: Sequence[_Point]) -> None:
        length, since, periods = self._length, self._since, self._periods
        for time, prob in points:
            if time < since:
                self._before = prob
                continue
            held = periods.get(period := time[:length])
            if held is None:
                periods[period] = [prob, prob, prob, prob, 0.0, 0]
                continue
            if prob > held[1]:
                held[1] = prob
            elif prob < held[2]:
                held[2] = prob
            held[3] = prob

    def add_fills(self, fills: Sequence[_Fill]) -> None:
        for time, _, amount, *_ in fills:
            if time >= self._since:
                held = self._periods.setdefault(time[: self._length], [None, None, None, None, 0.0, 0])
                held[4] += amount
                held[5] += 1

    def rows(self) -> Iterator[tuple[Any, ...]]:
        before = self._before
        for period, (first, high, low, last, volume, trades) in sorted(self._periods.items()):
            start = period + _START[self._length :]
            if first is None:
                yield start, before, before, before, before, volume, trades
                continue
            opening = first if before is None else before
            yield start, opening, max(opening, high), min(opening, low), last, volume, trades
            before = last


class _Prices:
    """The last prices by the instants of a row of `closes`."""

    def __init__(self, closing: str) -> None:
        self._closing = closing
        self._instants = [_earlier(closing, time) for time in _BEFORE_CLOSE]
        self._found: list[float | None] = [None for _ in _BEFORE_CLOSE]

    def add(self, points: Sequence[_Point]) -> None:
        stamps = [time for time, _ in points]
        for place, instant in enumerate(self._instants):
            if number := bisect_right(stamps, instant):
                self._found[place] = points[number - 1][1]

    def rows(self) -> list[tuple[Any, ...]]:
        """The row, if there was a price."""
        return [] if self._found[0] is None else [(self._closing, *self._found)]
