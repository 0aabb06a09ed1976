"""One run at a time in an output folder, with a staging folder of its own; and waiting for a run of a folder or store.

Clears what killed runs staged.
"""

import fcntl
import os
import secrets
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from generator import filesystem
from generator.errors import BusyError

_LOCK: Final = ".lock"
_STAGING: Final = ".staging-"


def path(root: Path) -> Path:
    """The lock file of a folder."""
    return root / _LOCK


@contextmanager
def staging_folder(root: Path) -> Iterator[Path]:
    """Lock the folder and make a staging folder there; raise BusyError if another run holds the lock."""
    with _lock(root):
        _clear(root)
        staging = _staging_folder(root)
        staging.mkdir()
        try:
            yield staging
        finally:
            _clear(root)


def _staging_folder(root: Path) -> Path:
    return root / f"{_STAGING}{secrets.token_hex(8)}"


def _clear(root: Path) -> None:
    for leftover in list(root.glob(f"{_STAGING}*")):
        if leftover.is_symlink():
            leftover.unlink()
            continue
        # Rename it first: workers that outlive a killed build then fail to write, and end.
        aside = _staging_folder(root)
        filesystem.take_away(leftover, aside)
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    # The operating system releases the lock however its holder ends; the file itself means nothing, but its time is a
    # mark (see `FileTimes`). POSIX locks (lockf, not flock) belong to one process, so workers that outlive a killed
    # build do not hold it.
    with open(path(root), "a+", opener=filesystem.open_no_link) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.seek(0)
            raise BusyError(f"{root}: another run is at work there (process {file.read().strip()})") from None
        before = os.fstat(file.fileno()).st_mtime
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        if before > os.fstat(file.fileno()).st_mtime:
            os.utime(file.fileno(), (before, before))
        yield


#: Linux' `struct flock`: type, whence, start, length, process.
_FLOCK: Final = struct.Struct("hhqqi4x")


def is_held(root: Path) -> bool:
    """Whether another process holds the lock, as far as this machine knows; it is not taken for that."""
    with suppress(OSError), path(root).open("rb") as file:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        found, *_ = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
        return bool(found != fcntl.F_UNLCK)
    return False


_Result = TypeVar("_Result")

#: Seconds between two attempts at a store or folder that another run holds.
_RETRY_S: Final = 0.5

#: Shows the operator a line.
Notify = Callable[[str], None]


def retried_while_busy(attempt: Callable[[], _Result], notify: Notify, what: str) -> _Result:
    """Try until no other run is at work; say once which run is."""
    is_told = False
    while True:
        try:
            return attempt()
        except BusyError as error:
            if not is_told:
                notify(f"{what}: {error}")
            is_told = True
            time.sleep(_RETRY_S)
