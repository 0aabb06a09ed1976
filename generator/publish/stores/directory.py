"""A directory as a store, from which a web server of one's own serves. It knows no network and no build.

Readers see an object's old bytes or its new ones. Writers agree through a lock on a file of the directory.
"""

import fcntl
import hashlib
import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from generator import filesystem
from generator.api import keys
from generator.errors import StoreError
from generator.publish.stores.store import Condition, ConditionFailedError, If, Listed, Stored, UnavailableError

_LOCK: Final = ".lock-publish"
#: Where an object is written that readers may be reading; who holds the lock owns it, so one is enough.
_ASIDE: Final = ".aside-publish"
_ELSEWHERE: Final = "choose another directory with --set publish.target=…"
_PARALLEL: Final = 8
#: A folder that another writer found empty can vanish before its next file is made.
_FOLDER_TRIES: Final = 10
_LOCK_WAIT_S: Final = 0.005
_LOCK_TRIES: Final = 1_000


class Directory:
    """Objects as files below `root`, which is made when the first is put."""

    requests: Final = 0
    parallel: Final = _PARALLEL

    def __init__(self, root: Path) -> None:
        self.name = str(root)
        self._root = Path(os.path.realpath(root))
        self._aside = self._root / _ASIDE
        self._threads = threading.Lock()

    def now(self) -> datetime:
        """The clock of the file system, which another machine may keep."""
        with _explained(self._root):
            existing = next(path for path in (self._root, *self._root.parents) if path.exists())
            with tempfile.TemporaryFile(dir=existing) as file:
                return datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)

    def get(self, key: str) -> Stored | None:
        """Read an object; its ETag is a digest of its bytes."""
        path = self._path(key)
        with _explained(path):
            try:
                with open(path, "rb", opener=_open_no_link) as file:
                    body = file.read()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None
            return Stored(body, self.etag_of(body))

    def head(self, key: str) -> str | None:
        """Tell an object's ETag, which takes reading it."""
        found = self.get(key)
        return found.etag if found else None

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object. An immutable one is written in its place: nothing leads to it yet."""
        path = self._path(key)
        with _explained(path):
            if condition is If.ALWAYS and keys.is_immutable(key):
                _in_folder(path, lambda: _write(path, body))
            else:
                with self._lock():
                    self._check(key, condition)
                    _write(self._aside, body)
                    _in_folder(path, lambda: self._aside.replace(path))
        return self.etag_of(body)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, and folders that are empty without them."""
        if self._root.exists():
            with _explained(self._root), self._lock():
                for key in keys:
                    self._delete(self._path(key))

    def list(self, prefix: str) -> Iterator[Listed]:
        """Read every object whose key begins with `prefix`."""
        with _explained(self._root):
            # The folder of the keys that begin like this: with the letter `v1/` is not itself a key in another folder.
            for key in self._keys(self._path(f"{prefix}x").parent, prefix):
                # Whoever deletes meanwhile is not waited for.
                if (found := self.get(key)) is not None:
                    yield Listed(key, len(found.body), found.etag)

    def purge_versions(self, prefix: str) -> int:  # noqa: ARG002 - the protocol's
        """Nothing is kept of what was overwritten."""
        return 0

    def is_versioned(self) -> bool:
        """No file system that readers are served from keeps what was overwritten."""
        return False

    def etag_of(self, body: bytes) -> str:
        """The digest of the bytes."""
        return hashlib.sha256(body).hexdigest()

    def flush(self) -> None:
        """Have everything that was put on the disk."""
        with _explained(self._root), suppress(FileNotFoundError):  # when nothing was put
            filesystem.sync(self._root)

    def is_open_to_everyone(self) -> bool:
        """Whether every user of this machine may write here."""
        with _explained(self._root), suppress(FileNotFoundError):
            return bool(self._root.stat().st_mode & stat.S_IWOTH)
        return False

    @contextmanager
    def _lock(self) -> Iterator[None]:
        # The operating system drops the lock when its holder ends, however it ends. `flock`, unlike a record lock,
        # tells two stores of one process apart, because each of them opens the file. Threads of one store queue here.
        with self._threads:
            self._root.mkdir(parents=True, exist_ok=True)
            with (self._root / _LOCK).open("ab") as file:
                self._wait_for(file)
                yield

    def _wait_for(self, file: IO[bytes]) -> None:
        # Not forever: a process that was stopped while it held the lock is not to stop everybody else.
        for _ in range(_LOCK_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_LOCK_WAIT_S)
        raise UnavailableError(f"{self._root / _LOCK}: another process holds the lock")

    def _path(self, key: str) -> Path:
        path = self._root / key
        # A link, or `..` in a key, would have us write and delete where nobody expects it.
        if os.path.realpath(path.parent) != str(path.parent):
            raise StoreError(f"{path.parent}: leads elsewhere by a link; put a folder in its place, or {_ELSEWHERE}")
        return path

    def _check(self, key: str, condition: Condition) -> None:
        if condition is not If.ALWAYS and self.head(key) != (None if condition is If.ABSENT else condition):
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
            elif key.startswith(prefix) and key not in (_LOCK, _ASIDE):
                yield key

    def _entries(self, folder: Path) -> Iterator[tuple[str, str]]:
        # With the slash a folder sorts among files as the keys below it do.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                slash = "/" if entry.is_dir(follow_symlinks=False) else ""
                yield Path(entry.path).relative_to(self._root).as_posix() + slash, entry.path


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {filesystem.sentence(error, _ELSEWHERE)}") from error


def _in_folder(path: Path, write: Callable[[], object]) -> None:
    for _ in range(_FOLDER_TRIES):
        with suppress(FileNotFoundError):
            write()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
    write()


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _write(path: Path, body: bytes) -> None:
    handle = _open_no_link(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        filesystem.write(handle, body)
    finally:
        os.close(handle)
