"""Which files below a folder a block opens, by Python's audit events."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

_OPENED: Final = set[str]()
_NOTING: Final = list[str]()  # the folder whose files are noted, if any


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _NOTING and str(arguments[0]).startswith(_NOTING[0]):
        _OPENED.add(str(arguments[0]))


@cache
def _begin() -> None:
    # A hook stays for as long as the process.
    sys.addaudithook(_note)


@contextmanager
def opened_below(folder: Path) -> Iterator[list[str]]:
    """The names of the files, each once, in order; the list is filled when the block ends."""
    _begin()
    found = list[str]()
    _OPENED.clear()
    _NOTING.append(f"{folder}/")
    try:
        yield found
    finally:
        _NOTING.clear()
    found += sorted(path.removeprefix(f"{folder}/") for path in _OPENED)
