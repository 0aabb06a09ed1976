"""Reads an output folder as it would be if everything staged were in place."""

from contextlib import suppress

from generator import filesystem
from generator.tree.folder import Output


class Preview(Output):
    """The folder with what is staged; nothing moves."""

    def __init__(self, folder: Output) -> None:
        vars(self).update(vars(folder))

    def read(self, name: str) -> bytes | None:
        """The bytes of a file as it is staged, or in place; None when it is neither."""
        with suppress(FileNotFoundError):
            return filesystem.read(f"{self._staging}/{name}")
        return super().read(name)

    def size_if_unchanged(self, key: str) -> int | None:
        """An object's size in bytes; None if it is staged, or changed since the build ended."""
        return None if (self._staging / key).exists() else super().size_if_unchanged(key)

    def _size(self, key: str) -> int | None:
        with suppress(OSError):
            return (self._staging / key).stat(follow_symlinks=False).st_size
        return super()._size(key)
