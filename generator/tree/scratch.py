"""An output folder for dry runs that end before anything is moved into place: it reads the real one, without its lock.

What is staged is in a temporary folder, and of this only what is read again: details, and files of downloads. Pages,
chunks and the search index are compared with what is in place, counted, and forgotten.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import stat_result
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.errors import OutputError
from generator.tree.folder import Output
from generator.tree.generation import PageFolder
from generator.tree.ownership import ELSEWHERE

#: What helps where the temporary folder cannot be used.
_ELSEWHERE: Final = "set TMPDIR to another folder"


@contextmanager
def scratch_of(root: Path) -> Iterator["Scratch"]:
    """The folder, which need not exist and stays as it is."""
    try:
        with tempfile.TemporaryDirectory(prefix="public-markets-") as temporary:
            yield Scratch(root, Path(temporary))
    except OSError as error:
        place = str(error.filename or tempfile.gettempdir())
        is_of_root = Path(place).is_relative_to(root)
        raise OutputError(f"{place}: {filesystem.sentence(error, ELSEWHERE if is_of_root else _ELSEWHERE)}") from error


class Scratch(Output):
    """The folder as a dry run sees it."""

    def emptied(self) -> "Scratch":
        """The same, as if there was no folder."""
        return Scratch(self._staging / "none", self._staging)

    def put(self, key: str, body: bytes) -> bool:
        """Compare an object with the one in place; return whether it is new. Only details are kept."""
        if keys.market_id(key) is not None:
            return super().put(key, body)
        return filesystem.holding(self._own_place(key), body) is None

    def put_pages(self, prefix: str, folders: Iterable[PageFolder]) -> int:
        """Count the bytes of all pages below the prefix."""
        self._own_place(prefix)
        return sum(len(body) for pages in folders for _, body in pages.pages)

    def written_ahead(self) -> filesystem.WriteAhead:
        """A context that flushes nothing: nothing is to last."""
        return _Unflushed(self._staging)

    def _let_read(self, name: str, path: str, found: stat_result) -> None:
        """Leave rights as they are."""


class _Unflushed(filesystem.WriteAhead):
    def begin(self) -> None:
        """Do nothing."""
