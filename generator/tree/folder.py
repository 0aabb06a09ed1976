"""The output folder, changed so that readers always see the old state or the new one.

Everything new is written to a staging folder first, where a full disk does no harm. Renames then move it into place, in
publication order: generations, which nothing leads to yet; the manifest that names them; details; first pages; the
complete manifest. A killed build leaves a folder that can be served, and that the next build repairs.
"""

import os
import shutil
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Final

from generator import filesystem
from generator.api import forms, keys
from generator.api.contract import API_VERSION
from generator.errors import OutputError
from generator.file_times import FileTimes
from generator.tree import files, manifest_file, run_lock
from generator.tree.files import ELSEWHERE, Ownership
from generator.tree.generation import PageFolder
from generator.tree.generations import Generations
from generator.tree.manifest import Manifest

#: How the keys of objects begin.
_SERVED: Final = f"{API_VERSION}/"
#: What a run that the disk stopped says of the folder.
_UNCHANGED: Final = "what is served is unchanged"
_CHANGED: Final = "a part of the change is in place already: run the same command again to finish it"


@contextmanager
def locked(root: Path) -> Iterator["Output"]:
    """Lock the folder, created if missing; raise BusyError if another run holds it. Clear what a killed run staged."""
    output = None
    try:
        root.mkdir(parents=True, exist_ok=True)
        with run_lock.staging_folder(root) as staging:
            # An older version, or a copy, may have left them readable.
            for name in (*files.PRIVATE, *files.PRIVATE_FOLDERS):
                filesystem.make_private(root / name)
            output = Output(root, staging)
            yield output
    except OSError as error:
        # Pages are written relative to an open folder, so the error names no path.
        place = error.filename if "/" in str(error.filename) else root
        state = _CHANGED if output and output.has_changed else _UNCHANGED
        raise OutputError(f"{place}: {filesystem.sentence(error, ELSEWHERE)}; {state}") from error


@contextmanager
def locked_in_turn(root: Path, notify: run_lock.Notify) -> Iterator["Output"]:
    """Lock the folder, created if missing, after any other run."""
    with ExitStack() as stack:
        yield run_lock.retried_while_busy(lambda: stack.enter_context(locked(root)), notify, "waiting")


@contextmanager
def read_only(root: Path) -> Iterator["Output"]:
    """The folder for reading, without a lock."""
    try:
        yield Output(root, root)
    except OSError as error:
        raise OutputError(f"{root}: {filesystem.sentence(error, ELSEWHERE)}") from error


def _mode(name: str) -> int:
    return filesystem.PRIVATE if files.is_private(name) else filesystem.PUBLIC


