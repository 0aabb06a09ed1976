"""Streams of rows grouped by market, read in step with the stream of markets. It knows no SQL."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from generator.errors import SourceError
from generator.markets.quarantine import printable


class Groups:
    """The rows of a relation by market, in the order of the stream of markets."""

    def __init__(self, relation: str, stream: Iterable[Sequence[Any]]) -> None:
        self._relation = relation
        self._groups = groupby(stream, key=itemgetter(0))
        self._advance()

    def _advance(self) -> None:
        self._taken = False
        self._owner: object
        self._group: Iterator[Sequence[Any]]
        self._owner, self._group = next(self._groups, (None, iter(())))

    def of(self, owner: object) -> Iterator[Sequence[Any]]:
        """The rows of one market, each beginning with the market's id; empty if it has none."""
        if self._taken:
            self._advance()
        if owner != self._owner:
            return iter(())
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
