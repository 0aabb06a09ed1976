"""A directory as a store, for a local web server to serve. Knows no network and no build.

Readers see an object's old bytes or its new ones. The record and the blocked list are on the disk when a put returns,
all other objects after the next flush. Concurrent writers take turns by a lock file.
"""

import hashlib
import os
import pwd
import secrets
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import StoreError
from generator.publish.stores.lock_file import LockFile
from generator.publish.stores.store import BeforeEach, Condition, ConditionFailedError, If, Listed, Stored, nothing
from generator.tree import files

_LOCK: Final = ".lock-publish"
#: How the names of temporary files for atomic replacement begin; each writing thread has its own.
_TEMPORARY: Final = ".aside-publish"
_REMEDY: Final = "choose another directory with --set publish.target=…"
_PARALLEL: Final = 8
#: Another writer may delete a folder that it found empty, or our temporary file, while we are about to use it.
_ATTEMPTS: Final = 10
#: Bytes to put before having the disk write them.
_FLUSHED_AT_ONCE: Final = 32 << 20
#: Files deleted between two looks at the lease.
_DELETED_AT_ONCE: Final = 100
#: Files put under one lock: taking it, and looking for links, takes longer than a put.
_PUT_AT_ONCE: Final = 100


class _Thread(threading.local):
    """What the puts of a thread share: its temporary file and, in `together`, the lock and what was looked up."""

    temporary: Path | None = None
    lock: ExitStack | None = None
    has_lock = False
    #: The folders, by the beginning of keys, to which no link leads.
    folders: dict[str, Path]


