"""What is staged: an object, or a generation, whatever its layout, and the list that this is made of. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


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


class Stage(Protocol):
    """Where a generation is written before it is moved into place."""

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

    def stage(self, stage: Stage) -> StagedGeneration:
        """Stage its objects that are not in place."""


def stage_objects(stage: Stage, objects: Iterable[tuple[str, bytes]]) -> StagedGeneration:
    """Stage a generation of these keys and bodies, except what is in place already."""
    places, size, written = list[str](), 0, 0
    for key, body in objects:
        size += len(body)
        if stage.put(key, body):
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
