"""A directory as a store, for a local web server to serve. Knows no network and no build.

Readers see an object's old bytes or its new ones. The record and the blocked list are on the disk when a put returns,
all other objects after the next flush. Concurrent writers take turns by a lock file.
"""

import hashlib
import os
import pwd
import secrets
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import StoreError
from generator.file_times import FileTimes
from generator.stores.aside import AsideFile
from generator.stores.lock_file import LockFile
from generator.stores.store import BeforeEach, Condition, ConditionFailedError, If, Listed, Stored, nothing
from generator.stores.turns import Turns

REMEDY: Final = "choose another directory with --set publish.target=…"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise errors of a file as a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        raise explanation(path, error) from error


def explanation(path: str | Path, error: OSError) -> StoreError:
    """What happened to a file, and what to do."""
    place = existing(Path(path)) if isinstance(error, NotADirectoryError) else path  # the file that is in the way
    sentence = f"{place}: {filesystem.sentence(error, REMEDY)}"
    return StoreError(f"{sentence} ({_rights(Path(path))})" if isinstance(error, PermissionError) else sentence)


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


def _rights(path: Path) -> str:
    """Who this user is, and whose the nearest existing folder is."""
    place = existing(path)
    status = place.lstat()
    mode = stat.S_IMODE(status.st_mode)
    return f"this user is {_name(os.geteuid())}; {place} belongs to {_name(status.st_uid)}, mode {mode:04o}"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # it has no entry, as in many containers
        return f"user {user}"


_LOCK: Final = ".lock-publish"
#: How the names of temporary files for atomic replacement begin; each writing thread has its own.
_TEMPORARY: Final = ".aside-publish"
#: How many threads may put at a time if the file system is slow.
_PARALLEL: Final = 8
#: Bytes to put before having the disk write them.
_FLUSHED_AT_ONCE: Final = 32 << 20
#: Files deleted between two looks at the lease.
_DELETED_AT_ONCE: Final = 100
#: Files put under one lock: taking it, and looking for links, takes longer than a put.
_PUT_AT_ONCE: Final = 100