class Output:
    """The locked folder: `put…` stages what is new, `move` puts it into place, `discard…` deletes.

    A link in place of a folder raises OutputError: beyond it, files that are not ours would be written and deleted.
    """

    def __init__(self, root: Path, staging: Path) -> None:
        self._root = root
        self._ours = Ownership(root)
        self._staging = staging
        self._times = FileTimes(run_lock.path(root))
        self._discarded = 0
        #: Whether anything but what is staged may have changed.
        self.has_changed = False
        #: Whether this run found all as the last build left it, of the same settings: names under `v1/`, edges' files.
        self.is_as_left = False

    def manifest(self, *, is_light: bool = False) -> Manifest | None:
        """The manifest of the last build; None when there was none. `is_light`: digests of details may be missing.

        Raises OutputError if it cannot be read, or if something lies where this program keeps its own.
        """
        self._ours.require_places()
        found = manifest_file.read(self._root, self.read, is_light=is_light)
        if found is None:
            self._ours.require_manifest()
        return found

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, by its name or key; None when it is missing."""
        with suppress(FileNotFoundError):
            return filesystem.read(self._place(name))
        return None

    def _place(self, name: str) -> str:
        """Where a file is, or would be, in place."""
        return f"{self._root}/{name}"

    def _own_place(self, key: str) -> str:
        """The same for an object; raise OutputError if a link leads there."""
        return self._ours.path_of(key)

    def newest(self, key: str) -> bytes | None:
        """The bytes of an object as it is staged, or in place; None when it is neither."""
        with suppress(FileNotFoundError):
            return filesystem.read(f"{self._staging}/{key}")
        return self.read(key)

    def newest_body(self, key: str) -> bytes:
        """The bytes of an object as it is staged, or in place; raise OutputError when it is neither."""
        if (body := self.newest(key)) is None:
            raise self._missing(key)
        return body

    def open_newest(self, key: str) -> BinaryIO:
        """Open an object as it is staged, or in place."""
        staged = self._staging / key
        return (staged if staged.exists() else self.path(key)).open("rb")

    def path(self, key: str) -> Path:
        """The path of an object."""
        return Path(self._place(key))

    def body(self, key: str) -> bytes:
        """The bytes of an object; raise OutputError when it is missing."""
        if (body := self.read(key)) is None:
            raise self._missing(key)
        return body

    def _missing(self, key: str) -> OutputError:
        return OutputError(f"{self.path(key)}: missing; run `public-markets build` again")

    def scratch(self, name: str = "scratch") -> Path:
        """A path for a temporary file or output folder, which is deleted when this one is unlocked."""
        return self._staging / name

    def weight(self, object_keys: Iterable[str]) -> tuple[int, int]:
        """How many of these objects exist, and their bytes in total."""
        sizes = [size for size in map(self._size, object_keys) if size is not None]
        return len(sizes), sum(sizes)

    def _size(self, key: str) -> int | None:
        with suppress(OSError):
            return self.path(key).stat(follow_symlinks=False).st_size
        return None

    def put(self, key: str, body: bytes) -> bool:
        """Stage an object unless an identical one is in place; return whether it was staged."""
        in_place = self._own_place(key)
        if found := filesystem.holding(in_place, body):
            self._let_read(key, in_place, found)
            return False
        path = f"{self._staging}/{key}"
        try:
            filesystem.create(path, body, mode=_mode(key))
        except FileNotFoundError:
            self._make(Path(path).parent)
            filesystem.create(path, body, mode=_mode(key))
        return True

    def stage_file(self, path: Path, key: str) -> bool:
        """Stage a temporary file, unless an identical one is in place; return whether it was staged."""
        in_place = self._own_place(key)
        is_like = filesystem.size(in_place) == path.stat().st_size
        if is_like and filesystem.digest(Path(in_place)) == filesystem.digest(path):
            return False
        self._make((self._staging / key).parent)
        path.replace(self._staging / key)
        return True

    def has(self, name: str) -> bool:
        """Whether a file or folder is in place."""
        return self._size(name) is not None

    def _is_placed(self, key: str) -> bool:
        """Whether an object or a generation is in place."""
        path = self._place(key)
        try:
            found = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - of very many files
        except OSError:
            return False
        self._let_read(key, path, found)
        return True

    def _let_read(self, name: str, path: str, found: os.stat_result) -> None:
        """Let a web server read what is served, which a copy or an earlier umask may have closed."""
        if not name.startswith(_SERVED) or not filesystem.let_read_like(self._like, path, found):
            return
        for parent in Path(name).parents[:-1]:
            folder = self.path(parent.as_posix())
            filesystem.let_read_like(self._like, str(folder), folder.lstat())

    @cached_property
    def _like(self) -> os.stat_result:
        # The umask made its mode; it cannot be read without changing it for all threads.
        return self._staging.stat()

    def are_placed(self, object_keys: Iterable[str]) -> bool:
        """Whether all of these objects and generations are in place."""
        return all(map(self._is_placed, object_keys))

    def names(self, folder: str) -> list[str]:
        """The names of all files in a folder, whose own ends with `/`; none if there is no such folder.

        A link is no file; raise OutputError if one leads to the folder.
        """
        with suppress(FileNotFoundError), os.scandir(self._ours.path_of(folder)) as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        return []

    def placed(self) -> Iterator[str]:
        """What is in place under `v1/`, by name: see `files.placed`."""
        self._ours.path_of(_SERVED)
        return files.placed(self._root)

    def sync_names(self, folder: str) -> None:
        """Flush the names in a folder to the disk, after files moved into it."""
        filesystem.fsync(self._root / folder)

    def start_again(self) -> None:
        """Forget everything that was staged."""
        shutil.rmtree(self._staging)
        self._staging.mkdir()

    def put_pages(self, prefix: str, folders: Iterable[PageFolder]) -> int:
        """Stage all pages below the prefix, to be moved at once; return their bytes."""
        self._ours.path(self._root / prefix)
        place = self._staging / prefix
        self._make(place)
        size = 0
        for pages in folders:
            path = place / pages.name
            path.mkdir()
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                for position, body in pages.pages:
                    filesystem.create(f"{position}.json", body, handle)
                    size += len(body)
            finally:
                os.close(handle)
        return size

    def _make(self, folder: Path) -> None:
        # Never create the staging folder itself: if it is gone, another build has taken over, and this one must fail.
        place = self._staging
        for part in folder.relative_to(place).parts:
            place /= part
            place.mkdir(exist_ok=True)

    def now(self) -> str:
        """The time by the clock of the file system, which all runs in the folder share."""
        return forms.instant(filesystem.clock(self._staging))

    def sync(self) -> None:
        """Flush everything staged to the disk, before anything leads to it."""
        filesystem.sync(self._staging)

    def written_ahead(self) -> filesystem.WriteAhead:
        """A context that flushes staged files to the disk in the background."""
        return filesystem.WriteAhead(self._staging)

    def move(self, key: str) -> None:
        """Move a staged object or generation into place, atomically."""
        staged, target = f"{self._staging}/{key}", self._ours.path_of(key)
        self.has_changed = True
        if key.startswith(_SERVED) and not keys.is_immutable(key):
            self._times.follow(staged, target)
        try:
            os.replace(staged, target)  # noqa: PTH105 - as above
        except FileNotFoundError:
            self._move_into_new_folder(Path(staged), Path(target))
        except OSError:
            if not Path(target).is_dir():
                raise
            # A generation that came here since this one was staged: no manifest names it, so no walk is in it.
            self.discard(Path(target))
            self._move_into_new_folder(Path(staged), Path(target))

    def _move_into_new_folder(self, staged: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.replace(target)

    def save(self, name: str, content: bytes) -> None:
        """Replace a file beside `v1/`, and flush it to the disk."""
        path = self._staging / name
        filesystem.create(path, content, mode=_mode(name))
        self.has_changed = True
        filesystem.fsync(path)
        path.replace(self._root / name)
        filesystem.fsync(self._root)

    def unknown(self, objects: Container[str], known: Generations) -> Iterator[Path]:
        """Every path under `v1/` but those of these objects and generations."""
        self._ours.path(self._root / API_VERSION)
        yield from files.unknown_paths(self._root, objects, known)

    def strangers(self, known: Manifest) -> set[str]:
        """The keys of mutable objects that the manifest does not name."""
        return {self._name(path) for path in self.unknown(known.objects, known.generations()) if path.is_file()}

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def discard_key(self, key: str) -> None:
        """Delete an object, if it exists."""
        self.discard(self._root / key)

    def discard(self, path: Path) -> None:
        """Delete a file or a generation: out of readers' reach at once, from the disk when the folder is unlocked.

        A folder that cannot be moved loses its files one by one. No manifest names a generation any more that is
        deleted, so a half of one is not taken for a whole.
        """
        self._discarded += 1
        self.has_changed |= os.path.lexists(path)
        with suppress(FileNotFoundError):
            self._times.note_deletion(str(self._ours.path(path)))
            filesystem.take_away(path, self._staging / f"discarded-{self._discarded}")
        # Delete the parent folders that are empty now.
        with suppress(OSError):
            for folder in path.parents:
                folder.rmdir()
