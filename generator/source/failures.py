"""Finds which column of which relation the database fails to compute, and for which market.

The database's own message names neither. So each column is computed alone, and the markets of one that fails are
bisected. Only public rows are read, as by a build, and only counted.
"""

from collections.abc import Iterator, Mapping

from generator.source.connection import Transaction
from generator.source.queries import EVERYTHING, Range, Statements
from generator.source.relations import QUESTION_RELATIONS


class Failures:
    """Looks for failures in an open transaction, in the `columns` of each relation. May read them several times."""

    def __init__(
        self, transaction: Transaction, statements: Statements, columns: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._transaction = transaction
        self._statements = statements
        self._columns = columns

    def found(self) -> Iterator[str]:
        """One sentence per column that cannot be computed, or per relation where no row can be found."""
        for relation in self._columns:
            yield from self._of(relation)
            if relation == "markets" and self._refusal(relation, "id"):
                return  # all others are joined with it, and fail too

    def _of(self, relation: str) -> Iterator[str]:
        columns = self._columns[relation]
        if not self._refusal(relation, *columns):
            return
        if reason := self._refusal(relation):
            yield f"relation {relation} cannot be read: {reason}; correct the joins and conditions of the view"
            return
        for column in columns:
            if reason := self._refusal(relation, column):
                where = self._first(relation, column)
                yield (
                    f"column {relation}.{column} cannot be read: {reason}{where}; correct it in the view, for example "
                    "with CASE, NULLIF or bounds (greatest, least)"
                )

    def _refusal(self, relation: str, *columns: str, within: Range = EVERYTHING) -> str | None:
        return self._transaction.refusal(self._statements.count_values(relation, *columns, within=within))

    def _first(self, relation: str, column: str) -> str:
        """A market for which the column cannot be computed, in parentheses; empty if none can be found."""
        if relation in QUESTION_RELATIONS or self._refusal("markets", "id"):
            return ""
        ids = [key for (key,) in self._transaction.rows(self._statements.markets("id"), "markets")]
        bounds = [*ids, None]
        start, end = 0, len(ids)
        while end - start > 1:
            middle = (start + end) // 2
            fails = self._refusal(relation, column, within=Range(bounds[start], bounds[middle]))
            start, end = (start, middle) if fails else (middle, end)
        within = Range(bounds[start], bounds[end]) if ids else EVERYTHING
        return f" (market {ids[start]})" if ids and self._refusal(relation, column, within=within) else ""