class _Thread(threading.local):
    """What the puts of a thread share: its temporary file and, in `together`, the lock and what was looked up."""

    aside: AsideFile | None = None
    lock: ExitStack | None = None
    has_lock = False
    #: The folders, by the beginning of keys, to which no link leads.
    folders: dict[str, str]


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
        self._times = FileTimes(self._root / _LOCK)
        self._ahead = filesystem.WriteAhead(self._root)
        self._unflushed = 0
        self._turns = Turns(_PARALLEL)
        self._own = _Thread()

    def now(self) -> datetime:
        """The clock of the file system, which may be another machine's; this machine's, if this user may only read."""
        with explained(self._root):
            try:
                return filesystem.clock(existing(self._root))
            except PermissionError:  # who may not write needs no exact clock; a monitor only reads
                return datetime.fromtimestamp(time.time(), UTC)

    def get(self, key: str) -> Stored | None:
        """Read an object; its ETag is a digest of its bytes."""
        path = self._path(key)
        with explained(Path(path)):
            body = _read(path)
            return None if body is None else Stored(body, self.etag_of(body))

    def head(self, key: str) -> str | None:
        """Return an object's ETag, which takes reading the object."""
        found = self.get(key)
        return found.etag if found else None

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object; an immutable one, which readers may be led to already, only if it differs."""
        path = self._path(key)
        etag = self.etag_of(body)
        try:
            self._put(key, path, body, condition)
            self._begin_flush(len(body))
        except OSError as error:  # not `explained`: a context for each of very many objects
            raise explanation(path, error) from error
        return etag

    def _put(self, key: str, path: str, body: bytes, condition: Condition) -> None:
        is_free, is_record = condition is If.ALWAYS and keys.is_immutable(key), _is_record(key)
        if is_free and filesystem.holding(path, body):
            return
        mode = filesystem.PRIVATE if key.startswith(keys.BLOCKED_NAMES) else filesystem.PUBLIC
        aside = self._aside()
        try:
            aside.write(body, mode, is_durable=is_record)
            if is_free:
                aside.rename(path)
                return
            # It is written already: others wait only while we compare and rename.
            with self._lock():
                self._check(key, path, condition)
                aside.rename(path, self._times)
                if is_record:
                    filesystem.fsync(Path(path).parent)
        except BaseException:
            aside.discard()
            raise

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
                with explained(self._root), self.together(), self._lock():
                    self._delete(keys[start : start + _DELETED_AT_ONCE])

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """List every object whose key begins with `prefix`; immutable ones, the many, are not read for an ETag."""
        for key in (key for key in self.keys(prefix) if key > after):
            with suppress(FileNotFoundError):  # an object may be deleted while the folder is listed
                if keys.is_immutable(key):
                    yield Listed(key, Path(self._path(key)).stat().st_size, "")
                elif (found := self.get(key)) is not None:
                    yield Listed(key, len(found.body), found.etag)

    def keys(self, prefix: str) -> Iterator[str]:
        """List the files of objects."""
        with explained(self._root):
            # The folder that all keys with this prefix share: the letter keeps `v1/` from being a file name itself.
            yield from self._keys(Path(self._path(f"{prefix}x")).parent, prefix)

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
        with explained(self._root), suppress(FileNotFoundError):  # when nothing was put
            self._ahead.check()
            filesystem.sync(self._root)

    def is_open_to_everyone(self) -> bool:
        """Whether every user of this machine can write here."""
        with explained(self._root), suppress(FileNotFoundError):
            return bool(self._root.stat().st_mode & stat.S_IWOTH)
        return False

    @contextmanager
    def together(self) -> Iterator[None]:
        """A block in which this thread takes the lock once, and looks once whether links lead to a folder.

        Do not nest these blocks: a thread would wait for a turn that it holds itself.
        """
        own = self._own
        with self._turns.taken(), ExitStack() as lock:
            own.lock, own.has_lock, own.folders = lock, False, {}
            try:
                yield
            finally:
                own.lock = None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        # Threads of one store queue at the thread lock.
        own = self._own
        if own.lock is None:
            with self._lock_file.held(), self._thread_lock:
                yield
            return
        if not own.has_lock:
            own.lock.enter_context(self._lock_file.held(is_batch=True))
            own.has_lock = True
        with self._thread_lock:
            yield

    def _tidy(self) -> None:
        """Delete the temporary files of writers that were killed. One that is still in use is written again."""
        for path in self._root.glob(f"{_TEMPORARY}*"):
            if self._token not in path.name:
                path.unlink(missing_ok=True)

    def _aside(self) -> AsideFile:
        """The temporary file of this thread."""
        own = self._own
        if own.aside is None:
            own.aside = AsideFile(str(self._root), f"{_TEMPORARY}-{self._token}-{threading.get_ident()}")
        return own.aside

    def _path(self, key: str) -> str:
        own = self._own
        folder, _, name = key.rpartition("/")
        if own.lock is None or folder not in own.folders:
            place = (self._root / key).parent
            # Through a link, or `..` in a key, we would write and delete somewhere else.
            if os.path.realpath(place) != str(place):
                raise StoreError(f"{place}: a symbolic link leads elsewhere; replace it with a folder, or {REMEDY}")
            if own.lock is None:
                return f"{place}/{name}"
            own.folders[folder] = str(place)
        return f"{own.folders[folder]}/{name}"

    def _check(self, key: str, path: str, condition: Condition) -> None:
        if condition is If.ALWAYS:
            return
        body = _read(path)
        if (None if body is None else self.etag_of(body)) != (None if condition is If.ABSENT else condition):
            raise ConditionFailedError(key)

    def _delete(self, keys: Sequence[str]) -> None:
        folders: dict[str, None] = {}
        for path in map(self._path, keys):
            with explained(Path(path)), suppress(FileNotFoundError):
                self._times.note_deletion(path)
                os.unlink(path)  # noqa: PTH108 - of very many files
            folders[os.path.dirname(path)] = None  # noqa: PTH120
        for folder in map(Path, folders):
            self._delete_if_empty(folder)

    def _delete_if_empty(self, folder: Path) -> None:
        for place in (folder, *folder.parents):
            if place == self._root:
                return
            try:
                place.rmdir()
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


def _read(path: str) -> bytes | None:
    """The bytes of a file; None if there is none."""
    try:
        return filesystem.read(path, os.O_NOFOLLOW)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _is_record(key: str) -> bool:
    """Whether later runs work from this object. All others are flushed together before the record names them."""
    return not key.startswith((f"{API_VERSION}/", keys.STATES))
