"""Makes the candles of many markets at once, and their prices at their closes, of their points and fills. Pure.

Prices are those of points, which are probabilities; volume and trades those of fills.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from generator.api.downloads import CANDLES, CLOSES, RAW
from generator.downloads import periods, records
from generator.downloads.periods import DAYS, HOURS
from generator.downloads.records import Numbers, Records

_DAY: Final = 86_400_000
_LENGTHS: Final = {DAYS: _DAY, HOURS: 3_600_000}
_BEFORE_CLOSE: Final = (0, _DAY, 7 * _DAY)
#: Amounts are finite, but their sum need not be, and JSON has no infinity.
_GREATEST: Final = math.nextafter(math.inf, 0.0)
#: A number for market and period, and one for market and time, is one of the first times this and one of the second;
#: the second are less than half of it in amount, as years have four digits.
_PERIODS: Final = 1 << 32
_INSTANTS: Final = 1 << 49
#: The most markets that have such numbers.
MOST_MARKETS: Final = 1 << 13


class Grouped(NamedTuple):
    """Rows of a table in order by market, then by time. Market n has those from `starts[n]` to `starts[n + 1]`."""

    table: str
    rows: Records
    owners: Numbers
    starts: Numbers

    @classmethod
    def of(cls, table: str, rows: Records, owners: Numbers, markets: int) -> "Grouped":
        """Group rows whose `owners` ascend, from 0 to `markets`, MOST_MARKETS at most."""
        return cls(table, rows, owners, np.searchsorted(owners, np.arange(markets + 1)))

    @classmethod
    def of_one(cls, table: str, rows: Records) -> "Grouped":
        """Group the rows of one market."""
        return cls.of(table, rows, np.zeros(len(rows), np.int64), 1)

    @property
    def times(self) -> Numbers:
        """The time of each row."""
        return np.asarray(self.rows[records.TIMES[self.table]])

    def of_market(self, number: int) -> Records:
        """The rows of a market."""
        return self.rows[self.starts[number] : self.starts[number + 1]]

    def only(self, chosen: Numbers) -> "Grouped":
        """Some of the rows, of the same markets; `chosen` has a truth value for each row."""
        if chosen.all():
            return self
        return Grouped.of(self.table, self.rows[chosen], self.owners[chosen], len(self.starts) - 1)


def derived(raw: Mapping[str, Grouped], closing: Sequence[str], as_of: str) -> dict[str, Grouped]:
    """Candles and closes of markets, without their ids, by table: of all periods, over or not.

    `raw` are points and fills by table, `closing` is when each market closes. Hours are those that are kept at `as_of`.
    """
    found = {table: _candles(table, *(raw[name] for name in RAW)) for table in CANDLES}
    if since := periods.hours_since(as_of):
        hours = found[HOURS]
        found[HOURS] = hours.only(hours.times >= records.milliseconds([f"{since}-01T00:00:00.000Z"]))
    found[CLOSES] = _closes(raw["history"], closing)
    return found


def are_over(found: Grouped, as_of: str) -> Numbers:
    """Which rows are final at an instant; without one, none is."""
    if not as_of:
        return np.zeros(len(found.rows), bool)
    if found.table == CLOSES:
        return found.times <= records.milliseconds([as_of])
    return found.times < _start(as_of, _LENGTHS[found.table])


def hour_of(instant: str) -> int:
    """When the hour of an instant began."""
    return _start(instant, _LENGTHS[HOURS])


def _start(instant: str, length: int) -> int:
    return int(records.milliseconds([instant])[0]) // length * length


def _candles(table: str, points: Grouped, fills: Grouped) -> Grouped:
    """The candles of every period with a point or a fill."""
    length = _LENGTHS[table]
    in_period, traded_in = _in_periods(points, length), _in_periods(fills, length)
    heads, fill_heads = records.runs(in_period), records.runs(traded_in)
    # Before everything stands a period of no market, for those that no price is known before.
    priced, traded = np.append([-1], in_period[heads]), traded_in[fill_heads]
    probs = np.append([np.nan], points.rows["prob"])
    firsts = np.append([0], heads + 1)
    lasts = probs[np.append(firsts[1:] - 1, len(probs) - 1)]
    highs, lows = np.maximum.reduceat(probs, firsts), np.minimum.reduceat(probs, firsts)

    periods = np.union1d(priced[1:], traded)
    owners = periods // _PERIODS
    latest = np.searchsorted(priced, periods, side="right") - 1
    has_points = priced[latest] == periods
    before = latest - has_points
    opens = np.where(priced[before] // _PERIODS == owners, lasts[before], np.nan)
    opens = np.where(has_points & np.isnan(opens), probs[firsts[latest]], opens)

    found = np.zeros(len(periods), records.TYPES[table])
    found["start"] = (periods % _PERIODS - _PERIODS // 2) * length
    found["open"] = opens
    found["high"] = np.where(has_points, np.fmax(opens, highs[latest]), opens)
    found["low"] = np.where(has_points, np.fmin(opens, lows[latest]), opens)
    found["close"] = np.where(has_points, lasts[latest], opens)
    places = np.searchsorted(periods, traded)
    counts = np.diff(fill_heads, append=len(fills.rows))
    # One after the other, as anybody would add them: the last digits depend on it.
    volumes = np.bincount(np.repeat(places, counts), fills.rows["amount"], len(periods))
    found["volume"] = np.minimum(volumes, _GREATEST)
    found["trades"][places] = counts
    return Grouped.of(table, found, owners, len(points.starts) - 1)


def _in_periods(found: Grouped, length: int) -> Numbers:
    """A number for the market and the period of each row."""
    return np.asarray(found.owners * _PERIODS + found.times // length + _PERIODS // 2)


def _closes(points: Grouped, closing: Sequence[str]) -> Grouped:
    """The row of each market for which a price is known at its close."""
    markets, probs = np.arange(len(closing)), np.append([np.nan], points.rows["prob"])
    closed = records.milliseconds(closing)
    found = np.zeros(len(closing), records.TYPES[CLOSES])
    found["closedAt"] = closed
    numbers = points.owners * _INSTANTS + points.times
    for name, earlier in zip([*records.COLUMNS[CLOSES]][1:], _BEFORE_CLOSE, strict=True):
        places = np.searchsorted(numbers, markets * _INSTANTS + closed - earlier, side="right")
        found[name] = np.where(places > points.starts[:-1], probs[places], np.nan)
    is_known = ~np.isnan(found["prob"])
    return Grouped.of(CLOSES, found[is_known], markets[is_known], len(markets))
