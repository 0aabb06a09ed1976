"""What full histories hold of each market, and what a build read for them. Pure.

A build reads the rows of a market once: for its detail, and for the files of full histories. What these hold already is
known by `HeldRows`: while a market's oldest rows are still those, only the others are passed on. If they are not, as a
row came late, was edited or deleted, all its rows are passed on, and replace those in the files. Candles and closes are
made of the same rows, and passed on once they are over, be it that the market is read then or not.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from generator.downloads import candles, table_rows


class Extent(NamedTuple):
    """How many rows a table has of a market, and a digest of them in order of time."""

    rows: int = 0
    digest: str = ""


class LaterRow(NamedTuple):
    """A row of a table, encoded without its market, that is final if the market stays as it is until it is over."""

    table: str
    text: str

    def is_over(self, as_of: str) -> bool:
        """Whether it belongs to the files by then."""
        return candles.is_over(self.table, self.time, as_of)

    @property
    def time(self) -> str:
        """The time by which it is in order."""
        return table_rows.first_text(self.text)


class HeldRows(NamedTuple):
    """What the files hold of a market: its rows as of this version; None if the database tells none.

    `later` are the candles of periods that were not over, `close` is its row of closes, at the instant `closed_at`,
    which may be to come; it has none if no price is known.
    """

    version: str | None
    history: Extent = Extent()
    fills: Extent = Extent()
    later: tuple[LaterRow, ...] = ()
    closed_at: str = ""
    close: tuple[LaterRow, ...] = ()

    @property
    def has_any(self) -> bool:
        """Whether it has rows."""
        return bool(self.history.rows or self.fills.rows)

    def over(self, last: str, as_of: str) -> list[LaterRow]:
        """The rows that came to be over after the instant `last`."""
        return [row for row in (*self.later, *self.close) if row.is_over(as_of) and not row.is_over(last)]

    def as_of(self, instant: str) -> "HeldRows":
        """The same in files that are as of this instant."""
        return self._replace(later=tuple(row for row in self.later if not row.is_over(instant)))


NOTHING_HELD: Final = HeldRows(None)


@dataclass(frozen=True)
class LastHistories:
    """What the files in place hold as of an instant, by market id.

    Without an instant, nothing is known of them, so they are made anew.
    """

    entries: Mapping[str, HeldRows] = field(default_factory=dict)
    as_of: str = ""

    @property
    def is_first(self) -> bool:
        """Whether they are made anew."""
        return not self.as_of

    def of(self, ids: Iterable[str]) -> "LastHistories":
        """What they hold of these markets."""
        return LastHistories({key: self.entries[key] for key in ids if key in self.entries}, self.as_of)

    def has_other_close(self, market_id: str, closed_at: str) -> bool:
        """Whether they have, or will have, the market's price at another instant than this one, that of its close."""
        held = self.entries.get(market_id)
        return held is not None and held.closed_at != closed_at


class SpoolSegment(NamedTuple):
    """Lines of one table and month, in order: where they are in a spool, and the first and last of their markets."""

    table: str
    month: str
    first: str
    last: str
    offset: int
    size: int
    path: str = ""


@dataclass
class NewHistories:
    """What was read: entries by market id, markets whose rows replace all that the files hold, and where lines are.

    `is_first`: nothing was known of the files in place, so these are all rows of all markets.
    """

    is_first: bool
    entries: dict[str, HeldRows] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    segments: list[SpoolSegment] = field(default_factory=list)

    def beside(self, others: "NewHistories | None") -> "NewHistories":
        """`others`, to which these are added; these if there are none."""
        if others is None:
            return self
        others.entries |= self.entries
        others.replaced += self.replaced
        others.segments += self.segments
        return others

    def stored_at(self, path: str) -> "NewHistories":
        """The same, with its lines in this file."""
        return NewHistories(
            self.is_first, self.entries, self.replaced, [segment._replace(path=path) for segment in self.segments]
        )


def texts(segments: Sequence[SpoolSegment], read: Callable[[SpoolSegment], bytes]) -> Iterator[bytes]:
    """The lines of segments of one table and month, in order; those that overlap are in memory together."""
    for group in _overlapping(sorted(segments, key=lambda one: (one.first, one.last, one.path, one.offset))):
        yield from _interleaved([*map(read, sorted(group, key=lambda one: (one.path, one.offset)))])


def _overlapping(segments: Sequence[SpoolSegment]) -> Iterator[list[SpoolSegment]]:
    group = list[SpoolSegment]()
    for segment in segments:
        if group and max(one.last for one in group) < segment.first:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _interleaved(texts: Sequence[bytes]) -> Iterator[bytes]:
    """The lines of texts that are in order by market; a market that two of them have goes on in the later one."""
    heads = [(table_rows.owner_at(text, 0), number, 0) for number, text in enumerate(texts)]
    heapq.heapify(heads)
    while heads:
        owner, number, start = heapq.heappop(heads)
        text, stop = texts[number], len(texts[number])
        if heads:
            # A database may sort ids in another order than we do, so a few markets lie among those of other parts.
            bisect = bisect_left if owner < heads[0][0] else bisect_right
            place_of = partial(table_rows.owner_at, text)
            stop = bisect(range(len(text)), heads[0][0], start, key=place_of)
        yield text[start:stop]
        if stop < len(text):
            heapq.heappush(heads, (table_rows.owner_at(text, stop), number, stop))
