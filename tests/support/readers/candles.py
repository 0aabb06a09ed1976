"""Candles and prices at closes by a plain computation, for tests: with datetimes, one period after the other."""

import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add, itemgetter
from typing import Any, NamedTuple

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
BEGINNING = datetime.min.replace(tzinfo=UTC)


class History(NamedTuple):
    """The points of one market (time, probability) and its fills (time, id, amount), in order."""

    points: Sequence[tuple[datetime, float]]
    fills: Sequence[tuple[datetime, str, float]]

    def price(self, moment: datetime) -> float | None:
        """The last price at a moment."""
        number = bisect_right(self.points, moment, key=itemgetter(0))
        return self.points[number - 1][1] if number else None

    def candles(self, length: timedelta, as_of: datetime) -> Iterator[tuple[Any, ...]]:
        """Start, open, high, low, close, volume and trades of every period that is over."""
        periods = defaultdict[datetime, tuple[list[float], list[float]]](lambda: ([], []))
        for time, prob in self.points:
            periods[floor(time, length)][0].append(prob)
        for time, _, amount in self.fills:
            periods[floor(time, length)][1].append(amount)
        for start, (prices, amounts) in sorted(periods.items()):
            if start <= as_of - length:
                earlier = bisect_left(self.points, start, key=itemgetter(0))
                shown = [self.points[earlier - 1][1], *prices] if earlier else prices
                ends = (shown[0], max(shown), min(shown), shown[-1]) if shown else (None,) * 4
                yield start, *ends, min(reduce(add, amounts, 0.0), sys.float_info.max), len(amounts)

    def closes(self, closed_at: datetime, as_of: datetime) -> Iterator[tuple[Any, ...]]:
        """The instant of the close, the price then, a day and a week before; nothing as long as it is to come."""
        if closed_at <= as_of and self.price(closed_at) is not None:
            moments = (closed_at - days * DAY for days in (0, 1, 7) if closed_at - BEGINNING >= days * DAY)
            prices = [*map(self.price, moments)]
            yield closed_at, *prices, *[None] * (3 - len(prices))


def floor(time: datetime, length: timedelta) -> datetime:
    """The start of the period, a day or an hour."""
    hour = time.replace(minute=0, second=0, microsecond=0)
    return hour.replace(hour=0) if length == DAY else hour


def hours_since(as_of: datetime) -> datetime:
    """The first hour that is kept."""
    return floor(as_of - 90 * DAY, DAY).replace(day=1)