class Directory:
    """Objects as files below `root`, which is created with the first object."""

    requests: Final = 0
    parallel: Final = _PARALLEL
    at_once: Final = _PUT_AT_ONCE

    def __init__(self, root: Path) -> None:
        self.name = str(root)
        self._root = Path(os.path.realpath(root))
        self._token = secrets.token_hex(8)
        self._lock_file = LockFile(self._root / _LOCK, self._tidy)
        self._thread_lock = threading.Lock()
        self._ahead = filesystem.WriteAhead(self._root)
        self._unflushed = 0
        self._own = _Thread()

    def now(self) -> datetime:
        """The clock of the file system, which may be another machine's; this machine's, if this user may only read."""
        with _explained(self._root):
            try:
                with tempfile.TemporaryFile(dir=_existing(self._root)) as file:
                    return datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
            except PermissionError:  # who may not write needs no exact clock; a monitor only reads
                return datetime.fromtimestamp(time.time(), UTC)

    def get(self, key: str) -> Stored | None:
        """Read an object; its ETag is a digest of its bytes."""
        path = self._path(key)
        with _explained(path):
            body = _read(path)
            return None if body is None else Stored(body, self.etag_of(body))

    def head(self, key: str) -> str | None:
        """Return an object's ETag, which takes reading the object."""
        found = self.get(key)
        return found.etag if found else None

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object; an immutable one, which readers may be led to already, only if it differs."""
        path = self._path(key)
        with _explained(path):
            if condition is If.ALWAYS and keys.is_immutable(key):
                if not filesystem.holds(path, body):
                    self._replace(path, body)
            else:
                with self._lock():
                    self._check(key, path, condition)
                    self._replace(path, body)
                    if _is_record(key):
                        filesystem.fsync(path.parent)
            self._begin_flush(len(body))
        return self.etag_of(body)

    def _begin_flush(self, size: int) -> None:
        """Have the disk start writing what was put, so that the next flush is short."""
        self._unflushed += size
        if self._unflushed > _FLUSHED_AT_ONCE:
            self._unflushed = 0
            self._ahead.begin()

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        """Delete objects, and the folders this leaves empty; `before_each` is called before each few."""
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            before_each()
            if self._root.exists():
                with _explained(self._root), self._lock():
                    for key in keys[start : start + _DELETED_AT_ONCE]:
                        self._delete(self._path(key))

    def list(self, prefix: str) -> Iterator[Listed]:
        """Read every object whose key begins with `prefix`."""
        with _explained(self._root):
            # The folder that all keys with this prefix share: the letter keeps `v1/` from being a file name itself.
            for key in self._keys(self._path(f"{prefix}x").parent, prefix):
                # An object may be deleted while the folder is listed.
                if (found := self.get(key)) is not None:
                    yield Listed(key, len(found.body), found.etag)

    def purge_versions(self, prefix: str, before_each: BeforeEach = nothing) -> int:  # noqa: ARG002 - the protocol's
        """Do nothing: a directory keeps no old versions."""
        return 0

    def is_versioned(self) -> bool:
        """A directory keeps no old versions."""
        return False

    def etag_of(self, body: bytes) -> str:
        """The digest of the bytes."""
        return hashlib.sha256(body).hexdigest()

    def flush(self) -> None:
        """Bring everything that was put to the disk."""
        with _explained(self._root), suppress(FileNotFoundError):  # when nothing was put
            self._ahead.check()
            filesystem.sync(self._root)

    def is_open_to_everyone(self) -> bool:
        """Whether every user of this machine can write here."""
        with _explained(self._root), suppress(FileNotFoundError):
            return bool(self._root.stat().st_mode & stat.S_IWOTH)
        return False

    @contextmanager
    def together(self) -> Iterator[None]:
        """A block in which this thread takes the lock once, and looks once whether links lead to a folder."""
        own = self._own
        with ExitStack() as lock:
            own.lock, own.has_lock, own.folders = lock, False, {}
            try:
                yield
            finally:
                own.lock = None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        # Threads of one store queue at the thread lock.
        own = self._own
        if own.lock and not own.has_lock:
            own.lock.enter_context(self._lock_file.held(is_batch=True))
            own.has_lock = True
        with nullcontext() if own.lock else self._lock_file.held(), self._thread_lock:
            yield

    def _tidy(self) -> None:
        """Delete the temporary files of writers that were killed. One that is still in use is written again."""
        for path in self._root.glob(f"{_TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def _replace(self, path: Path, body: bytes) -> None:
        temporary = self._temporary()
        key = str(path)[len(str(self._root)) + 1 :]
        mode = filesystem.PRIVATE if key in files.PRIVATE else filesystem.PUBLIC

        def write() -> None:
            # Many files are written: a Path each would take as long as the file system.
            if not os.path.isdir(os.path.dirname(path)):  # noqa: PTH112, PTH120
                path.parent.mkdir(parents=True, exist_ok=True)
            _write(temporary, body, mode, is_durable=_is_record(key))
            temporary.replace(path)

        try:
            _in_spite_of_deletions(write)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _temporary(self) -> Path:
        """The temporary file of this thread."""
        own = self._own
        if own.temporary is None:
            own.temporary = self._root / f"{_TEMPORARY}-{self._token}-{threading.get_ident()}"
        return own.temporary

    def _path(self, key: str) -> Path:
        own = self._own
        folder, _, name = key.rpartition("/")
        if own.lock and folder in own.folders:
            return own.folders[folder] / name
        path = self._root / key
        # Through a link, or `..` in a key, we would write and delete somewhere else.
        if os.path.realpath(path.parent) != str(path.parent):
            raise StoreError(f"{path.parent}: a symbolic link leads elsewhere; replace it with a folder, or {_REMEDY}")
        if own.lock:
            own.folders[folder] = path.parent
        return path

    def _check(self, key: str, path: Path, condition: Condition) -> None:
        if condition is If.ALWAYS:
            return
        body = _read(path)
        if (None if body is None else self.etag_of(body)) != (None if condition is If.ABSENT else condition):
            raise ConditionFailedError(key)

    def _delete(self, path: Path) -> None:
        with _explained(path):
            path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self._root:
                return
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:  # it is not empty
                return

    def _keys(self, folder: Path, prefix: str) -> Iterator[str]:
        for key, entry in sorted(self._entries(folder)):
            if key.endswith("/"):
                if key.startswith(prefix) or prefix.startswith(key):
                    yield from self._keys(Path(entry), prefix)
            elif key.startswith(prefix) and key != _LOCK and not key.startswith(_TEMPORARY):
                yield key

    def _entries(self, folder: Path) -> Iterator[tuple[str, str]]:
        # With the slash, folders sort among files as the keys below them do.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                slash = "/" if entry.is_dir(follow_symlinks=False) else ""
                yield Path(entry.path).relative_to(self._root).as_posix() + slash, entry.path


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise StoreError(f"{path}: {filesystem.sentence(error, _REMEDY)} ({_rights(path)})") from error
    except OSError as error:
        raise StoreError(f"{path}: {filesystem.sentence(error, _REMEDY)}") from error


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


def _rights(path: Path) -> str:
    """Who this user is, and whose the nearest existing folder is."""
    place = _existing(path)
    status = place.lstat()
    mode = stat.S_IMODE(status.st_mode)
    return f"this user is {_name(os.geteuid())}; {place} belongs to {_name(status.st_uid)}, mode {mode:04o}"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # it has no entry, as in many containers
        return f"user {user}"


def _read(path: Path) -> bytes | None:
    """The bytes of a file; None if there is none."""
    try:
        return filesystem.read(path, os.O_NOFOLLOW)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _in_spite_of_deletions(write: Callable[[], None]) -> None:
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            write()
            return
    write()


def _write(path: Path, body: bytes, mode: int, *, is_durable: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    try:
        filesystem.write(handle, body)
        if is_durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def _is_record(key: str) -> bool:
    """Whether later runs work from this object. All others are flushed together before the record names them."""
    return not key.startswith((f"{API_VERSION}/", files.SHARDS))
