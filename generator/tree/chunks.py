"""The `chunks` layout: one list becomes an object per hundred items, from which an edge cuts any page. Pure.

    head      {"generation": …, "count": n, "items": […]}   the first hundred items: every first page is cut from it
    index     {"count": n, "first": m, "chunks": […]}       a generation: its chunks in order, `m` items in the first
    chunk     […]                                           up to a hundred items, named by their content

Each is JSON with one item per line, so an edge can cut items without parsing them. A chunk that did not change keeps
its name: it is neither written nor uploaded again, and the generations of a list share it.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from generator.api import cursors, keys
from generator.api.contract import LIMIT_MAX
from generator.tree.generation import ItemList, Stage, StagedGeneration, Weight, stage_objects

#: Part of every generation's name: increase it when the bytes of an object of this layout change.
FORMAT: Final = "1"
LAYOUT: Final = "chunks"
LETTER: Final = "c"
#: Items per chunk. A page holds at most as many, so it is cut from the head, or from at most two chunks.
SIZE: Final = LIMIT_MAX
#: Sorts that gain items at the front. Their borders count from the end, so a new item changes one chunk.
GROWING: Final = frozenset(("new", "ended"))
_NAME_LENGTH: Final = 32
_OPEN: Final = b"[\n"
_BETWEEN: Final = b",\n"
_CLOSE: Final = b"\n]"
_END_OF_HEAD: Final = b"}"


def borders(list_name: str, count: int) -> list[int]:
    """The positions where the chunks of a list of `count` items begin, and the end of the list."""
    first = count % SIZE if list_name.rpartition("/")[2] in GROWING else 0
    return [0] if count == 0 else [*range(0, first, SIZE), *range(first, count, SIZE), count]


class Generation:
    """One content of one list, cut into chunks; equal content has an equal `name`."""

    def __init__(self, source: ItemList) -> None:
        self.list_name = source.name
        self.count = len(source.items)
        self._items = source.items
        self._borders = borders(self.list_name, self.count)
        digests = [hashlib.sha256(body).digest() for body in self._bodies()]
        #: The names of its chunks, in order.
        self.chunks = tuple(digest.hex()[:_NAME_LENGTH] for digest in digests)
        self.name = self._digest(digests)

    def _bodies(self) -> Iterator[bytes]:
        return (_lines(self._items[start:end]) for start, end in pairwise(self._borders))

    def _digest(self, digests: Sequence[bytes]) -> str:
        # Digests and borders identify the items' bytes, because no item contains a raw line break.
        digest = hashlib.sha256(f"{FORMAT}\n{LAYOUT}\n{self.list_name}\n{self._borders}\n".encode())
        digest.update(b"".join(digests))
        return LETTER + digest.hexdigest()[: cursors.GENERATION_LENGTH - 1]

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of every chunk, in order, then of the index."""
        yield from zip((keys.chunk(self.list_name, chunk) for chunk in self.chunks), self._bodies(), strict=True)
        yield keys.index(self.list_name, self.name), index(self.list_name, self.count, self.chunks)

    def first_pages(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of the head, from which every first page is cut."""
        yield keys.head(self.list_name), self.head()

    def places(self) -> Iterator[str]:
        """The keys of what exists when the generation is in place: its chunks and its index."""
        return object_keys(self.list_name, self.name, self.chunks)

    def stage(self, stage: Stage) -> StagedGeneration:
        """Stage the index, and the chunks that are not in place."""
        return stage_objects(stage, self.objects())

    def head(self) -> bytes:
        """The body of the head."""
        return _start(self.name, self.count) + _lines(self._items[:SIZE]) + _END_OF_HEAD


def index(list_name: str, count: int, chunks: Sequence[str]) -> bytes:
    """The body of the index of a generation with `count` items in `chunks`."""
    first = borders(list_name, count)[1] if count else 0
    return json.dumps({"count": count, "first": first, "chunks": chunks}, separators=(",", ":")).encode()


def weight(list_name: str, count: int, size: int, new_chunks: int | None = None) -> Weight:
    """The chunks, index and head of a list of `count` items with `size` bytes in total; or of its chunks only so many.

    An estimate: it takes all items as equally long, so the bytes of the head are off by about 0.1 %.
    """
    number = len(borders(list_name, count)) - 1
    names = "0" * _NAME_LENGTH
    between = len(_BETWEEN) * (count - number) + len(_OPEN + _CLOSE) * number
    shown = min(count, SIZE)
    head = len(_start("0" * cursors.GENERATION_LENGTH, count)) + len(_lines([b""] * shown)) + len(_END_OF_HEAD)
    new = number if new_chunks is None else new_chunks
    immutable = (size + between) * new // max(1, number) + len(index(list_name, count, [names] * number))
    return Weight(new + 1, immutable, 1, head + size * shown // max(1, count))


def name(body: bytes) -> str:
    """The name of a chunk, made from its bytes."""
    return hashlib.sha256(body).hexdigest()[:_NAME_LENGTH]


def object_keys(list_name: str, generation: str, chunks: Sequence[str]) -> Iterator[str]:
    """The keys of the immutable objects of a generation: its chunks, then its index."""
    yield from (keys.chunk(list_name, chunk) for chunk in chunks)
    yield keys.index(list_name, generation)


def items(body: bytes) -> list[bytes]:
    """The encoded items of a head or a chunk; raise ValueError when it is neither."""
    json.loads(body)
    return [line.removesuffix(b",") for line in body.split(b"\n")[1:-1]]


def _start(generation: str, count: int) -> bytes:
    return f'{{"generation":"{generation}","count":{count},"items":'.encode()


def _lines(encoded: Sequence[bytes]) -> bytes:
    return _OPEN + _BETWEEN.join(encoded) + _CLOSE if encoded else b"[\n]"
