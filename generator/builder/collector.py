"""Collects every point and fill of the markets that are read, sorted, and candles, for the files of histories.

Rows go into a file without a name, so a part can be rendered on any machine. Markets are taken in groups, as NumPy is
fast with many rows at once; a group, and one larger market with it, is what is in memory.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import IO, Any, Final, NamedTuple, TypeAlias

import numpy as np

from generator.api.downloads import CLOSES, RAW
from generator.downloads import derivation, histories, records
from generator.downloads.derivation import Grouped
from generator.downloads.histories import (
    NOTHING_HELD,
    HeldRows,
    LastHistories,
    LaterRow,
    NewHistories,
    SpoolSegment,
)
from generator.downloads.records import Numbers, Records
from generator.markets.fills import Fill
from generator.markets.market import Market

#: The values of a row, its time first.
_Row: TypeAlias = Sequence[Any]

#: Rows of a group, more or less; so many become records at a time.
GROUP: Final = 50_000
#: Bytes of rows that are held before they are written.
ROOM: Final = 16_000_000
#: The number of all markets that are left out.
_NOBODY: Final = -1
#: What became of the rows of a market.
_NEW, _UNCHANGED, _GOES_ON, _REPLACED = range(4)
#: The values of the rows that are collected, in order.
_VALUES: Final[Mapping[str, Sequence[str]]] = {"history": ("timestamp", "prob"), "fills": Fill._fields}


class Collector:
    """Collects the rows of one market after the other; `before` is what the files hold of them.

    `points` and `fills` take valid rows of the current market, in any order and in wire values; `finish` ends it. The
    files will be as of the instant `as_of`, a wire timestamp.
    """

    def __init__(self, before: LastHistories, as_of: str) -> None:
        self._before, self._as_of = before, as_of
        self._spool = _Spool()
        self._found = NewHistories(before.is_first)
        self._begin()

    def _begin(self) -> None:
        self._markets = list[_Collected]()
        self._points, self._fills = (_Taken(table) for table in RAW)

    def points(self, rows: Iterable[_Row]) -> None:
        """Take points: time and probability."""
        self._points.add(rows)

    def fills(self, rows: Iterable[_Row]) -> None:
        """Take fills, in the order of `markets.fills.Fill`."""
        self._fills.add(rows)

    def finish(self, market: Market) -> None:
        """End the market; of a member of an FX family, the files hold nothing."""
        version = market.fingerprint.version if market.fingerprint else None
        closing = histories.closing(market)
        number = len(self._markets) if closing else _NOBODY
        self._points.end(number)
        self._fills.end(number)
        if closing:
            self._markets.append(_Collected(market.id, version, closing))
        else:
            self._found.entries[market.id] = HeldRows(version)
        if self._points.count + self._fills.count >= GROUP or len(self._markets) == derivation.MOST_MARKETS:
            self._pass_on()

    def close(self) -> tuple[NewHistories, IO[bytes]]:
        """All that was collected, and the spool with its rows."""
        self._pass_on()
        self._found.segments = self._spool.close()
        return self._found, self._spool.file

    def _pass_on(self) -> None:
        """Put what is new of the collected markets into the spool, and begin anew."""
        if self._markets:
            self._add(_Group.of(self._markets, (self._points, self._fills)))
        self._begin()

    def _add(self, group: "_Group") -> None:
        made = group.derived(self._as_of)
        kinds = np.empty(len(group.markets), np.int8)
        skipped = {table: found.starts[:-1].copy() for table, found in group.raw.items()}
        for number, (market, held) in enumerate(zip(group.markets, group.held(made, self._as_of), strict=True)):
            before = self._before.entries.get(market.market_id, NOTHING_HELD)
            kinds[number] = kind = self._became(before, held, group, number)
            is_same = kind == _UNCHANGED
            self._found.entries[market.market_id] = before._replace(version=market.version) if is_same else held
            if kind == _REPLACED:
                self._found.replaced.append(market.market_id)
            if kind in (_UNCHANGED, _GOES_ON):
                for table, starts in skipped.items():
                    starts[number] += getattr(before, table).rows
        for table, found in group.raw.items():
            self._spool.add(found.only(np.arange(len(found.rows)) >= skipped[table][found.owners]))
        for found in made.values():
            kind_of_row = kinds[found.owners]
            was_over = derivation.are_over(found, self._before.as_of) & (kind_of_row == _GOES_ON)
            is_over = derivation.are_over(found, self._as_of) & (kind_of_row != _UNCHANGED)
            self._spool.add(found.only(is_over & ~was_over))

    def _became(self, before: HeldRows, now: HeldRows, group: "_Group", number: int) -> int:
        """What became of a market's rows since `before`."""
        if not before.has_any:
            return _NEW
        if now._replace(version=before.version, later=before.later, close=before.close) == before:
            return _UNCHANGED
        last = self._before.as_of
        for table, found in group.raw.items():
            rows, extent = found.of_market(number), getattr(before, table)
            times = found.times[found.starts[number] + extent.rows : found.starts[number + 1]]
            is_late = len(times) and times[0] < derivation.hour_of(last)
            if is_late or records.extent(rows[: extent.rows]) != extent:
                return _REPLACED
        then, closed = ([row for row in rows if row.is_over(last)] for rows in (before.close, now.close))
        return _GOES_ON if then == closed else _REPLACED


