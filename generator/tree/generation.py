"""What generations of both layouts have in common: the list they are made of, and how they are staged. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


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


@dataclass(frozen=True, slots=True)
class Weight:
    """The objects and bytes of one list: its immutable objects, and the mutable ones that lead to them."""

    immutable: int
    immutable_bytes: int
    mutable: int
    mutable_bytes: int
