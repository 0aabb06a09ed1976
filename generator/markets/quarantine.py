"""The quarantined rows, each with the reason why it breaks the contract. Pure."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple, TypeAlias

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from generator.api import keys
from generator.findings import Finding, FindingCounts
from generator.wording import counted, escaped

#: Distinct rows kept by name: a table of ten million bad rows must not exhaust memory.
NAMED_AT_MOST: Final = 10_000

#: What kinds of faults are called that are not shown.
REST: Final = "fault that quarantine rows"

#: What names rows: relation, key, reason and title.
_Name: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """A row that breaks the contract; `rows` counts those with the same key, title and reason.

    `key` is the row's id, or its market's if it has none, or else its title in quotes; `title` is its human-readable
    name, if any. The `reason` is all its `faults`, findings about it.
    """

    relation: str
    key: str
    title: str
    reason: str
    rows: int = 1
    faults: tuple[Finding, ...] = field(default=(), compare=False)


class Plain(NamedTuple):
    """A quarantine as plain data, which can pass between machines: rows by name, by relation, and by kind of fault."""

    rows: list[QuarantinedRow]
    totals: dict[str, int]
    faults: list[tuple[Finding, int]]


def _rank(name: _Name) -> tuple[bool, _Name]:
    return name[0] != "markets", name


class Quarantine:
    """Collects rows that break the contract, counts equal ones, and counts their faults by kind.

    The first `named_at_most` in sort order are kept by name, those of `markets` before all others: the same ones,
    whatever the order or number of parts in which rows are read.
    """

    def __init__(self, named_at_most: int = NAMED_AT_MOST) -> None:
        self._named_at_most = named_at_most
        self._rows: Counter[_Name] = Counter()
        self._faults_of: dict[_Name, tuple[Finding, ...]] = {}
        self._totals: Counter[str] = Counter()
        self._faults = FindingCounts()
        self._left_out = frozenset[str]()

    def leave_out(self, references: frozenset[str]) -> None:
        """Take no more rows of these, which are taken down: markets (ids), and references of questions."""
        self._left_out = references

    def reject(self, relation: str, key: object, *faults: Finding, title: object = "") -> None:
        """Quarantine a row for all its faults: findings about its columns, without their subject.

        A row without a key is named by its title.
        """
        own = str(key).lower()
        if (keys.question_reference(own) if relation == "questions" else own) in self._left_out:
            return
        self._totals[relation] += 1
        shown = printable(f'"{title}"' if key is None and title else key)
        named = tuple(fault._replace(subject=relation, key=shown) for fault in faults)
        for fault in named:
            self._faults.add(fault)
        self._name((relation, shown, "; ".join(fault.reason() for fault in faults), printable(title)), 1, named)

    def add(self, other: "Quarantine") -> None:
        """Add the rows of another quarantine."""
        for name, rows in other._kept().items():  # noqa: SLF001 - of the same class
            self._name(name, rows, other._faults_of[name])  # noqa: SLF001
        self._totals.update(other._totals)  # noqa: SLF001
        self._faults.merge(other._faults)  # noqa: SLF001

    def plain(self) -> Plain:
        """Everything that `of` needs to make an equal quarantine."""
        return Plain([*self], dict(self._totals), [*self._faults])

    @classmethod
    def of(cls, plain: Plain) -> "Quarantine":
        """The quarantine with this content."""
        made = cls()
        for row in plain.rows:
            made._name((row.relation, row.key, row.reason, row.title), row.rows, row.faults)
        made._totals.update(plain.totals)
        for fault, rows in plain.faults:
            made._faults.add(fault, rows)
        return made

    def _name(self, name: _Name, rows: int, faults: tuple[Finding, ...]) -> None:
        self._rows[name] += rows
        self._faults_of[name] = faults
        if len(self._rows) >= 2 * self._named_at_most:
            self._kept()

    def _kept(self) -> Counter[_Name]:
        """Forget all but the first names; a forgotten one could never be among the first again."""
        if len(self._rows) > self._named_at_most:
            first = heapq.nsmallest(self._named_at_most, self._rows, _rank)
            self._rows = Counter({name: self._rows[name] for name in first})
            self._faults_of = {name: self._faults_of[name] for name in first}
        return self._rows

    def total(self, relation: str | None = None) -> int:
        """The number of quarantined rows, of one relation or of all."""
        return self._totals.total() if relation is None else self._totals[relation]

    def faults(self) -> FindingCounts:
        """The faults that rows were quarantined for, counted by kind: a row has one or more."""
        return self._faults

    def named(self, relation: str) -> list[QuarantinedRow]:
        """The rows of one relation that are kept by name."""
        return [row for row in self if row.relation == relation]

    def unnamed(self, *relations: str) -> int:
        """The number of quarantined rows that are not kept by name, of these relations or of all."""
        if not relations:
            return self.total() - self._kept().total()
        named = sum(row.rows for row in self if row.relation in relations)
        return sum(map(self.total, relations)) - named

    def lines(self, relation: str | None = None) -> Iterator[str]:
        """A line for every fault of one relation or of all, with an example and the remedy; the most frequent first."""
        wanted = FindingCounts()
        for fault, rows in self._faults:
            if relation in {None, fault.subject}:
                wanted.add(fault, rows)
        return wanted.lines(heading, REST)

    def named_lines(self) -> Iterator[str]:
        """A line for every row kept by name, and one for the rest."""
        for row in self:
            times = f" ({counted(row.rows, 'row', ',')})" if row.rows > 1 else ""
            yield f"{row.relation}: {row.key}: {row.reason}{times}"
        if self.unnamed():
            yield f"and {counted(self.unnamed(), 'more row', ',')}, only counted"

    def __iter__(self) -> Iterator[QuarantinedRow]:
        """Each row kept by name, sorted by relation, key and reason."""
        for (relation, key, reason, title), rows in sorted(self._kept().items()):
            yield QuarantinedRow(relation, key, title, reason, rows, self._faults_of[relation, key, reason, title])


#: A quarantine that pydantic can store.
StoredQuarantine: TypeAlias = Annotated[
    Quarantine,
    PlainValidator(lambda found: Quarantine.of(TypeAdapter(Plain).validate_python(found))),
    PlainSerializer(Quarantine.plain),
]


def heading(fault: Finding, rows: int) -> str:
    """How the line about so many rows with a fault begins."""
    return f"{fault.subject}: {counted(rows, 'row', ',')} quarantined"


def printable(value: object) -> str:
    """Format a database value for a message: at most 80 characters, one line, valid Unicode."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    text = escaped(text[:80])
    return text if len(text) < 80 else f"{text[:79]}…"  # noqa: PLR2004 - the bound three lines up
