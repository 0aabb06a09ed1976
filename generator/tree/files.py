"""What in an output folder is this program's own: the names of the files beside `v1/`, and what lies below it.

It neither follows links nor touches the files of others. Files beside `v1/` are never published.
"""

import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import OutputError
from generator.tree.generations import Generations, chunk_keys, has_index

MANIFEST: Final = "manifest.json"
#: A copy of the state of a large record, as it was last published from here.
LAST_STATE: Final = "published.state"
#: The states of large manifests lie below.
STATES: Final = keys.STATES
#: Where former programs kept parts of large manifests and records.
FORMER_STATES: Final = "shards/"
REPORT: Final = "report.json"
#: What the details were made of: digests of what the database says of each, which are not public either.
FINGERPRINTS: Final = "details.json"
#: The shards of a large one.
FINGERPRINT_SHARDS: Final = "details/"
#: Where the parts of the newest dump begin, so that the next one can copy those that did not change.
DUMP_PARTS: Final = "dumps.json"
#: Which objects hold the words of the search index, and a digest of what these were made of.
WORDS: Final = "words.json"
#: What is made with the lists, and is not published.
BESIDE: Final = (DUMP_PARTS, WORDS)
#: What the last build was made from, if a build can tell by it that nothing changed.
UNCHANGED: Final = "unchanged.state"
#: What readers were last led to by a publish from here; only in a folder whose builds have a target.
LAST_PUBLISH: Final = "published.json"
#: The blocked list, which a store holds under the same name.
BLOCKED: Final = keys.BLOCKED
BLOCKED_ASIDE: Final = keys.BLOCKED_ASIDE
#: The inspection page, and beside it, where Parquet is published, the history page.
INSPECTION: Final = "index.html"
HISTORY: Final = "history.html"
#: What is published and what needs a person, in a frame of the inspection page. It quotes no market.
STATUS: Final = "status.html"
#: What quotes markets and the next build makes again: a takedown deletes it first.
QUOTING: Final = (INSPECTION, HISTORY, UNCHANGED)
#: Files that name what is not public, or no longer: only the user who builds may read them.
PRIVATE: Final = frozenset({MANIFEST, LAST_STATE, REPORT, STATUS, *QUOTING, BLOCKED, FINGERPRINTS, *BESIDE})
#: Folders of such files.
PRIVATE_FOLDERS: Final = (STATES, FORMER_STATES, FINGERPRINT_SHARDS)
_PRIVATE_NAMES: Final = (*PRIVATE_FOLDERS, BLOCKED_ASIDE)
DOCUMENTATION: Final = "api.html"
#: Third-party programs, unmodified; the README beside each in templates/vendor states its version and license.
RENDERER: Final = "vendor/rapidoc/rapidoc-min.js"
PLOTTERS: Final = ("vendor/plot/d3.min.js", "vendor/plot/plot.umd.min.js")
#: Each page for people, with the files that it loads, and their licenses.
LOADED_BY: Final = {
    HISTORY: (*PLOTTERS, *(f"vendor/plot/LICENSE-{name}.txt" for name in ("d3", "plot", "parts"))),
    INSPECTION: (),
    DOCUMENTATION: (RENDERER, f"{RENDERER}.LICENSE.txt", "vendor/rapidoc/LICENSE.txt"),
}
#: All of these files.
PAGES: Final = tuple(name for page, loaded in LOADED_BY.items() for name in (page, *loaded))


def is_private(name: str) -> bool:
    """Whether only the user who builds may read a file of the output folder, which nginx must be able to enter."""
    return name in PRIVATE or name.startswith(_PRIVATE_NAMES)


ELSEWHERE: Final = "choose another folder with --set output=…"


class Ownership:
    """Checks that paths in the folder at `root` are ours; remembers the folders that it has checked."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real_root = Path(os.path.realpath(root))
        self._checked: set[Path] = set()
        self._owned: set[str] = set()

    def require_manifest(self) -> None:
        """Raise OutputError if the folder, which has no manifest, holds objects that a build would replace."""
        if (self._root / API_VERSION).exists():
            raise OutputError(
                f"{self._root / API_VERSION} exists but {self._root / MANIFEST} does not, so this program did "
                f"not create it; move it away, or {ELSEWHERE}"
            )

    def require_places(self) -> None:
        """Raise OutputError if anything but a folder lies where this program keeps its own."""
        for place in (self._root / STATES, self._root / FINGERPRINT_SHARDS):
            if place.exists() and not place.is_dir():
                raise OutputError(
                    f"{place}: is not a folder, but this program needs a folder of that name; move it away, or "
                    f"{ELSEWHERE}"
                )

    def path(self, path: Path) -> Path:
        """Return the path, or raise OutputError if a link inside the root leads to it."""
        folder = path.parent
        if folder not in self._checked:
            inner = folder.relative_to(self._root)
            if os.path.realpath(folder) != str(self._real_root / inner):
                parts = [self._root.joinpath(*inner.parts[: count + 1]) for count in range(len(inner.parts))]
                link = next((part for part in parts if part.is_symlink()), folder)
                raise OutputError(
                    f"{link}: is a symbolic link, which is not followed; replace it with a folder, or {ELSEWHERE}"
                )
            self._checked.add(folder)
        return path

    def path_of(self, key: str) -> str:
        """The same for an object's key, as text: for very many, a Path would take as long as the file system.

        A key that ends with `/` is that of a folder, which must be no link either.
        """
        folder = key.rpartition("/")[0]
        if folder not in self._owned:
            self.path(self._root / folder / "any")
            self._owned.add(folder)
        return f"{self._root}/{key}"


def unknown_paths(root: Path, objects: Container[str], known: Generations) -> Iterator[Path]:
    """Every path under `v1/` but those of these objects and generations; links to folders are never ours."""
    chunks = chunk_keys(known)
    prefixes = {keys.generation_prefix(*pair) for pair in known}
    for folder, folders, names in os.walk(root / API_VERSION):
        place = Path(folder).relative_to(root).as_posix()
        for name in [name for name in folders if keys.is_generation(f"{place}/{name}")]:
            folders.remove(name)
            if f"{place}/{name}" not in prefixes:
                yield Path(folder, name)
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
        found = [f"{place}/{name}" for name in names]
        yield from (root / key for key in found if key not in objects and key not in chunks)


def expected(objects: Iterable[str], known: Generations) -> Iterator[str]:
    """What `placed` finds in a folder that has these objects and generations, and nothing else."""
    yield from objects
    yield from chunk_keys(known)
    yield from (keys.index(*pair) if has_index(*pair) else keys.generation_prefix(*pair) for pair in known)


def placed(root: Path) -> Iterator[str]:
    """Every file under `v1/` by its key, and every generation of pages by its folder, without what is in it."""
    folders = [API_VERSION]
    while folders:
        place = folders.pop()
        with os.scandir(f"{root}/{place}") as entries:
            for entry in entries:
                key = f"{place}/{entry.name}"
                if entry.is_file(follow_symlinks=False):
                    yield key
                elif entry.is_dir(follow_symlinks=False) and not _has_pages(key):
                    folders.append(key)
                else:
                    yield key if entry.is_dir(follow_symlinks=False) else f"{key} is no file"


def _has_pages(folder: str) -> bool:
    family, generation = keys.list_of(folder), folder.rpartition("/")[2]
    return family is not None and keys.is_generation(folder) and not has_index(family, generation)


def tally(names: Iterable[str]) -> str:
    """The number of these names and the sum of their checksums: equal for equal names, in whatever order they come."""
    numbers = [*map(crc32, map(os.fsencode, names))]
    return f"{len(numbers)} {sum(numbers)}"
