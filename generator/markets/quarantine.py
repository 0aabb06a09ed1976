"""The quarantined rows, each with the reason why it breaks the contract. Pure."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

#: Distinct rejections kept by name: a table of ten million bad rows must not exhaust memory.
NAMED_AT_MOST: Final = 10_000


@dataclass(frozen=True, slots=True, order=True)
class Rejection:
    """Why a row is quarantined.

    `key` is the row's id, or its market's if the relation has none; `title` is its human-readable name, if any.
    """

    relation: str
    key: str
    reason: str
    title: str = ""


class Quarantine:
    """Collects rejections and counts equal ones."""

    def __init__(self) -> None:
        self._rows: Counter[Rejection] = Counter()
        self._totals: Counter[str] = Counter()

    def reject(self, relation: str, key: object, reason: str, title: object = "") -> None:
        """Quarantine a row."""
        self._totals[relation] += 1
        rejection = Rejection(relation, printable(key), reason, printable(title))
        if rejection in self._rows or len(self._rows) < NAMED_AT_MOST:
            self._rows[rejection] += 1

    def add(self, other: "Quarantine") -> None:
        """Add the rejections of another quarantine."""
        for rejection, count in other:
            if rejection in self._rows or len(self._rows) < NAMED_AT_MOST:
                self._rows[rejection] += count
        self._totals.update(other._totals)  # noqa: SLF001 - of the same class

    def total(self, relation: str | None = None) -> int:
        """The number of quarantined rows, of one relation or of all."""
        return self._totals.total() if relation is None else self._totals[relation]

    def named(self, relation: str) -> list[Rejection]:
        """The rejections of one relation that are kept by name."""
        return [rejection for rejection in sorted(self._rows) if rejection.relation == relation]

    def unnamed(self) -> int:
        """The number of quarantined rows that are not kept by name."""
        return self.total() - self._rows.total()

    def __iter__(self) -> Iterator[tuple[Rejection, int]]:
        """Each rejection kept by name and its number of rows, sorted."""
        return iter(sorted(self._rows.items()))


def printable(value: object) -> str:
    """Format a database value for a message: at most 80 characters, one line, valid Unicode."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    text = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text[:80])
    return text if len(text) < 80 else f"{text[:79]}…"  # noqa: PLR2004 - the bound three lines up
