"""An output folder for dry runs: it reads the real one, and keeps aside whatever is changed.

Files that stay as they are are neither read nor linked: a link would change when they changed last, by which the next
build knows them.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from generator import filesystem
from generator.tree import unknown
from generator.tree.folder import Output, locked
from generator.tree.manifest import Manifest


@contextmanager
def overlaid(root: Path) -> Iterator["Overlay"]:
    """Lock the folder, which stays as it is: what is changed is deleted afterwards."""
    with locked(root) as folder:
        yield Overlay(folder)


class Overlay(Output):
    """A locked folder, as it would be with the changes: files in place of its own, and files that are gone."""

    def __init__(self, folder: Output) -> None:
        vars(self).update(vars(folder))
        # Beside what is staged: that may be cleared, and this may not.
        self._changes = self._staging.with_name(f"{self._staging.name}-changes")
        #: What was replaced or deleted, folders included: it is not what the folder has.
        self._hidden = set[str]()

    def _place(self, name: str) -> str:
        changed = f"{self._changes}/{name}"
        return changed if self._is_hidden(name) or os.path.lexists(changed) else super()._place(name)

    def _is_hidden(self, name: str) -> bool:
        parts = name.split("/")
        return any("/".join(parts[:count]) in self._hidden for count in range(1, len(parts) + 1))

    def _own_place(self, key: str) -> str:
        super()._own_place(key)
        return self._place(key)

    def _let_read(self, name: str, path: str, found: os.stat_result) -> None:
        """Leave rights as they are."""

    def names(self, folder: str) -> list[str]:
        """The names of all files in a folder beside `v1/`, sorted."""
        changes = self._changes / folder
        added = {path.name for path in changes.iterdir()} if changes.is_dir() else set()
        return sorted(added | {name for name in super().names(folder) if not self._is_hidden(f"{folder}{name}")})

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

    def unknown(self, known: Manifest) -> Iterator[Path]:
        """Every path under `v1/` that the manifest does not name."""
        of_folder = (path for path in super().unknown(known) if not self._is_hidden(self._name(path)))
        yield from (*of_folder, *unknown.paths(self._changes, known))

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
