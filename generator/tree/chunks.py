"""The `chunks` layout: one list becomes objects of a few hundred items, from which an edge cuts any page. Pure.

    head      {"generation": …, "count": n, "items": […]}   the first hundred items: every first page is cut from it
    index     {"count": n, "chunks": [[end, name], …]}      a generation: its chunks in order, and where each one ends
    chunk     {"count": m, "items": […]}                    as many items as `borders` says, named by their content

Each is JSON with one item or chunk per line, so an edge can cut items without parsing them; all lines of an index are
equally long. A chunk that did not change keeps its name: it is neither written nor uploaded again, and the generations
of a list share it.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from generator.api import cursors, keys
from generator.api.contract import LIMIT_MAX
from generator.tree import borders
from generator.tree.generation import ItemList, StagedGeneration, Weight, Workplace, stage_objects

#: Part of every generation's name: increase it when the bytes of an object of this layout change.
FORMAT: Final = "2"
LAYOUT: Final = "chunks"
LETTER: Final = "c"
#: Items in a head: as many as a page can have.
HEAD_SIZE: Final = LIMIT_MAX
_NAME_LENGTH: Final = 32
#: Digits of a position, with blanks before them, and a line of an index with its comma and line break.
_END_WIDTH: Final = cursors.POSITION_LENGTH
LINE_LENGTH: Final = len(f'[{"":{_END_WIDTH}},"{"":{_NAME_LENGTH}}"],\n')
_BETWEEN: Final = b",\n"
_CLOSE: Final = b"\n]}"


class ChunkedList:
    """One content of one list, cut into chunks; equal content has an equal `name`."""

    def __init__(self, source: ItemList) -> None:
        self.list_name = source.name
        self.count = len(source.items)
        self._items = source.items
        self._borders = borders.of(source.items)
        #: The names of its chunks, in order.
        self.chunks = tuple(name(body) for body in self._bodies())
        self._index = index(self._borders[1:], self.chunks)
        self.name = generation_name(self.list_name, self._index)

    def _bodies(self) -> Iterator[bytes]:
        return (body_of(self._items[start:end]) for start, end in pairwise(self._borders))

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of every chunk, in order, then of the index."""
        yield from zip((keys.chunk(self.list_name, chunk) for chunk in self.chunks), self._bodies(), strict=True)
        yield keys.index(self.list_name, self.name), self._index

    def first_pages(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of the head, from which every first page is cut."""
        yield keys.head(self.list_name), self.head()

    def places(self) -> Iterator[str]:
        """The keys of what exists when the generation is in place: its chunks and its index."""
        return object_keys(self.list_name, self.name, self.chunks)

    def stage(self, folder: Workplace) -> StagedGeneration:
        """Stage the index, and the chunks that are not in place."""
        return stage_objects(folder, self.objects())

    def head(self) -> bytes:
        """The body of the head."""
        return head(self.name, self.count, self._items[:HEAD_SIZE])


def head(generation: str, count: int, items: Sequence[bytes]) -> bytes:
    """The body of the head of a list of `count` items, which has the first `items`."""
    return _lines(f'"generation":"{generation}","count":{count},"items"', items)


def body_of(items: Sequence[bytes]) -> bytes:
    """The body of a chunk of these items."""
    return _lines(f'"count":{len(items)},"items"', items)


def index(ends: Sequence[int], chunks: Sequence[str]) -> bytes:
    """The body of the index of a generation in `chunks`, which end at these positions."""
    lines = [f'[{end:{_END_WIDTH}},"{chunk}"]'.encode() for end, chunk in zip(ends, chunks, strict=True)]
    return _lines(f'"count":{ends[-1] if ends else 0},"chunks"', lines)


def generation_name(list_name: str, index: bytes) -> str:
    """The name of the list's generation with this index; an index names all bytes of its chunks."""
    digest = hashlib.sha256(f"{FORMAT}\n{LAYOUT}\n{list_name}\n".encode() + index)
    return LETTER + digest.hexdigest()[: cursors.GENERATION_LENGTH - 1]


def weight(count: int, size: int, new_chunks: int | None = None) -> Weight:
    """The chunks, index and head of a list of `count` items with `size` bytes in total; or of its chunks only so many.

    An estimate: it takes all items as equally long, and the borders as they are on average.
    """
    number = borders.estimate(count)
    new = number if new_chunks is None else new_chunks
    around = len(_lines(f'"count":{count // max(1, number)},"items"', [b""]))
    between = len(_BETWEEN) * (count - number) + around * number
    names, ends = ["0" * _NAME_LENGTH] * number, [count] * number
    shown = min(count, HEAD_SIZE)
    size_of_head = len(head("0" * cursors.GENERATION_LENGTH, count, [b""] * shown))
    immutable = (size + between) * new // max(1, number) + len(index(ends, names))
    return Weight(new + 1, immutable, 1, size_of_head + size * shown // max(1, count))


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
    return items_of_whole(body)


def items_of_whole(body: bytes) -> list[bytes]:
    """The encoded items of a head or a chunk that is known to be one, as its digest is right."""
    return [line.removesuffix(b",") for line in body.split(b"\n")[1:-1]]


def names(index: bytes) -> list[str]:
    """The names of the chunks in an index; raise ValueError when it is none."""
    return [name for _, name in entries(index)]


def entries(index: bytes) -> list[tuple[int, str]]:
    """Where each chunk of an index ends, and its name; raise ValueError when it is no index."""
    try:
        return [(int(end), str(name)) for end, name in json.loads(index)["chunks"]]
    except (KeyError, TypeError) as error:
        raise ValueError("not an index") from error


def _lines(start: str, encoded: Sequence[bytes]) -> bytes:
    return f"{{{start}:[\n".encode() + _BETWEEN.join(encoded) + (_CLOSE if encoded else _CLOSE[1:])
