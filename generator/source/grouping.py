"""Streams of rows grouped by market, read in step with the stream of markets. It knows no SQL."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeAlias

from generator.errors import SourceError
from generator.markets.batch_validation import BATCH, RelationRows, SlowPathError, Valid
from generator.markets.quarantine import printable
from generator.source.connection import Row

#: Converts the rows of many markets at once, or raises SlowPathError.
Convert: TypeAlias = Callable[[Sequence[Row]], Valid]
_OWNER: Final = itemgetter(0)


class RowsByMarket:
    """The rows of a relation by market, in the order of the stream of markets.

    They arrive in batches, and `convert` is tried on the rows of all the markets in a batch: a call per market would
    cost more than the rows. Of a market with more than `most` rows, they are a stream.
    """

    def __init__(
        self, relation: str, batches: Iterable[list[Row]], convert: Convert | None = None, most: int = BATCH
    ) -> None:
        self._relation = relation
        self._groups = _groups(iter(batches), convert, most)
        self._advance()

    def _advance(self) -> None:
        self._taken = False
        self._owner: object
        self._group: RelationRows
        self._owner, self._group = next(self._groups, (None, ()))

    def of(self, owner: object) -> RelationRows:
        """The rows of one market, each beginning with the market's id; empty if it has none.

        Consume them before asking for those of another market.
        """
        if self._taken:
            self._advance()
        if owner != self._owner:
            return ()
        self._taken = True
        return self._group

    def finish(self) -> None:
        """Raise SourceError if rows were skipped: the database sorts ids in two different orders."""
        if self._taken:
            self._advance()
        if self._owner is not None:
            raise SourceError(
                f"{self._relation}: rows of market {printable(self._owner)} are out of order; "
                "spell its id the same everywhere"
            )


def _groups(batches: Iterator[list[Row]], convert: Convert | None, most: int) -> Iterator[tuple[object, RelationRows]]:
    """Each market's id and rows. The last one of a batch waits for the next batch, which may have more of its rows."""
    waiting = list[Row]()
    for batch in batches:
        rows = waiting + batch
        sizes = _sizes(rows)
        if len(sizes) == 1 and len(rows) > most:
            waiting = []
            long = _long(rows, batches, waiting)
            yield rows[0][0], long
            deque(long, maxlen=0)  # skip what was not consumed
            continue
        end = len(rows) - (sizes.pop()[1] if sizes else 0)
        waiting = rows[end:]
        yield from _parts(rows[:end], sizes, convert, most)
    yield from _parts(waiting, _sizes(waiting), convert, most)


def _sizes(rows: list[Row]) -> list[tuple[object, int]]:
    return [(owner, len([*same])) for owner, same in groupby(map(_OWNER, rows))]


def _long(rows: list[Row], batches: Iterator[list[Row]], others: list[Row]) -> Iterator[Row]:
    """The rows of one market, too many to be held; what follows them in the last batch goes to `others`."""
    owner = rows[0][0]
    yield from rows
    for batch in batches:
        same = next((place for place, row in enumerate(batch) if row[0] != owner), len(batch))
        yield from batch[:same]
        if same < len(batch):
            others += batch[same:]
            return


def _parts(
    rows: list[Row], sizes: Iterable[tuple[object, int]], convert: Convert | None, most: int
) -> Iterator[tuple[object, RelationRows]]:
    """Each market's rows, as many as `sizes` says: converted, unless some must be validated one by one."""
    columns = None
    if convert and rows:
        with suppress(SlowPathError):
            columns = convert(rows).columns
    end = 0
    for owner, size in sizes:
        part = slice(end, end := end + size)
        is_valid = columns is not None and size <= most
        yield owner, Valid(tuple(column[part] for column in columns or ())) if is_valid else rows[part]
