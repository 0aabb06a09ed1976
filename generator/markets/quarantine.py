"""The rows that were left out because they break the contract, each with its reason. Pure."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

#: So many different entries are kept by name; a table of ten million broken rows must not fill the memory.
NAMED_AT_MOST: Final = 10_000


@dataclass(frozen=True, slots=True, order=True)
class Rejection:
    """Why a row was left out.

    `key` is the row's id, or its market's where the relation has none; `title` is what people call it, if anything.
    """

    relation: str
    key: str
    reason: str
    title: str = ""


class Quarantine:
    """Collects rejections; equal ones are counted, not repeated."""

    def __init__(self) -> None:
        self._rows: Counter[Rejection] = Counter()
        self._totals: Counter[str] = Counter()

    def reject(self, relation: str, key: object, reason: str, title: object = "") -> None:
        """Note a row that is left out."""
        self._totals[relation] += 1
        rejection = Rejection(relation, shown(key), reason, shown(title))
        if rejection in self._rows or len(self._rows) < NAMED_AT_MOST:
            self._rows[rejection] += 1

    def add(self, other: "Quarantine") -> None:
        """Take over what another one collected."""
        for rejection, count in other:
            if rejection in self._rows or len(self._rows) < NAMED_AT_MOST:
                self._rows[rejection] += count
        self._totals.update(other._totals)  # noqa: SLF001 - of the same class

    def total(self, relation: str | None = None) -> int:
        """How many rows of `relation`, or of all relations, were left out."""
        return self._totals.total() if relation is None else self._totals[relation]

    def named(self, relation: str) -> list[Rejection]:
        """The rejections of one relation that are kept by name."""
        return [rejection for rejection in sorted(self._rows) if rejection.relation == relation]

    def unnamed(self) -> int:
        """How many rows were left out beyond those that are kept by name."""
        return self.total() - self._rows.total()

    def __iter__(self) -> Iterator[tuple[Rejection, int]]:
        """Every kept rejection with the number of rows it stands for, in a stable order."""
        return iter(sorted(self._rows.items()))


def shown(value: object) -> str:
    """Write a database value into a message: short, on one line, and encodable whatever it holds."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    text = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text[:80])
    return text if len(text) < 80 else f"{text[:79]}…"  # noqa: PLR2004 - the bound three lines up
