"""What full histories hold of each market, and what a build read for them. Pure.

A build reads the rows of a market once: for its detail, and for the files of full histories. What these hold already is
known by `HeldRows`: while a market's oldest rows are still those, only the others are passed on. If they are not, as a
row came late, was edited or deleted, all its rows are passed on, and replace those in the files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from generator.downloads import table_rows


class Extent(NamedTuple):
    """How many rows a table has of a market, and a digest of them in order of time."""

    rows: int = 0
    digest: str = ""


class HeldRows(NamedTuple):
    """What the files hold of a market: its rows as of this version; None if the database tells none."""

    version: str | None
    history: Extent = Extent()
    fills: Extent = Extent()

    @property
    def is_empty(self) -> bool:
        """Whether they hold no row of it."""
        return not (self.history.rows or self.fills.rows)


NOTHING_HELD: Final = HeldRows(None)


@dataclass(frozen=True)
class LastHistories:
    """What the files in place hold, by market id. `is_first`: nothing is known of them, so they are made anew."""

    entries: Mapping[str, HeldRows] = field(default_factory=dict)
    is_first: bool = True

    def of(self, ids: Iterable[str]) -> "LastHistories":
        """What they hold of these markets."""
        return LastHistories({key: self.entries[key] for key in ids if key in self.entries}, self.is_first)


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
    """The lines of segments of one table and month, in order; unless they overlap, one at a time is in memory."""
    for group in _overlapping(sorted(segments, key=lambda one: (one.first, one.last, one.path, one.offset))):
        yield from table_rows.merged(group[0].table, [map(read, [segment]) for segment in group])


def _overlapping(segments: Sequence[SpoolSegment]) -> Iterator[list[SpoolSegment]]:
    group = list[SpoolSegment]()
    for segment in segments:
        if group and max(one.last for one in group) >= segment.first and not _continues(group, segment):
            group.append(segment)
        else:
            if group:
                yield group
            group = [segment]
    if group:
        yield group


def _continues(group: Sequence[SpoolSegment], segment: SpoolSegment) -> bool:
    """Whether a segment goes on with the rows of the market that the one before it ended with."""
    before = group[-1]
    return len(group) == 1 and (before.path, before.last) == (segment.path, segment.first)
