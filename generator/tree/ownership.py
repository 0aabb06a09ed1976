"""What in an output folder is this program's own: it neither follows links nor touches the files of others."""

import os
from pathlib import Path
from typing import Final

from generator.api.contract import API_VERSION
from generator.errors import OutputError
from generator.tree import files

ELSEWHERE: Final = "choose another folder with --set output=…"


class Ownership:
    """Checks that paths in the folder at `root` are ours; remembers the folders that it has checked."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real_root = Path(os.path.realpath(root))
        self._checked: set[Path] = set()
        self._owned: set[str] = set()

    def require_manifest(self) -> None:
        """Raise OutputError if the folder, which has no manifest, holds objects that a build would replace."""
        if (self._root / API_VERSION).exists():
            raise OutputError(
                f"{self._root / API_VERSION} exists but {self._root / files.MANIFEST} does not, so this program did "
                f"not create it; move it away, or {ELSEWHERE}"
            )

    def require_places(self) -> None:
        """Raise OutputError if anything but a folder lies where this program keeps its own."""
        for place in (self._root / files.STATES, self._root / files.FINGERPRINT_SHARDS):
            if place.exists() and not place.is_dir():
                raise OutputError(
                    f"{place}: is not a folder, but this program needs a folder of that name; move it away, or "
                    f"{ELSEWHERE}"
                )

    def path(self, path: Path) -> Path:
        """Return the path, or raise OutputError if a link inside the root leads to it."""
        folder = path.parent
        if folder not in self._checked:
            inner = folder.relative_to(self._root)
            if os.path.realpath(folder) != str(self._real_root / inner):
                parts = [self._root.joinpath(*inner.parts[: count + 1]) for count in range(len(inner.parts))]
                link = next((part for part in parts if part.is_symlink()), folder)
                raise OutputError(
                    f"{link}: is a symbolic link, which is not followed; replace it with a folder, or {ELSEWHERE}"
                )
            self._checked.add(folder)
        return path

    def path_of(self, key: str) -> str:
        """The same for an object's key, as text: for very many, a Path would take as long as the file system.

        A key that ends with `/` is that of a folder, which must be no link either.
        """
        folder = key.rpartition("/")[0]
        if folder not in self._owned:
            self.path(self._root / folder / "any")
            self._owned.add(folder)
        return f"{self._root}/{key}"
