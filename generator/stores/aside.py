"""Files written aside: readers see a file's old bytes or its new ones, because it is renamed when it is complete.

Very many files are written, and making a Path for each would take as long as the file system does.
"""

import os
from contextlib import suppress
from typing import Final

from generator import filesystem
from generator.file_times import FileTimes

#: Another writer may delete a folder that it found empty, or our temporary file, while we are about to use it.
_ATTEMPTS: Final = 10


class AsideFile:
    """A temporary file in the folder `root`, which one thread writes and renames again and again."""

    def __init__(self, root: str, name: str) -> None:
        self._root = root
        self._path = f"{root}/{name}"
        self._body = b""
        self._mode = filesystem.PUBLIC
        self._is_durable = False

    def write(self, body: bytes, mode: int, *, is_durable: bool) -> None:
        """Write the bytes, and flush them to the disk if `is_durable`. `mode`: the permissions, before the umask."""
        self._body, self._mode, self._is_durable = body, mode, is_durable
        try:
            self._write()
        except FileNotFoundError:
            os.makedirs(self._root, exist_ok=True)  # noqa: PTH103 - as above
            self._write()

    def rename(self, path: str, times: FileTimes | None = None) -> None:
        """Replace the file at `path` by it; create the folder of `path` if it is missing. `times` gives it its time."""
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                if times:
                    times.follow(self._path, path)
                os.replace(self._path, path)  # noqa: PTH105
                return
            with suppress(FileNotFoundError):
                os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
                if not os.path.exists(self._path):  # noqa: PTH110
                    self._write()
        os.replace(self._path, path)  # noqa: PTH105

    def discard(self) -> None:
        """Delete it, if it is there."""
        with suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108

    def _write(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        handle = os.open(self._path, flags, self._mode)
        try:
            filesystem.write(handle, self._body)
            if self._is_durable:
                os.fsync(handle)
        finally:
            os.close(handle)
