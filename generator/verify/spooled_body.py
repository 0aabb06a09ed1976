"""The body of a file of a download: in memory if it is small, else in a temporary file."""

import hashlib
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from tempfile import SpooledTemporaryFile, gettempdir
from typing import BinaryIO, Final, cast

from generator import filesystem
from generator.errors import VerifyError

#: How many bytes are held in memory.
_IN_MEMORY: Final = 8 << 20
_PIECE: Final = 64 << 10
#: The most bytes of all markets' texts, or all questions', which are in memory: a million markets have half as many.
LONGEST_TEXT: Final = 2 << 30


class SpooledBody:
    """The bytes of a `file`, which is open as long as this is held, with their `sha256` digest and `size`."""

    def __init__(self) -> None:
        self.file = cast("BinaryIO", SpooledTemporaryFile(_IN_MEMORY))  # noqa: SIM115 - closed in the next line
        weakref.finalize(self, self.file.close)
        self.sha256, self.size = "", 0

    def take(self, pieces: Iterable[bytes]) -> None:
        """Replace all by these pieces. Raises VerifyError if there is no room for them."""
        digest, self.size = hashlib.sha256(), 0
        self.file.seek(0)
        for piece in pieces:
            digest.update(piece)
            self.size += len(piece)
            try:
                self.file.write(piece)
            except OSError as error:
                remedy = "name a folder with more room in TMPDIR"
                raise VerifyError(f"{gettempdir()}: {filesystem.sentence(error, remedy)}") from error
        self.sha256 = digest.hexdigest()
        self.file.truncate()

    def pieces(self) -> Iterator[bytes]:
        """All of it, piece by piece."""
        self.file.seek(0)
        return iter(partial(self.file.read, _PIECE), b"")
