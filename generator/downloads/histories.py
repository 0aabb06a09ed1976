"""What the files of histories hold of each market, and what a build read for them. Pure.

A build reads the rows of a market once: for its detail, and for these files. What these hold already is
known by `HeldRows`: while a market's oldest rows are still those, only the others are passed on. If they are not, as a
row came late, was edited or deleted, all its rows are passed on, and replace those in the files. Candles and closes are
made of the same rows, and passed on once they are over, be it that the market is read then or not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from generator.downloads import periods


class _Market(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def close_time(self) -> str: ...
    @property
    def resolved_at(self) -> str | None: ...
    @property
    def fx(self) -> object | None: ...


def closing(market: _Market) -> str:
    """When a market closes, if the files hold its rows; '' for a member of an FX family, of which they hold none."""
    return "" if market.fx else periods.closed_at(market.close_time, market.resolved_at)


class Extent(NamedTuple):
    """How many rows a table has of a market, and a digest of them in order of time."""

    rows: int = 0
    digest: str = ""


class LaterRow(NamedTuple):
    """A row of a table, its time and its other values, that is final if the market stays as it is until it is over."""

    table: str
    time: str
    values: tuple[int | float | None, ...]

    def is_over(self, as_of: str) -> bool:
        """Whether it belongs to the files by then."""
        return periods.is_over(self.table, self.time, as_of)


class HeldRows(NamedTuple):
    """What the files hold of a market: its rows as of this version; None if the database tells none.

    `later` are the candles of periods that were not over, `close` is its row of closes, at the instant `closed_at`,
    which may be to come; it has none if no price is known. A member of an FX family has no rows, and no such instant.
    """

    version: str | None
    history: Extent = Extent()
    fills: Extent = Extent()
    later: tuple[LaterRow, ...] = ()
    closed_at: str = ""
    close: tuple[LaterRow, ...] = ()

    @property
    def is_member(self) -> bool:
        """Whether it is a member of an FX family."""
        return not self.closed_at

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

    def has_other_close(self, market: _Market) -> bool:
        """Whether they have, or will have, the market's price at another instant than that of its close.

        So it is with one that joined or left an FX family since.
        """
        held = self.entries.get(market.id)
        return held is not None and held.closed_at != closing(market)


class SpoolSegment(NamedTuple):
    """Rows of one table and month, in order: where they are in a spool, and the first and last of their markets."""

    table: str
    month: str
    first: str
    last: str
    offset: int
    size: int
    path: str = ""


@dataclass
class NewHistories:
    """What was read: entries by market id, markets whose rows replace all that the files hold, and where rows are.

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
        """The same, with its rows in this file."""
        return NewHistories(
            self.is_first, self.entries, self.replaced, [segment._replace(path=path) for segment in self.segments]
        )
