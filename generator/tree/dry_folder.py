"""Output folders for dry runs: they read the real one, and keep aside whatever is changed."""

import os
import shutil
import tempfile
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.errors import OutputError
from generator.tree import files
from generator.tree.files import ELSEWHERE
from generator.tree.folder import Output, locked
from generator.tree.generation import PageFolder
from generator.tree.generations import Generations

#: What helps where the temporary folder cannot be used.
_ELSEWHERE: Final = "set TMPDIR to another folder"


@contextmanager
def whole(root: Path) -> Iterator["DryFolder"]:
    """Lock the folder, which stays as it is: what is changed is deleted afterwards."""
    with locked(root) as folder:
        yield DryFolder(folder)


@contextmanager
def brief(root: Path) -> Iterator["DryFolder"]:
    """The folder, which need not exist, without its lock, for runs that end before anything is moved into place.

    What is staged is in a temporary folder, and of this only what is read again: details, and files of downloads.
    Pages, chunks and the search index are compared with what is in place, counted, and forgotten.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="public-markets-") as temporary:
            staging = Path(temporary, "staging")
            staging.mkdir()
            yield DryFolder(Output(root, staging), is_brief=True)
    except OSError as error:
        place = str(error.filename or tempfile.gettempdir())
        is_of_root = Path(place).is_relative_to(root)
        raise OutputError(f"{place}: {filesystem.sentence(error, ELSEWHERE if is_of_root else _ELSEWHERE)}") from error


class DryFolder(Output):
    """A folder as it would be with the changes: files in place of its own, and files that are gone."""

    def __init__(self, folder: Output, *, is_brief: bool = False) -> None:
        vars(self).update(vars(folder))
        self._is_brief = is_brief
        # Beside what is staged: that may be cleared, and this may not.
        self._changes = self._staging.with_name(f"{self._staging.name}-changes")
        #: What was replaced or deleted, folders included: it is not what the folder has.
        self._hidden = set[str]()

    def emptied(self) -> "DryFolder":
        """The same, as if there was no folder."""
        return DryFolder(Output(self._staging / "none", self._staging), is_brief=self._is_brief)

    def _place(self, name: str) -> str:
        return f"{self._changes}/{name}" if self._is_hidden(name) else super()._place(name)

    def _is_hidden(self, name: str) -> bool:
        if not self._hidden:
            return False
        parts = name.split("/")
        return any("/".join(parts[:count]) in self._hidden for count in range(1, len(parts) + 1))

    def _own_place(self, key: str) -> str:
        super()._own_place(key)
        return self._place(key)

    def _let_read(self, name: str, path: str, found: os.stat_result) -> None:
        """Leave rights as they are."""

    def put(self, key: str, body: bytes) -> bool:
        """Stage an object unless an identical one is in place; return whether it is new."""
        if self._is_brief and keys.market_id(key) is None:
            return filesystem.holding(self._own_place(key), body) is None
        return super().put(key, body)

    def put_pages(self, prefix: str, folders: Iterable[PageFolder]) -> int:
        """Stage all pages below the prefix; return their bytes."""
        if self._is_brief:
            self._own_place(prefix)
            return sum(len(body) for pages in folders for _, body in pages.pages)
        return super().put_pages(prefix, folders)

    def names(self, folder: str) -> list[str]:
        """The names of all files in a folder, sorted."""
        changes = self._changes / folder
        added = {path.name for path in changes.iterdir() if path.is_file()} if changes.is_dir() else set()
        return sorted(added | {name for name in super().names(folder) if not self._is_hidden(f"{folder}{name}")})

    def written_ahead(self) -> filesystem.WriteAhead:
        """A context that flushes nothing: nothing is to last."""
        return _Unflushed(self._staging)

    def sync(self) -> None:
        """Do nothing: nothing is to last."""

    def sync_names(self, folder: str) -> None:
        """Do nothing: nothing is to last."""

    def move(self, key: str) -> None:
        """Have a staged object or generation in place of the folder's."""
        self._own_place(key)
        self._forget(key)
        target = self._changes / key
        target.parent.mkdir(parents=True, exist_ok=True)
        (self._staging / key).replace(target)

    def save(self, name: str, content: bytes) -> None:
        """Have a file beside `v1/` in place of the folder's."""
        self._forget(name)
        self._changes.mkdir(exist_ok=True)
        filesystem.create(self._changes / name, content, mode=filesystem.PRIVATE)

    def unknown(self, objects: Container[str], known: Generations) -> Iterator[Path]:
        """Every path under `v1/` but those of these objects and generations."""
        of_folder = (path for path in super().unknown(objects, known) if not self._is_hidden(self._name(path)))
        yield from (*of_folder, *files.unknown_paths(self._changes, objects, known))

    def discard(self, path: Path) -> None:
        """Have a file or a generation gone."""
        self._forget(self._name(path))

    def _forget(self, name: str) -> None:
        self._hidden.add(name)
        changed = self._changes / name
        if changed.is_dir() and not changed.is_symlink():
            shutil.rmtree(changed)
        else:
            changed.unlink(missing_ok=True)

    def _name(self, path: Path) -> str:
        if path.is_relative_to(self._changes):
            return path.relative_to(self._changes).as_posix()
        return super()._name(path)


class _Unflushed(filesystem.WriteAhead):
    def begin(self) -> None:
        """Do nothing."""
