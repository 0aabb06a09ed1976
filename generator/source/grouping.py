"""Streams of rows that the database sends market by market, and what is made of them on the way. It knows no SQL."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from generator.errors import SourceError


class Groups:
    """The rows of a relation, market by market, in step with the stream of markets."""

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
        """The rows of the market, which starts with the market's id; empty when it has none."""
        if self._taken:
            self._advance()
        if owner != self._owner:
            return iter(())
        self._taken = True
        return self._group

    def finish(self) -> None:
        """Make sure that no row was passed over, which a database that sorts ids in two ways would cause."""
        if self._taken:
            self._advance()
        if self._owner is not None:
            raise SourceError(
                f"{self._relation}: rows of market {self._owner!r} came out of order; ids that differ only in case?"
            )
