"""Counts what a build asks of the database and of the disk: `python -m tests.bench.counting FILE FOLDER ARGUMENTS…`.

All its processes append a letter for each row, statement and file below FOLDER to FILE, so it is no run to time.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from generator.cli.main import main as run
from generator.source.connection import Transaction
from tests.bench.runner import PYTHON, Command

_ROW, _STATEMENT, _LOOK, _OPENING = b"rslo"
_WRITING: Final = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Counts:
    """Rows and statements, and the files that were looked at and opened to be read, each as often as it was."""

    rows: int
    statements: int
    looked_at: int
    opened: int

    @classmethod
    def of(cls, noted: bytes) -> "Counts":
        """What was noted, added up."""
        letters = Counter(noted)
        return cls(*(letters[each] for each in (_ROW, _STATEMENT, _LOOK, _OPENING)))


def command(build: Command, file: Path, folder: Path) -> Command:
    """The command line that does the same as this of the product, and counts."""
    words = build.arguments[len(PYTHON) + 1 :]
    return Command([*PYTHON, __name__, file, folder, *words], build.cwd, build.environ)


def main(file: str, folder: str, arguments: Sequence[str]) -> None:
    """Run the product with these arguments, and exit with its code."""
    notes = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(letter: int, times: int = 1) -> None:
        os.write(notes, bytes([letter]) * times)

    def opening(event: str, values: tuple[Any, ...]) -> None:
        if event == "open" and str(values[0]).startswith(folder) and not (values[2] or 0) & _WRITING:
            note(_OPENING)

    sys.addaudithook(opening)
    _watch_looks(folder, note)
    _watch_reading(note)
    run(args=[*arguments], prog_name="public-markets")


def _watch_looks(folder: str, note: Callable[[int], None]) -> None:
    """Note each file whose status is asked for; entries of a folder that is read whole are none."""
    for name in ("stat", "lstat"):
        real = getattr(os, name)

        def noted(path: Any, *words: Any, real: Callable[..., Any] = real, **options: Any) -> Any:
            if str(path).startswith(folder):
                note(_LOOK)
            return real(path, *words, **options)

        setattr(os, name, noted)


def _watch_reading(note: Callable[..., None]) -> None:
    """Note statements that ask for rows, and the rows."""
    batches, number = Transaction.batches, Transaction.number

    def noted_batches(self: Transaction, statement: Any, relation: str) -> Iterator[list[Any]]:
        note(_STATEMENT)
        for batch in batches(self, statement, relation):
            note(_ROW, len(batch))
            yield batch

    def noted_number(self: Transaction, statement: Any, relation: str) -> int:
        note(_STATEMENT)
        note(_ROW)
        return number(self, statement, relation)

    Transaction.batches = noted_batches  # type: ignore[method-assign]
    Transaction.number = noted_number  # type: ignore[method-assign]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
