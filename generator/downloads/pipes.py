"""What Rust writes Parquet files into, and reads their text from. Pure."""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class WrittenTable(NamedTuple):
    """A finished file: SHA-256 digest, bytes, rows."""

    sha256: str
    size: int
    rows: int


class FilePipe:
    """The file that is written, as Rust asks for it.

    It would turn an exception into a text, or panic, so the first one is kept here, and what is read just ends.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._digest = hashlib.sha256()
        self._size = 0
        self.rows = 0
        self.failure: BaseException | None = None

    def watched(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Batches of rows that are read."""
        try:
            for batch in batches:
                self.rows += batch.num_rows
                yield batch
        except BaseException as failure:  # noqa: BLE001 - raised again by the caller of Rust
            self.failure = failure

    def write(self, piece: bytes) -> int:
        """Write a piece of the file."""
        try:
            if not self.failure:
                self._write(piece)
        except BaseException as failure:  # noqa: BLE001 - as above
            self.failure = failure
        self._digest.update(piece)
        self._size += len(piece)
        return len(piece)

    def flush(self) -> None:
        """There is nothing to flush."""

    def seek(self, *_: int) -> int:
        """Only its presence is asked for."""
        raise io.UnsupportedOperation

    def written(self) -> WrittenTable:
        """The finished file."""
        return WrittenTable(self._digest.hexdigest(), self._size, self.rows)


class TextPipe(FilePipe):
    """The text that is read, too."""

    def __init__(self, texts: Iterable[bytes], write: Callable[[bytes], object]) -> None:
        super().__init__(write)
        self._texts = iter(texts)
        self._text, self._at = b"", 0

    def read(self, size: int) -> bytes:
        """The next bytes of the text, at most `size`."""
        start, self._at = self._at, self._at + size
        given = self._text[start : self._at]
        if len(given) < size:
            given += self._gathered(size - len(given))
        self.rows += given.count(b"\n")
        return given

    def _gathered(self, size: int) -> bytes:
        """So many bytes of the pieces to come; the rest of the last one, which may be long, is not copied."""
        pieces, length = list[bytes](), 0
        try:
            while length < size and not self.failure and (text := next(self._texts, None)) is not None:
                pieces.append(text)
                length += len(text)
        except BaseException as failure:  # noqa: BLE001 - as above
            self.failure = failure
        if not pieces:
            return b""
        self._text = pieces.pop()
        self._at = size - (length - len(self._text))
        return b"".join([*pieces, self._text[: self._at]])
