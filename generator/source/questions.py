"""Reads questions and their memberships, in the transaction that reads the markets.

Hidden questions, and memberships of hidden questions or markets, never reach memory; of a blocked question, its
memberships' ids do.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from generator.markets import question_rows
from generator.markets.quarantine import Quarantine
from generator.markets.question_rows import GivenQuestion
from generator.source.connection import Row, Transaction
from generator.source.earlier import lower
from generator.source.queries import CHOSEN_AT_MOST, Statements

_DIGEST_SIZE: Final = 16
_MODULUS: Final = 1 << (8 * _DIGEST_SIZE)
_MEMBER: Final = ("label", "position", "payout")


@dataclass(frozen=True)
class QuestionReader:
    """Reads in an open transaction of a database that has both relations.

    `sums` has a digest, as a number, of each row that was read.
    """

    transaction: Transaction
    statements: Statements
    quarantine: Quarantine
    is_extended: bool
    sums: list[int] = field(default_factory=list)

    def blocked_markets(self, blocked: AbstractSet[str]) -> dict[str, list[str]]:
        """The markets with a membership of a blocked question, each with these questions; all by id in lower case.

        Neither question nor market need be visible: what is hidden may be approved tomorrow.
        """
        found = (row for ids in _chunks(sorted(blocked)) for row in self._rows_of(ids))
        return question_rows.blocked_markets(found)

    def _rows_of(self, questions: Sequence[str]) -> Iterator[Row]:
        return self.transaction.rows(self.statements.members_of(questions), "question_members")

    def given(self, blocked: AbstractSet[str] = frozenset()) -> list[GivenQuestion]:
        """The visible questions whose own columns are valid, without those that are blocked (ids in lower case)."""
        rows, unclear = self.rows()
        found = [dict(zip(self._columns(), row, strict=True)) for row in rows if lower(row[0]) not in blocked]
        others = [(key, value) for key, value in unclear if lower(key) not in blocked]
        return question_rows.valid(found, others, self.quarantine)

    def rows(self) -> tuple[list[Row], list[Row]]:
        """The visible questions, and those of which nobody can tell whether they are visible."""
        rows = self.transaction.rows(self.statements.questions(*self._columns()), "questions")
        return [*self._noted(rows)], [*self._noted(self._unclear())]

    def _columns(self) -> tuple[str, ...]:
        return (*question_rows.COLUMNS, *(["slug"] if self.is_extended else []))

    def _unclear(self) -> Iterator[Row]:
        """The approved questions of which nobody can tell whether they are listed: id, and what stands for that."""
        if not self.statements.has_any_boolean:
            return iter(())
        return self.transaction.rows(self.statements.questions("id", "is_listed", unclear=True), "questions")

    def members(self) -> Iterator[Row]:
        """Stream the memberships of visible markets in visible questions, as `questions.gather` takes them.

        PostgreSQL has no statistics of ids in lower case. Where it expects one row, it would compare all pairs: minutes
        rather than a fraction of a second for 20,000 markets.
        """
        is_sqlite = self.transaction.dialect == "sqlite"
        before = [] if is_sqlite else self.transaction.answer(self.statements.nested_loops("off"))
        yield from self._noted(self.transaction.rows(self.statements.question_members(*_MEMBER), "question_members"))
        for held, _ in before:
            self.transaction.answer(self.statements.nested_loops(held))

    def read(self) -> None:
        """Read all rows, so that `digest` knows them."""
        self.rows()
        deque(self.members(), maxlen=0)

    def digest(self) -> str:
        """What stands for all rows of questions and memberships that were read, in whatever order they came."""
        return f"{sum(self.sums) % _MODULUS:x}"

    def _noted(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            digest = blake2b(repr(tuple(row)).encode("utf-8", "replace"), digest_size=_DIGEST_SIZE).digest()
            self.sums.append(int.from_bytes(digest, "big"))
            yield row


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + CHOSEN_AT_MOST] for start in range(0, len(ids), CHOSEN_AT_MOST))
