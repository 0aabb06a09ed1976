"""Artifacts → files, so that whoever reads `output/` meanwhile sees the old state or the new one.

Everything new is written aside first, which is where a full disk shows. Then it is moved into place in publication
order by renames: generations, which nothing leads to yet; the manifest that knows them; details; first pages; the
complete manifest. A build that is killed leaves a folder that serves, and that the next build repairs.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from generator import filesystem
from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import BusyError, OutputError
from generator.tree import layouts, manifest
from generator.tree.files import MANIFEST
from generator.tree.manifest import Manifest
from generator.tree.pages import Generation

_LOCK: Final = ".lock"
_STAGING: Final = ".staging-"
_ELSEWHERE: Final = "choose another folder with --set output=…"


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
        raise OutputError(f"{place}: {filesystem.sentence(error, _ELSEWHERE)}; what is served stays whole") from error


@contextmanager
def read_only(root: Path) -> Iterator["Output"]:
    """The folder for reading only, whoever writes there meanwhile."""
    try:
        yield Output(root, root)
    except OSError as error:
        raise OutputError(f"{root}: {filesystem.sentence(error, _ELSEWHERE)}") from error


def _aside(root: Path) -> Path:
    return root / f"{_STAGING}{secrets.token_hex(8)}"


def _clear(root: Path) -> None:
    for leftover in list(root.glob(f"{_STAGING}*")):
        # Under another name first: workers that outlive a killed build find nothing to write to, and end.
        shutil.rmtree(leftover.rename(_aside(root)), ignore_errors=True)


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    # The operating system drops the lock when its holder ends, however it ends; the file itself means nothing.
    # A record lock (lockf, not flock) stays with this process: workers that outlive a killed build do not hold it.
    with (root / _LOCK).open("a+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.seek(0)
            raise BusyError(f"{root}: another run is at work there (process {file.read().strip()})") from None
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
        """A record of this folder, or an object; None when there is none."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def path(self, key: str) -> Path:
        """Where an object lies."""
        return self._root / key

    def body(self, key: str) -> bytes:
        """The bytes of an object that is there, as built."""
        body = self.read(key)
        if body is None:
            raise OutputError(f"{self.path(key)}: missing; run `public-markets build` again")
        return body

    def scratch(self) -> Path:
        """A place for another folder, which is gone when this one is let go."""
        return self._staging / "scratch"

    def weight(self, object_keys: Iterable[str]) -> tuple[int, int]:
        """How many of these objects are there, and their bytes together."""
        sizes = [size for size in map(self._size, object_keys) if size is not None]
        return len(sizes), sum(sizes)

    def _size(self, key: str) -> int | None:
        try:
            return (self._root / key).stat(follow_symlinks=False).st_size
        except OSError:
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

    def has(self, name: str) -> bool:
        """Whether a folder or an object is in its place."""
        return self._size(name) is not None

    def has_all(self, names: Iterable[str]) -> bool:
        """Whether all of these are in their place."""
        return all(map(self.has, names))

    def put_pages(self, generation: Generation) -> int:
        """Write all pages of the generation aside, which takes one `move`; returns their bytes."""
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
        filesystem.sync(self._staging)

    def written_ahead(self) -> filesystem.WriteAhead:
        """What brings that to the disk while more is put aside."""
        return filesystem.WriteAhead(self._staging)

    def move(self, key: str) -> None:
        """Move an object or a generation from aside into its place, at once."""
        aside, target = self._staging / key, self._root / key
        try:
            aside.replace(target)
        except FileNotFoundError:
            self._move_anew(aside, target)
        except OSError:
            if not target.is_dir():
                raise
            # A generation that no manifest knows, from a build that was killed: nobody walks in it.
            self.discard(target)
            self._move_anew(aside, target)

    def _move_anew(self, aside: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.replace(target)

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
        there = known.generations()
        prefixes = {keys.generation_prefix(*pair) for pair in there}
        objects = known.objects.keys() | layouts.chunk_keys(there)
        for folder, folders, files in os.walk(self._root / API_VERSION):
            place = Path(folder).relative_to(self._root).as_posix()
            for name in [name for name in folders if keys.is_generation(f"{place}/{name}")]:
                folders.remove(name)
                if f"{place}/{name}" not in prefixes:
                    yield Path(folder, name)
            yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
            yield from (Path(folder, name) for name in files if f"{place}/{name}" not in objects)

    def strangers(self, known: Manifest) -> set[str]:
        """The keys of mutable objects that the manifest does not name."""
        found = (path for path in self.unknown(known) if path.is_file())
        return {path.relative_to(self._root).as_posix() for path in found}

    def discard_key(self, key: str) -> None:
        """Take an object out of its place, if it is there."""
        self.discard(self._root / key)

    def discard(self, path: Path) -> None:
        """Take a file or a generation out of its place at once; what is deleted slowly is out of reach by then."""
        self._discarded += 1
        with suppress(FileNotFoundError):
            path.replace(self._staging / f"discarded-{self._discarded}")
        # Folders that are empty now, up to the first one that is not.
        with suppress(OSError):
            for folder in path.parents:
                folder.rmdir()


def _write(path: Path, body: bytes) -> None:
    _create(str(path), body, None)


def _create(name: str, body: bytes, folder: int | None) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
    try:
        filesystem.write(handle, body)
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
