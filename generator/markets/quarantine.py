"""The quarantined rows, each with the reason why it breaks the contract. Pure."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from generator.markets import remedies
from generator.markets.tally import Example, Tally
from generator.wording import counted

#: Distinct rejections kept by name: a table of ten million bad rows must not exhaust memory.
NAMED_AT_MOST: Final = 10_000


class Fault(NamedTuple):
    """The rule that a column of a row breaks, and the value, printable; None if the value says nothing.

    Rules are few: what differs from row to row is in `value`.
    """

    column: str
    rule: str
    value: str | None = None

    def __str__(self) -> str:
        return f"{self.column}: {self.rule}" + ("" if self.value is None else f" ({self.value})")


class _Kind(NamedTuple):
    """What rows with the same fault have in common."""

    relation: str
    column: str
    rule: str


@dataclass(frozen=True, slots=True, order=True)
class Rejection:
    """Why a row is quarantined.

    `key` is the row's id, or its market's if the relation has none; `title` is its human-readable name, if any.
    """

    relation: str
    key: str
    reason: str
    title: str = ""


class Plain(NamedTuple):
    """A quarantine as plain data, which can pass between machines: rejections, rows by relation, and rows by fault."""

    rows: list[tuple[Rejection, int]]
    totals: dict[str, int]
    faults: list[tuple[_Kind, int, Example]]


def _rank(row: Rejection) -> tuple[bool, str, str, str, str]:
    return row.relation != "markets", row.relation, row.key, row.reason, row.title


class Quarantine:
    """Collects rejections, counts equal ones, and groups them by fault.

    The first NAMED_AT_MOST in sort order are kept by name, those of `markets` before all others: the same ones,
    whatever the order or number of parts in which rows are read.
    """

    def __init__(self) -> None:
        self._rows: Counter[Rejection] = Counter()
        self._totals: Counter[str] = Counter()
        self._faults: Tally[_Kind] = Tally()

    def reject(self, relation: str, key: object, *faults: Fault, title: object = "") -> None:
        """Quarantine a row for all its faults."""
        self._totals[relation] += 1
        rejection = Rejection(relation, printable(key), "; ".join(map(str, faults)), printable(title))
        for column, rule, value in faults:
            self._faults.add(_Kind(relation, column, rule), Example(rejection.key, value or ""))
        self._name(rejection, 1)

    def add(self, other: "Quarantine") -> None:
        """Add the rejections of another quarantine."""
        for rejection, count in other:
            self._name(rejection, count)
        self._totals.update(other._totals)  # noqa: SLF001 - of the same class
        self._faults.merge(other._faults)  # noqa: SLF001

    def plain(self) -> Plain:
        """Everything that `of` needs to make an equal quarantine."""
        return Plain([*self], dict(self._totals), [(found.head, found.rows, found.example) for found in self._faults])

    @classmethod
    def of(cls, plain: Plain) -> "Quarantine":
        """The quarantine with this content."""
        made = cls()
        for rejection, rows in plain.rows:
            made._name(rejection, rows)
        made._totals.update(plain.totals)
        for kind, rows, example in plain.faults:
            made._faults.add(kind, example, rows)
        return made

    def _name(self, rejection: Rejection, rows: int) -> None:
        self._rows[rejection] += rows
        if len(self._rows) >= 2 * NAMED_AT_MOST:
            self._kept()

    def _kept(self) -> Counter[Rejection]:
        """Forget all but the first rejections; a forgotten one could never be among the first again."""
        if len(self._rows) > NAMED_AT_MOST:
            self._rows = Counter({row: self._rows[row] for row in heapq.nsmallest(NAMED_AT_MOST, self._rows, _rank)})
        return self._rows

    def total(self, relation: str | None = None) -> int:
        """The number of quarantined rows, of one relation or of all."""
        return self._totals.total() if relation is None else self._totals[relation]

    def faults(self) -> int:
        """The number of faults that rows were quarantined for: a row has one or more."""
        return self._faults.total()

    def named(self, relation: str) -> list[Rejection]:
        """The rejections of one relation that are kept by name."""
        return [rejection for rejection in sorted(self._kept()) if rejection.relation == relation]

    def unnamed(self) -> int:
        """The number of quarantined rows that are not kept by name."""
        return self.total() - self._kept().total()

    def lines(self, relation: str | None = None) -> Iterator[str]:
        """A line for every fault of one relation or of all, with an example and the remedy; the most frequent first."""
        wanted = Tally[_Kind]()
        for kind, rows, example in self._faults:
            if relation in {None, kind.relation}:
                wanted.add(kind, example, rows)
        return wanted.lines(_sentence, "fault that quarantine rows")

    def named_lines(self) -> Iterator[str]:
        """A line for every rejection kept by name, and one for the rest."""
        for row, rows in self:
            times = f" ({counted(rows, 'row', ',')})" if rows > 1 else ""
            yield f"{row.relation}: {row.key}: {row.reason}{times}"
        if self.unnamed():
            yield f"and {counted(self.unnamed(), 'more row', ',')}, only counted"

    def __iter__(self) -> Iterator[tuple[Rejection, int]]:
        """Each rejection kept by name and its number of rows, sorted."""
        return iter(sorted(self._kept().items()))


def _sentence(kind: _Kind, rows: int, example: str) -> str:
    remedy = remedies.of(kind.rule)
    return f"{kind.relation}: {counted(rows, 'row', ',')} quarantined: {kind.column}: {kind.rule} {example}; {remedy}"


def printable(value: object) -> str:
    """Format a database value for a message: at most 80 characters, one line, valid Unicode."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    text = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text[:80])
    return text if len(text) < 80 else f"{text[:79]}…"  # noqa: PLR2004 - the bound three lines up
