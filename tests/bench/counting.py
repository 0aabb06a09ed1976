"""Counts what a build asks of the database and of the disk: `python -m tests.bench.counting FILE FOLDER ARGUMENTS…`.

All its processes append a letter for each row, statement and file below FOLDER to FILE, so it is no run to time.
"""

import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool

from generator.cli.main import main as run
from tests.bench.runner import PYTHON, Command

_ROW, _STATEMENT, _OPENING = b"rso"
_WRITING: Final = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Counts:
    """Rows and statements, and the files that were opened to be read, each as often as it was."""

    rows: int
    statements: int
    opened: int

    @classmethod
    def of(cls, noted: bytes) -> "Counts":
        """What was noted, added up."""
        letters = Counter(noted)
        return cls(*(letters[each] for each in (_ROW, _STATEMENT, _OPENING)))


def command(build: Command, file: Path, folder: Path) -> Command:
    """The command line that does the same as this of the product, and counts."""
    words = build.arguments[len(PYTHON) + 1 :]
    return Command([*PYTHON, __name__, file, folder, *words], build.cwd, build.environ)


def main(file: str, folder: str, arguments: Sequence[str]) -> None:
    """Run the product with these arguments, and exit with its code."""
    notes = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(letter: int) -> None:
        os.write(notes, bytes([letter]))

    def opening(event: str, values: tuple[Any, ...]) -> None:
        if event == "open" and str(values[0]).startswith(folder) and not (values[2] or 0) & _WRITING:
            note(_OPENING)

    sys.addaudithook(opening)
    _watch_reading(note)
    run(args=[*arguments], prog_name="public-markets")


def _watch_reading(note: Callable[..., None]) -> None:
    """Note statements that ask for rows, and the rows."""

    def rows_noted(connection: sqlite3.Connection, _: object) -> None:
        def row(_: sqlite3.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
            note(_ROW)
            return values

        connection.row_factory = row

    def statement_noted(*words: Any) -> None:
        if words[2].startswith("SELECT"):
            note(_STATEMENT)

    event.listen(Pool, "connect", rows_noted)
    event.listen(Engine, "before_cursor_execute", statement_noted)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
