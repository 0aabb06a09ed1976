"""A list in the layout `chunks` without some of its items, made of the chunks around them: the same as if made whole.

Nothing else of the list is read; whoever uses it makes sure that the rest is in place.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise

from generator.api import keys
from generator.tree import borders, chunks
from generator.tree.generation import Read, StagedGeneration, Workplace, stage_objects
from generator.tree.manifest import Current


class InDoubtError(Exception):
    """What is in place is not the list as it is known; no operator sees why, as the list is made whole."""


class ChunksInPlace:
    """A list as it is in place: its `items`, each read with its chunk when it is asked for.

    Raises InDoubtError if the index, or later a chunk, is missing or damaged.
    """

    def __init__(self, read: Read, list_name: str, current: Current) -> None:
        self.list_name = list_name
        self.current = current
        self._read = read
        index = read(keys.index(list_name, current.generation)) or b""
        if chunks.generation_name(list_name, index) != current.generation:
            raise InDoubtError("the index is missing or damaged")
        entries = chunks.entries(index)
        self.index_size = len(index)
        self.names = [name for _, name in entries]
        self.borders = [0, *(end for end, _ in entries)]
        if self.borders[-1] != current.count or tuple(self.names) != current.chunks:
            raise InDoubtError("the index is not what is recorded")
        self._items = dict[int, list[bytes]]()

    def item(self, position: int) -> bytes:
        """The encoded item at a position."""
        number = bisect_right(self.borders, position) - 1
        return self.chunk(number)[position - self.borders[number]]

    def chunk(self, number: int) -> list[bytes]:
        """The encoded items of a chunk."""
        if number not in self._items:
            name = self.names[number]
            body = self._read(keys.chunk(self.list_name, name)) or b""
            if chunks.name(body) != name:
                raise InDoubtError("a chunk is missing or damaged")
            self._items[number] = chunks.items_of_whole(body)
        return self._items[number]

    def first(self, is_there: Callable[[bytes], bool]) -> int:
        """The first position of an item that `is_there`, as all after it are; the list's length if there is none."""
        return bisect_left(range(self.current.count), 1, key=lambda position: is_there(self.item(position)))


class ShortenedList:
    """One content of a list, as `chunks.ChunkedList` would make it: what is in place without the items `gone`.

    Those, and its borders `begins`, are positions in the list in place. Only its new chunks are made, and staged.
    """

    def __init__(self, source: ChunksInPlace, gone: Sequence[int], begins: Sequence[int]) -> None:
        former = dict(zip(pairwise(source.borders), range(len(source.names)), strict=True))
        self._made, ends, names = dict[str, bytes](), list[int](), list[str]()
        absent = frozenset(gone)
        for start, end in pairwise(begins):
            ends.append(end - bisect_left(gone, end))
            if (start, end) in former and bisect_left(gone, start) == bisect_left(gone, end):
                names.append(source.names[former.pop((start, end))])
            else:
                body = chunks.body_of([source.item(place) for place in range(start, end) if place not in absent])
                names.append(chunks.name(body))
                self._made[names[-1]] = body
        self.list_name = source.list_name
        self.count = source.current.count - len(gone)
        self.chunks = tuple(names)
        self._index = chunks.index(ends, names)
        self.name = chunks.generation_name(self.list_name, self._index)
        ended = sum(len(chunks.body_of(source.chunk(number))) for number in former.values())
        self._kept_size = source.current.bytes - source.index_size - ended
        shown = (place for place in range(source.current.count) if place not in absent)
        self._head = chunks.head(self.name, self.count, [*map(source.item, islice(shown, chunks.HEAD_SIZE))])

    def kept(self) -> Iterator[str]:
        """The keys of its chunks that must be in place, as they are not made."""
        return (keys.chunk(self.list_name, name) for name in self.chunks if name not in self._made)

    def first_pages(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of the head."""
        yield keys.head(self.list_name), self._head

    def places(self) -> Iterator[str]:
        """The keys of what exists when the generation is in place: its chunks and its index."""
        return chunks.object_keys(self.list_name, self.name, self.chunks)

    def stage(self, folder: Workplace) -> StagedGeneration:
        """Stage the index, and the chunks that are new."""
        made = [(keys.chunk(self.list_name, name), body) for name, body in self._made.items()]
        staged = stage_objects(folder, [*made, (keys.index(self.list_name, self.name), self._index)])
        return replace(staged, size=staged.size + self._kept_size)


def shortened(source: ChunksInPlace, gone: Sequence[int]) -> ShortenedList | None:
    """The list without the items at these positions, which ascend; None if it is to be cut whole.

    Raises InDoubtError as `ChunksInPlace` does.
    """
    begins = borders.without(source.borders, gone, source.item)
    return None if begins is None else ShortenedList(source, gone, begins)
