"""Which files below a folder a block opens, by Python's audit events, in this process and in those that it forks."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

#: The folder whose files are noted, and the file of notes, which forked processes share.
_NOTING: Final = list[tuple[str, int]]()


def _note(event: str, arguments: tuple[object, ...]) -> None:
    for folder, notes in _NOTING if event == "open" else ():
        if str(arguments[0]).startswith(folder):
            os.write(notes, f"{str(arguments[0]).removeprefix(folder)}\n".encode())


@cache
def _begin() -> None:
    # A hook stays for as long as the process.
    sys.addaudithook(_note)


@contextmanager
def opened_below(folder: Path) -> Iterator[list[str]]:
    """The names of the files, each once, in order; the list is filled when the block ends."""
    _begin()
    found = list[str]()
    with tempfile.TemporaryFile() as notes:
        _NOTING.append((f"{folder}/", notes.fileno()))
        try:
            yield found
        finally:
            _NOTING.clear()
        notes.seek(0)
        found += sorted({*notes.read().decode().splitlines()})
