"""Artifacts → files, so that whoever reads `output/` meanwhile sees the old state or the new one.

Everything new is written aside first, which is where a full disk shows. Then it is moved into place in publication
order by renames: generations, which nothing leads to yet; the manifest that knows them; details; first pages; the
complete manifest. A build that is killed leaves a folder that serves, and that the next build repairs.
"""

import ctypes
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from generator import keys, manifest
from generator.contract import API_VERSION
from generator.errors import BusyError, OutputError
from generator.manifest import Manifest
from generator.pages import Generation

MANIFEST: Final = "manifest.json"
REPORT: Final = "report.json"
_LOCK: Final = ".lock"
_STAGING: Final = ".staging-"
#: Linux can sync one file system; os.sync waits for every disk of the machine, whoever writes to it.
_SYNCFS: Final = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def locked(root: Path) -> Iterator["Output"]:
    """Hold the folder: make it if need be, refuse a second build, clear away what a killed one left aside."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _lock(root):
            _clear(root)
            staging = _aside(root)
            staging.mkdir()
            try:
                yield Output(root, staging)
            finally:
                _clear(root)
    except OSError as error:
        # A page is written by its name alone, which tells nobody where it should have gone.
        place = error.filename if "/" in str(error.filename) else root
        raise OutputError(f"{place}: {_remedy(error)}; what is served stays whole") from error


def _aside(root: Path) -> Path:
    return root / f"{_STAGING}{secrets.token_hex(8)}"


def _clear(root: Path) -> None:
    for leftover in list(root.glob(f"{_STAGING}*")):
        # Under another name first: workers that outlive a killed build find nothing to write to, and end.
        shutil.rmtree(leftover.rename(_aside(root)), ignore_errors=True)


def _remedy(error: OSError) -> str:
    text = (error.strerror or str(error)).lower()
    if isinstance(error, PermissionError):
        return f"{text}; give this user the right to write there, or choose another folder with --set output=…"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{text}; move away what is there, or choose another folder with --set output=…"
    if error.errno in _NO_ROOM:
        return f"{text}; make room, or choose another folder with --set output=…"
    return f"{text}; choose another folder with --set output=…"


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    # The operating system drops the lock when its holder ends, however it ends; the file itself means nothing.
    # A record lock (lockf, not flock) stays with this process: workers that outlive a killed build do not hold it.
    with (root / _LOCK).open("a+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.seek(0)
            raise BusyError(f"{root}: another build is at work there (process {file.read().strip()})") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


class Output:
    """The locked folder. `put…` writes aside what is new, `commit` moves it into place, `prune` deletes the rest."""

    def __init__(self, root: Path, staging: Path) -> None:
        self._root = root
        self._staging = staging
        self._discarded = 0

    def manifest(self) -> Manifest | None:
        """What the last build recorded; None when there was none."""
        path = self._root / MANIFEST
        content = self.read(MANIFEST)
        if content is None:
            if (self._root / API_VERSION).exists():
                raise OutputError(
                    f"{self._root / API_VERSION} exists but {path} does not, so it is not this program's; "
                    "move it away, or choose another folder with --set output=…"
                )
            return None
        try:
            found = manifest.format_of(content)
            if found != manifest.FORMAT:
                raise OutputError(f"{path}: format {found}, this program knows {manifest.FORMAT}; upgrade it")
            return Manifest.model_validate_json(content)
        except ValidationError as error:
            raise OutputError(
                f"{path}: damaged ({error.error_count()} mistakes); move the folder away, build again"
            ) from error

    def read(self, name: str) -> bytes | None:
        """A record of this folder, or None when there is none."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, key: str, body: bytes) -> bool:
        """Write the object aside, unless the very same is in place already."""
        if _holds(self._root / key, body):
            return False
        path = self._staging / key
        try:
            _write(path, body)
        except FileNotFoundError:
            self._make(path.parent)
            _write(path, body)
        return True

    def has_generation(self, generation: Generation) -> bool:
        """Whether the generation is in its place."""
        return (self._root / keys.generation_prefix(generation.list_name, generation.name)).is_dir()

    def put_generation(self, generation: Generation) -> int:
        """Write all pages of the generation aside; returns their bytes."""
        folder = self._staging / keys.generation_prefix(generation.list_name, generation.name)
        self._make(folder)
        size = 0
        for pages in generation.folders():
            path = folder / pages.name
            path.mkdir()
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                for position, body in pages.pages:
                    _create(f"{position}.json", body, handle)
                    size += len(body)
            finally:
                os.close(handle)
        return size

    def _make(self, folder: Path) -> None:
        # Not the folder that holds what is put aside: when the next build has taken it away, this one is over.
        place = self._staging
        for part in folder.relative_to(place).parts:
            place /= part
            place.mkdir(exist_ok=True)

    def sync(self) -> None:
        """Have everything that was put aside on the disk, before anything leads to it."""
        handle = os.open(self._staging, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _SYNCFS is None:
                os.sync()
            elif _SYNCFS(handle):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self._staging))
        finally:
            os.close(handle)

    def move(self, key: str) -> None:
        """Move an object or a generation from aside into its place, at once."""
        target = self._root / key
        try:
            (self._staging / key).replace(target)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            (self._staging / key).replace(target)
        except OSError:
            if not target.is_dir():
                raise
            # A generation that no manifest knows, from a build that was killed: nobody walks in it.
            self.discard(target)
            (self._staging / key).replace(target)

    def save(self, name: str, content: bytes) -> None:
        """Replace a record of this folder, for good even if the power fails."""
        path = self._staging / name
        _write(path, content)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        path.replace(self._root / name)
        handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def unknown(self, known: Manifest) -> Iterator[Path]:
        """Everything under `v1/` that the manifest does not name; a link to a folder is never ours."""
        generations = {keys.generation_prefix(*pair) for pair in known.generations()}
        for folder, folders, files in os.walk(self._root / API_VERSION):
            place = Path(folder).relative_to(self._root).as_posix()
            for name in [name for name in folders if keys.is_generation(f"{place}/{name}")]:
                folders.remove(name)
                if f"{place}/{name}" not in generations:
                    yield Path(folder, name)
            yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
            yield from (Path(folder, name) for name in files if f"{place}/{name}" not in known.objects)

    def discard_key(self, key: str) -> None:
        """Take an object out of its place, if it is there."""
        self.discard(self._root / key)

    def discard(self, path: Path) -> None:
        """Take a file or a generation out of its place at once; what is deleted slowly is out of reach by then."""
        self._discarded += 1
        with suppress(FileNotFoundError):
            path.replace(self._staging / f"discarded-{self._discarded}")


def _write(path: Path, body: bytes) -> None:
    _create(str(path), body, None)


def _create(name: str, body: bytes, folder: int | None) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
    try:
        # A disk that fills takes a part and says so only in the count; the next write names the cause.
        done = os.write(handle, body)
        while done < len(body):
            done += os.write(handle, body[done:])
    finally:
        os.close(handle)


def _holds(path: Path, body: bytes) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return os.fstat(handle).st_size == len(body) and os.read(handle, len(body) + 1) == body
    finally:
        os.close(handle)
