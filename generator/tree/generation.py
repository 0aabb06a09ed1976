"""What is staged, and where: an object, or a generation of whatever layout, and the list that it is made of."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

from generator import filesystem

#: Reads an object or a file by its key or name; None if there is none.
Read: TypeAlias = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Artifact:
    """One mutable object: its key and its bytes."""

    key: str
    body: bytes


@dataclass(frozen=True)
class ItemList:
    """One list: its name, `<status>/<sort>` with an optional category, and its encoded items in order."""

    name: str
    items: Sequence[bytes]


@dataclass(frozen=True)
class PageFolder:
    """Up to a hundred neighboring pages of one limit: `name` within the generation, positions and bodies."""

    name: str
    pages: Iterator[tuple[int, bytes]]


class Workplace(Protocol):
    """Where a site is made: what is in place, and where that is staged which is not. `folder.Output` is one."""

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, by its name or key; None when it is missing."""

    def newest_body(self, key: str) -> bytes:
        """The bytes of an object as it is staged, or in place; raise OutputError when it is neither."""

    def open_newest(self, key: str) -> BinaryIO:
        """Open an object as it is staged, or in place."""

    def path(self, key: str) -> Path:
        """The path of an object, whether it exists or not."""

    def are_placed(self, object_keys: Iterable[str]) -> bool:
        """Whether all of these objects and generations are in place."""

    def scratch(self, name: str = "scratch") -> Path:
        """A path for a temporary file."""

    def stage_file(self, path: Path, key: str) -> bool:
        """Stage a temporary file, unless an identical one is in place; return whether it was staged."""

    def written_ahead(self) -> AbstractContextManager[filesystem.WriteAhead]:
        """A context that flushes staged files to the disk in the background."""

    def has(self, name: str) -> bool:
        """Whether a file or folder is in place."""

    def put(self, key: str, body: bytes) -> bool:
        """Stage an object unless an identical one is in place; return whether it was staged."""

    def put_pages(self, prefix: str, folders: Iterable[PageFolder]) -> int:
        """Stage all pages below the prefix, to be moved at once; return their bytes."""


@dataclass(frozen=True)
class StagedGeneration:
    """A staged generation: the `places` (keys or prefixes) to move, and the objects and bytes that were written.

    `size` is the bytes of the whole generation, objects that were in place already included.
    """

    places: tuple[str, ...]
    objects: int
    bytes: int
    size: int


class Stageable(Protocol):
    """One content of one list, or of the search index, which can be staged; equal content has an equal `name`."""

    list_name: str
    name: str
    count: int
    #: The names of the objects that it may share with other generations of its list.
    chunks: tuple[str, ...]

    def first_pages(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of the mutable objects that lead into it."""

    def places(self) -> Iterator[str]:
        """The keys of what exists when it is in place."""

    def stage(self, folder: Workplace) -> StagedGeneration:
        """Stage its objects that are not in place."""


def stage_objects(folder: Workplace, objects: Iterable[tuple[str, bytes]]) -> StagedGeneration:
    """Stage a generation of these keys and bodies, except what is in place already."""
    places, size, written = list[str](), 0, 0
    for key, body in objects:
        size += len(body)
        if folder.put(key, body):
            places.append(key)
            written += len(body)
    return StagedGeneration(tuple(places), len(places), written, size)


@dataclass(frozen=True, slots=True)
class Weight:
    """The objects and bytes of one list: its immutable objects, and the mutable ones that lead to them."""

    immutable: int
    immutable_bytes: int
    mutable: int
    mutable_bytes: int

    def __add__(self, other: "Weight") -> "Weight":
        """Both together."""
        return Weight(
            self.immutable + other.immutable, self.immutable_bytes + other.immutable_bytes,
            self.mutable + other.mutable, self.mutable_bytes + other.mutable_bytes,
        )  # fmt: skip

    @property
    def objects(self) -> int:
        """All objects."""
        return self.immutable + self.mutable

    @property
    def bytes(self) -> int:
        """The bytes of all objects."""
        return self.immutable_bytes + self.mutable_bytes
