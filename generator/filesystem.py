"""What a file system is asked for beyond writing a file: to keep what it has, to say the time, to say what is wrong.

It knows no folder of ours; remedies that depend on the folder are the caller's.
"""

import ctypes
import errno
import os
import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

#: Linux can sync one file system; os.sync waits for every disk of the machine, whoever writes to it.
_SYNCFS: Final = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def sync(folder: Path) -> None:
    """Have everything that was written to the folder's file system on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _SYNCFS is None:
            os.sync()
        elif _SYNCFS(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(handle)


class Room(NamedTuple):
    """What a file system has left: bytes, files (None where it sets no limit); and the bytes of a block."""

    bytes: int
    files: int | None
    block: int


def room(folder: Path) -> Room:
    """What this user may still write to the folder's file system."""
    found = os.statvfs(folder)
    is_root = os.geteuid() == 0  # what is reserved is reserved for root
    files = (found.f_ffree if is_root else found.f_favail) if found.f_files else None
    return Room((found.f_bfree if is_root else found.f_bavail) * found.f_frsize, files, found.f_frsize)


class WriteAhead:
    """Has what is still being made written to the disk meanwhile, so that the sync that must be waited for is short."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._begun: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Begin to write what is there, unless that is going on."""
        if _SYNCFS is None or (self._begun and not self._begun.done()):
            return
        self._check()
        self._begun = self._thread.submit(sync, self._folder)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._thread.shutdown()
        if error is None:
            self._check()

    def _check(self) -> None:
        # The system tells of bytes that it could not write only once, maybe here.
        if self._begun:
            self._begun.result()


def write(handle: int, body: bytes) -> None:
    """Write all bytes. A disk that fills takes a part and says so only in the count; the next write names the cause."""
    done = os.write(handle, body)
    while done < len(body):
        done += os.write(handle, body[done:])


def replace(path: Path, body: bytes) -> None:
    """Replace a file at once: whoever reads it sees the old bytes or the new ones."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        aside.write_bytes(body)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def sentence(error: OSError, otherwise: str) -> str:
    """What is wrong and what helps; `otherwise` names the setting that chooses another folder."""
    text = (error.strerror or str(error)).lower()
    if isinstance(error, PermissionError):
        return f"{text}; give this user the right to write there, or {otherwise}"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{text}; move away what is there, or {otherwise}"
    if error.errno == errno.ELOOP:
        return f"is a link, and links are not followed here; move it away, or {otherwise}"
    if error.errno in _NO_ROOM:
        return f"{text}; make room, or {otherwise}"
    return f"{text}; {otherwise}"
