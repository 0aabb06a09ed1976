"""Collects every point and fill of the markets that are read, sorted, and candles, for the files of full histories.

Lines go into a file without a name, so a part can be rendered on any machine. A market with very many rows is sorted in
pieces on the disk. What remains in memory, when files are put together, are the rows of one market and month.
"""

import heapq
import marshal
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import groupby, islice
from operator import itemgetter
from typing import IO, Any, Final, NamedTuple, Self, TypeAlias

from generator.api.downloads import CLOSES
from generator.downloads import candles, table_rows
from generator.downloads.candles import TableColumns
from generator.downloads.histories import (
    NOTHING_HELD,
    Extent,
    HeldRows,
    LastHistories,
    LaterRow,
    NewHistories,
    SpoolSegment,
)
from generator.markets.market import Market

#: The values of a row, its time first.
_Row: TypeAlias = Sequence[Any]

#: Rows of one market that are sorted in memory.
PIECE: Final = 100_000
#: Bytes of lines that are held before they are written, sorted.
ROOM: Final = 16_000_000
_BATCH: Final = 2_000
_DIGEST_BYTES: Final = 12
_TIME: Final = itemgetter(0)
_ID: Final = itemgetter(1)


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
        self._points, self._fills = _Sorted(), _Sorted(_order_by_id)

    def points(self, rows: Iterable[_Row]) -> None:
        """Take points: time and probability."""
        self._points.add(rows)

    def fills(self, rows: Iterable[_Row]) -> None:
        """Take fills, in the order of `markets.fills.Fill`."""
        self._fills.add(rows)

    def finish(self, market: Market) -> None:
        """End the market; of a member of an FX family, the files hold nothing."""
        points, fills = self._points, self._fills
        self._begin()
        version = market.fingerprint.version if market.fingerprint else None
        with points, fills, _once(fills) as unique:
            if market.fx is not None:
                self._found.entries[market.id] = HeldRows(version)
                return
            raw = {"history": _Lines("history", points), "fills": _Lines("fills", unique)}
            closing = candles.closed_at(market.close_time, market.resolved_at)
            before = self._before.entries.get(market.id, NOTHING_HELD)
            if (
                before.has_any
                and closing == before.closed_at
                and all(lines.are(getattr(before, table)) for table, lines in raw.items())
            ):
                self._found.entries[market.id] = before._replace(version=version)
                return
            made = candles.derived(closing, self._as_of, _batches(points), _batches(unique))
            close = _later(CLOSES, made[CLOSES])
            is_kept = before.has_any and self._has_gone_on(before, raw, close)
            if before.has_any and not is_kept:
                self._found.replaced.append(market.id)
                before = NOTHING_HELD
            extents = {
                table: lines.pass_on(self._spool, market.id, getattr(before, table).rows)
                for table, lines in raw.items()
            }
            last = self._before.as_of if is_kept else ""
            later = [row for table in made for row in self._pass_on(market.id, table, made[table], last)]
            self._found.entries[market.id] = HeldRows(
                version, **extents, later=tuple(later), closed_at=closing, close=close
            )

    def _has_gone_on(self, before: HeldRows, raw: Mapping[str, "_Lines"], close: tuple[LaterRow, ...]) -> bool:
        """Whether the market has the rows that the files hold, and others only of periods that were not over then."""
        last = self._before.as_of
        for table, lines in raw.items():
            extent = getattr(before, table)
            time = lines.time_at(extent.rows)
            if not lines.begin_with(extent) or (time and candles.is_over(candles.HOURS, time, last)):
                return False
        then, now = ([row for row in rows if row.is_over(last)] for rows in (before.close, close))
        return then == now

    def _pass_on(self, market_id: str, table: str, columns: TableColumns, last: str) -> Sequence[LaterRow]:
        """Put rows of candles or closes into the spool that are over, but were not at the instant `last`.

        Returns the candles that are not over.
        """
        start, stop = (candles.over(table, columns[0], instant) for instant in (last, self._as_of))
        over = [column[start:stop] for column in columns]
        self._spool.add_rows(table, market_id, over[0], table_rows.encoded(table, over))
        return () if table == CLOSES else _later(table, [column[stop:] for column in columns])

    def close(self) -> tuple[NewHistories, IO[bytes]]:
        """All that was collected, and the spool with its lines."""
        self._found.segments = self._spool.close()
        return self._found, self._spool.file


def _later(table: str, columns: Sequence[Sequence[Any]]) -> tuple[LaterRow, ...]:
    return tuple(LaterRow(table, text.decode()) for text in table_rows.encoded(table, columns))