class _Collected(NamedTuple):
    """A market whose rows were taken."""

    market_id: str
    version: str | None
    closing: str


class _Group(NamedTuple):
    """Markets, ascending by id, with these ids; their points and fills by table."""

    markets: Sequence[_Collected]
    ids: Numbers
    raw: Mapping[str, Grouped]

    @classmethod
    def of(cls, collected: Sequence[_Collected], taken: Iterable["_Taken"]) -> "_Group":
        """Group what was taken of these markets, in this order."""
        # A database may sort ids in another order than we do.
        places = sorted(range(len(collected)), key=lambda place: collected[place].market_id)
        markets = [collected[place] for place in places]
        ids = np.array([market.market_id for market in markets], records.ID)
        return cls(markets, ids, {one.table: one.grouped(places, ids) for one in taken})

    def derived(self, as_of: str) -> dict[str, Grouped]:
        """Candles and closes."""
        found = derivation.derived(self.raw, [market.closing for market in self.markets], as_of)
        for table in found.values():
            table.rows[records.OWNER] = self.ids[table.owners]
        return found

    def held(self, made: Mapping[str, Grouped], as_of: str) -> Iterator[HeldRows]:
        """What the files would hold of each market, if they had all that is over."""
        later = _later(
            found.only(~derivation.are_over(found, as_of)) for table, found in made.items() if table != CLOSES
        )
        closes = _later([made[CLOSES]])
        for number, market in enumerate(self.markets):
            extents = {table: records.extent(found.of_market(number)) for table, found in self.raw.items()}
            yield HeldRows(
                market.version, **extents, later=(*later[number],), closed_at=market.closing, close=(*closes[number],)
            )


def _later(tables: Iterable[Grouped]) -> Mapping[int, list[LaterRow]]:
    """These rows by the number of their market."""
    found = defaultdict[int, list[LaterRow]](list)
    for table in tables:
        for number, row in zip(table.owners.tolist(), records.values(table.table, table.rows), strict=True):
            found[number].append(LaterRow(table.table, row[0], row[1:]))
    return found


class _Taken:
    """The rows of one table that were taken, of one market after the other; `count` is their number."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.count = 0
        self._rows = list[_Row]()
        self._pieces = list[Records]()
        self._ended = 0
        self._markets = list[tuple[int, int]]()

    def add(self, rows: Iterable[_Row]) -> None:
        """Add rows."""
        before = len(self._rows)
        self._rows += rows
        self.count += len(self._rows) - before
        if len(self._rows) >= GROUP:
            self._convert()

    def _convert(self) -> None:
        # Records take less memory than objects.
        self._pieces.append(records.of(self.table, self._rows, _VALUES[self.table]))
        self._rows = []

    def end(self, number: int) -> None:
        """Those since the last end are of the market with this number."""
        self._markets.append((number, self.count - self._ended))
        self._ended = self.count

    def grouped(self, order: Sequence[int], ids: Numbers) -> Grouped:
        """The rows of the markets with these numbers, in this order, and with these `ids`; each fill once."""
        self._convert()
        rows, self._pieces = np.concatenate(self._pieces), []
        numbers, counts = np.array(self._markets).T
        places = np.full(len(order) + 1, _NOBODY)  # the last one is that of number -1
        places[order] = np.arange(len(order))
        owners = np.repeat(places[numbers], counts)
        if (is_left_out := owners == _NOBODY).any():
            rows, owners = rows[~is_left_out], owners[~is_left_out]
        if self.table == "fills" and len({*rows["id"].tolist()}) < len(rows):
            newest = _newest(rows, owners)
            rows, owners = rows[newest], owners[newest]
        rows[records.OWNER] = ids[owners]
        ascending = np.lexsort([rows[records.TIES[self.table]], rows[records.TIMES[self.table]], owners])
        return Grouped.of(self.table, rows[ascending], owners[ascending], len(order))


def _newest(fills: Records, owners: Numbers) -> Numbers:
    """Where each id of a market is once: the newest fill that has it, and of several the first."""
    prices, shares, amounts = fills["price"], fills["shares"], fills["amount"]
    order = np.lexsort(
        [np.nan_to_num(prices), np.isnan(prices), shares, amounts, -fills["timestamp"], fills["id"], owners]
    )
    ids, owners = fills["id"][order], owners[order]
    newest: Numbers = order[np.append([True], (ids[1:] != ids[:-1]) | (owners[1:] != owners[:-1]))]
    return newest


class _Spool:
    """Rows of many markets, in a file, in segments of one table and month each."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(ROOM)  # noqa: SIM115
        self._segments = list[SpoolSegment]()

    def add(self, found: Grouped) -> None:
        """Add rows."""
        months = records.months(found.table, found.rows)
        order = np.argsort(months, kind="stable")
        heads = records.runs(months[order])
        for start, stop in pairwise([*heads.tolist(), len(order)]):
            rows = found.rows[order[start:stop]]
            first, last = (rows[place][records.OWNER].decode() for place in (0, -1))
            month, offset = records.month(months[order[start]]), self.file.tell()
            size = self.file.write(rows.tobytes())
            self._segments.append(SpoolSegment(found.table, month, first, last, offset, size))

    def close(self) -> list[SpoolSegment]:
        """Where everything is."""
        self.file.seek(0)
        return self._segments
