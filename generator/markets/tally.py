"""Counts what many rows have in common, with one of them as an example: thousands of equal rows are one line. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

from generator.wording import counted

#: How many lines about rows of one sort a command prints.
LINES: Final = 15

#: What the rows have in common; sortable. The first part says what they are rows of.
Head = TypeVar("Head", bound=tuple[Any, ...])


class Example(NamedTuple):
    """One of the rows: its key, and the value that matters, if there is one."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}: {self.value}" if self.value and self.value != self.key else self.key


class Group(NamedTuple, Generic[Head]):
    """Rows that have something in common."""

    head: Head
    rows: int
    example: Example


class Tally(Generic[Head]):
    """Counts rows by what they have in common. The example is the first by sort order, in whatever order rows come."""

    def __init__(self) -> None:
        self._groups: dict[Head, tuple[int, Example]] = {}

    def add(self, head: Head, example: Example, rows: int = 1) -> None:
        """Count rows."""
        known = self._groups.get(head)
        self._groups[head] = (known[0] + rows, min(known[1], example)) if known else (rows, example)

    def merge(self, other: "Tally[Head]") -> None:
        """Add the rows of another tally."""
        for group in other:
            self.add(group.head, group.example, group.rows)

    def __iter__(self) -> Iterator[Group[Head]]:
        """All groups, the most frequent first."""
        groups = (Group(head, rows, example) for head, (rows, example) in self._groups.items())
        return iter(sorted(groups, key=lambda group: (-group.rows, group.head)))

    def total(self) -> int:
        """The number of rows, one in several groups counted in each."""
        return sum(rows for rows, _ in self._groups.values())

    def lines(self, sentence: Callable[[Head, int, str], str], rest: str) -> Iterator[str]:
        """At most LINES lines of `sentence(head, rows, example)`, then the number of other groups, named `rest`.

        A relation with many faults must not hide those of others: each shows its most frequent groups.
        """
        ranks = Counter[Any]()
        ranked = list[tuple[int, Group[Head]]]()
        for group in self:
            ranked.append((ranks[group.head[0]], group))
            ranks[group.head[0]] += 1
        shown = {group.head for _, group in sorted(ranked, key=lambda found: found[0])[:LINES]}
        for head, rows, example in self:
            if head in shown:
                yield sentence(head, rows, f"({'such as ' if rows > 1 else ''}{example})")
        if len(ranked) > len(shown):
            yield f"{counted(len(ranked) - len(shown), 'more kind')} of {rest}, not shown"
