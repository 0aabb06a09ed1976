"""Files: durable and atomic writes, free space, and what an OSError means. It knows nothing of the output folder."""

import ctypes
import errno
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

#: Linux can sync one file system; os.sync waits for every disk of the machine.
_SYNCFS: Final = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
#: Permissions of new files, before the umask: those of everybody, and of the owner alone.
PUBLIC: Final = 0o666
PRIVATE: Final = 0o600
#: Of group and others: what they need to read files and to list and enter folders.
_TO_READ: Final = 0o055
_TO_ENTER: Final = 0o555
_TO_READ_FILES: Final = 0o444
_FOR_OTHERS_TO_ENTER: Final = stat.S_IXGRP | stat.S_IXOTH
#: Bytes read at a time beyond the size that a file had when it was opened.
_BLOCK: Final = 1 << 16
#: Bytes of a file that are in memory while it is digested.
_PIECE: Final = 1 << 18
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def sync(folder: Path) -> None:
    """Flush everything written to the folder's file system to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _SYNCFS is None:
            os.sync()
        elif _SYNCFS(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(handle)


def clock(folder: Path) -> datetime:
    """The time by the clock of the folder's file system, which may be another machine's."""
    with tempfile.TemporaryFile(dir=folder) as file:
        return datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)


class Room(NamedTuple):
    """Free space of a file system: bytes, files (None where unlimited), and the bytes per block."""

    bytes: int
    files: int | None
    block: int


def room(folder: Path) -> Room:
    """The space this user may still fill on the folder's file system."""
    found = os.statvfs(folder)
    is_root = os.geteuid() == 0  # only root may use reserved space
    files = (found.f_ffree if is_root else found.f_favail) if found.f_files else None
    return Room((found.f_bfree if is_root else found.f_bavail) * found.f_frsize, files, found.f_frsize)


class WriteAhead:
    """Flushes files to the disk in the background while more are written, so that the final sync is short."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._begun: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Start flushing, unless a flush is running."""
        if _SYNCFS is None or (self._begun and not self._begun.done()):
            return
        self.check()
        self._begun = self._thread.submit(sync, self._folder)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._thread.shutdown()
        if error is None:
            self.check()

    def check(self) -> None:
        """Wait for the flush that is running; raise OSError if it failed."""
        # The system reports a failed write only once, possibly here.
        if self._begun:
            self._begun.result()


def write(handle: int, body: bytes) -> None:
    """Write all bytes. A full disk takes some and returns their count; the next write raises the error."""
    done = os.write(handle, body)
    while done < len(body):
        done += os.write(handle, body[done:])


def read(path: str | Path, flags: int = 0) -> bytes:
    """The bytes of a file; takes half as long as `Path.read_bytes`. `flags` are those of `os.open`."""
    handle = os.open(path, os.O_RDONLY | flags)
    try:
        size = os.fstat(handle).st_size
        body = os.read(handle, size + 1)
        if len(body) == size:  # always, unless the file grows: a regular file is read in one piece
            return body
        while more := os.read(handle, _BLOCK):
            body += more
        return body
    finally:
        os.close(handle)


def create(path: str | Path, body: bytes, folder: int | None = None, mode: int = PUBLIC) -> None:
    """Create a file, whose path is relative to `folder`, an open directory, if given; it must not exist."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=folder)
    try:
        write(handle, body)
    finally:
        os.close(handle)


def open_no_link(path: str, flags: int) -> int:
    """Open a file, created with public permissions if `flags` say so; raise OSError if the path is a link."""
    return os.open(path, flags | os.O_NOFOLLOW, PUBLIC)


def let_others_read() -> None:
    """Take the rights to read and to enter out of this process's umask: what we write is public, or PRIVATE."""
    before = os.umask(0)
    os.umask(before & ~_TO_READ)


def closed_folders(path: Path) -> list[Path]:
    """The folders on the way to a path, links resolved, that only their owner may enter; the outermost first."""
    real = Path(os.path.realpath(path))
    existing = [folder for folder in (*reversed(real.parents), real) if folder.is_dir()]
    return [folder for folder in existing if not folder.stat().st_mode & _FOR_OTHERS_TO_ENTER]


def make_private(path: Path) -> None:
    """Let only its owner read a file or enter a folder, if it exists, is no link, and belongs to this user."""
    with suppress(FileNotFoundError, PermissionError):
        mode = path.lstat().st_mode
        wanted = PRIVATE | stat.S_IXUSR if stat.S_ISDIR(mode) else PRIVATE
        # Only if needed: a build without changes must not touch a file.
        if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) != wanted:
            path.chmod(wanted)


def let_read_like(folder: os.stat_result, path: str, found: os.stat_result) -> bool:
    """Let everybody read what is `found` at a path, if it is ours and no link, as they may the folder.

    Returns whether somebody could not read it.
    """
    rights = _TO_ENTER if stat.S_ISDIR(found.st_mode) else _TO_READ_FILES
    lacking = folder.st_mode & rights & ~found.st_mode
    if lacking and not stat.S_ISLNK(found.st_mode):
        with suppress(FileNotFoundError, PermissionError):
            os.chmod(path, stat.S_IMODE(found.st_mode) | lacking)  # noqa: PTH101 - of very many files
    return bool(lacking)


def holding(path: str | Path, body: bytes) -> os.stat_result | None:
    """The file at the path if it is one, not a link, with exactly these bytes."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        return found if found.st_size == len(body) and os.read(handle, len(body) + 1) == body else None
    finally:
        os.close(handle)


def size(path: str) -> int | None:
    """A file's size in bytes; None unless there is one. A link is no file."""
    try:
        found = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - of very many files
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def digest(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits; raise OSError if it cannot be read, or is a link."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return digest_of(file)


def digest_of(file: BinaryIO) -> str:
    """The same of an open file, which is read to its end."""
    found = hashlib.sha256()
    while piece := file.read(_PIECE):
        found.update(piece)
    return found.hexdigest()


def fsync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: Path, body: bytes, mode: int = PUBLIC) -> None:
    """Replace a file atomically: readers see the old bytes or the new ones."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        create(aside, body, mode=mode)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def take_away(path: Path, aside: Path) -> None:
    """Move a file or a folder aside, where it can be deleted; delete a folder that the file system does not move.

    Overlays do not move a folder that lies in a lower layer, such as one of a container's image, nor do some network
    file systems move any.
    """
    try:
        path.rename(aside)
    except FileNotFoundError:
        raise
    except OSError:
        if path.is_symlink() or not path.is_dir():
            raise
        shutil.rmtree(path)


def sentence(error: OSError, otherwise: str) -> str:
    """The error and its remedy as a sentence; `otherwise` says how to choose another folder."""
    text = (error.strerror or str(error)).lower()
    if isinstance(error, PermissionError):
        return f"{text}; grant this user write access, or {otherwise}"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{text}; move that file away, or {otherwise}"
    if error.errno == errno.ELOOP:
        return f"is a symbolic link, which is not followed; move it away, or {otherwise}"
    if error.errno in _NO_ROOM:
        return f"{text}; free some space, or {otherwise}"
    return f"{text}; {otherwise}"