class _Sorted:
    """Rows in order, as often as they are asked for; no more than PIECE of them are in memory while they come."""

    def __init__(self, order: Any = None) -> None:
        self._order = order
        self.unsorted = list[_Row]()
        self._pieces = list[IO[bytes]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for piece in self._pieces:
            piece.close()

    @property
    def in_memory(self) -> bool:
        """Whether all of them are."""
        return not self._pieces

    def has_all_once(self) -> bool:
        """Whether no two rows have the same id, as far as one can tell in memory."""
        return self.in_memory and len({*map(_ID, self.unsorted)}) == len(self.unsorted)

    def add(self, rows: Iterable[_Row]) -> None:
        """Add rows."""
        self.unsorted += rows
        if len(self.unsorted) < PIECE:
            return
        self.unsorted.sort(key=self._order)
        piece = tempfile.TemporaryFile()  # noqa: SIM115 - `__exit__` closes it
        for start in range(0, len(self.unsorted), _BATCH):
            marshal.dump(self.unsorted[start : start + _BATCH], piece)
        self._pieces.append(piece)
        self.unsorted = []

    def __iter__(self) -> Iterator[_Row]:
        self.unsorted.sort(key=self._order)
        if self.in_memory:
            return iter(self.unsorted)
        return heapq.merge(*map(_read, self._pieces), self.unsorted, key=self._order)


def _read(piece: IO[bytes]) -> Iterator[_Row]:
    piece.seek(0)
    while True:
        try:
            yield from marshal.load(piece)  # noqa: S302 - this process wrote it, into a file without a name
        except EOFError:
            return


def _order_by_id(fill: _Row) -> Any:
    time, fill_id, amount, shares, price = fill
    return fill_id, time, amount, shares, price is None, price or 0.0


@contextmanager
def _once(fills: _Sorted) -> Iterator[_Sorted]:
    """Each id once, by time: the newest fill that has it, and of several the first."""
    with _Sorted() as found:
        if fills.has_all_once():
            found.add(fills.unsorted)
        else:
            for _, same in groupby(fills, key=_ID):
                rows = [*same]
                newest = max(map(_TIME, rows))
                found.add([next(row for row in rows if row[0] == newest)])
        yield found


def _batches(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    remaining = iter(rows)
    while batch := [*islice(remaining, _BATCH)]:
        yield batch


class _Lines:
    """The rows of one market in a table, encoded."""

    def __init__(self, table: str, rows: _Sorted) -> None:
        self._table = table
        # Nearly all markets have few, which need not be encoded twice.
        self._batches = [*_encoded(table, rows)] if rows.in_memory else _Again(table, rows)

    def begin_with(self, before: Extent) -> bool:
        """Whether the oldest rows are these."""
        return self._extent(before.rows) == before if before.rows else True

    def _extent(self, limit: int) -> Extent:
        digest, count = blake2b(digest_size=_DIGEST_BYTES), 0
        for _, texts in self._batches:
            part = texts[: limit - count]
            count += len(part)
            digest.update(b"\n".join([*part, b""]))
            if count == limit:
                break
        return Extent(count, digest.hexdigest() if count else "")

    def are(self, before: Extent) -> bool:
        """Whether the rows are these, and no more."""
        return not self.time_at(before.rows) and self.begin_with(before)

    def time_at(self, place: int) -> str:
        """The time of the row that so many others are before; '' if there are no more."""
        for times, _ in self._batches:
            if place < len(times):
                return times[place]
            place -= len(times)
        return ""

    def pass_on(self, spool: "_Spool", market_id: str, skip: int) -> Extent:
        """Put all rows but the oldest ones into the spool; return the extent of all."""
        digest, count = blake2b(digest_size=_DIGEST_BYTES), 0
        for times, texts in self._batches:
            digest.update(b"\n".join([*texts, b""]))
            start = min(len(texts), max(0, skip - count))
            count += len(texts)
            spool.add_rows(self._table, market_id, times[start:], texts[start:])
        return Extent(count, digest.hexdigest() if count else "")


def _encoded(table: str, rows: _Sorted) -> Iterator[tuple[Sequence[str], list[bytes]]]:
    """The times and texts of rows, batch by batch."""
    for batch in _batches(rows):
        times, *values = zip(*batch, strict=True)
        columns = [times, *values] if table == "history" else [*values, times]
        yield times, table_rows.encoded(table, columns)


class _Again(NamedTuple):
    """Encodes rows as often as they are asked for."""

    table: str
    rows: _Sorted

    def __iter__(self) -> Iterator[Any]:
        return _encoded(self.table, self.rows)


class _Spool:
    """Lines of many markets, in a file, in segments of one table and month each."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(ROOM)  # noqa: SIM115
        self._held: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
        self._size = 0
        self._segments = list[SpoolSegment]()

    def add_rows(self, table: str, market_id: str, times: Sequence[str], texts: Sequence[bytes]) -> None:
        """Add encoded rows of a market, in order of their times."""
        start = 0
        while start < len(texts):
            month = times[start][: table_rows.MONTH]
            stop = bisect_left(times, f"{month}~", start)
            self._add(table, month, market_id, table_rows.lines(market_id, texts[start:stop]))
            start = stop

    def _add(self, table: str, month: str, market_id: str, text: bytes) -> None:
        self._held.setdefault((table, month), []).append((market_id, text))
        self._size += len(text)
        if self._size >= ROOM:
            self._write()

    def _write(self) -> None:
        for (table, month), held in sorted(self._held.items()):
            # A database may sort ids in another order than we do.
            held.sort(key=itemgetter(0))
            text = b"".join([part for _, part in held])
            offset = self.file.tell()
            self.file.write(text)
            self._segments.append(SpoolSegment(table, month, held[0][0], held[-1][0], offset, len(text)))
        self._held, self._size = {}, 0

    def close(self) -> list[SpoolSegment]:
        """Write what is held; return where everything is."""
        self._write()
        self.file.seek(0)
        return self._segments
