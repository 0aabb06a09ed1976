"""What the maker of a site needs of a folder, so that a store can be read like one."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol

from generator import filesystem
from generator.tree.generation import Stage


class Workplace(Stage, Protocol):
    """Where a site is made: what is in place, and where that is staged which is not. `folder.Output` is one."""

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, by its name or key; None when it is missing."""

    def newest(self, key: str) -> bytes | None:
        """The bytes of an object as it is staged, or in place; None when it is neither."""

    def newest_body(self, key: str) -> bytes:
        """The same; raise OutputError when it is neither."""

    def open_newest(self, key: str) -> BinaryIO:
        """Open an object as it is staged, or in place."""

    def path(self, key: str) -> Path:
        """The path of an object, whether it exists or not."""

    def are_placed(self, object_keys: Iterable[str]) -> bool:
        """Whether all of these objects and generations are in place."""

    def scratch(self, name: str = "scratch") -> Path:
        """A path for a temporary file."""

    def stage_file(self, path: Path, key: str) -> bool:
        """Stage a temporary file, unless an identical one is in place; return whether it was staged."""

    def written_ahead(self) -> AbstractContextManager[filesystem.WriteAhead]:
        """A context that flushes staged files to the disk in the background."""
