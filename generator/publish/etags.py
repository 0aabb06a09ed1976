"""The store's ETags of mutable objects. Those of a large record are read shard by shard, when they are needed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from generator.tree import shards
from generator.tree.shards import Rows

#: The ETags of one shard's objects, by key.
Part: TypeAlias = Mapping[str, str]


class Etags(Mapping[str, str]):
    """The store's ETags by key. Those of a shard are read when one of them is asked for."""

    def __init__(self, parts: Sequence[Part | None], read: Callable[[Collection[int]], Mapping[int, Part]]) -> None:
        self._parts = [*parts]
        self._read = read

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self._parts)

    def part(self, place: int) -> Part | None:
        """Those of a shard; None if they were not read, so none of them has changed."""
        return self._parts[place]

    def load(self, places: Collection[int]) -> None:
        """Read those of several shards at once."""
        wanted = [place for place in places if self._parts[place] is None]
        for place, part in (self._read(wanted) if wanted else {}).items():
            self._parts[place] = part

    def updated(self, put: Mapping[str, str], gone: Collection[str]) -> "Etags":
        """The ETags after objects were put or deleted."""
        changes: dict[int, dict[str, str | None]] = {}
        for key, etag in (*put.items(), *((key, None) for key in gone)):
            changes.setdefault(self._place(key), {})[key] = etag
        self.load(changes)
        after = Etags(self._parts, self._read)
        for place, changed in changes.items():
            merged = {**(self._parts[place] or {}), **changed}
            after._parts[place] = {key: etag for key, etag in merged.items() if etag is not None}
        return after

    def _place(self, key: str) -> int:
        return shards.place(shards.name_of(key), len(self._parts) - 1)

    def __getitem__(self, key: str) -> str:
        place = self._place(key)
        self.load([place])
        return (self._parts[place] or {})[key]

    def __iter__(self) -> Iterator[str]:
        self.load(range(len(self._parts)))
        return (key for part in self._parts for key in part or {})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def updated(etags: Mapping[str, str], put: Mapping[str, str], gone: Collection[str]) -> Mapping[str, str]:
    """The ETags after objects were put or deleted."""
    if isinstance(etags, Etags):
        return etags.updated(put, gone)
    return {key: etag for key, etag in {**etags, **put}.items() if key in put or key not in gone}


def part_of(etags: Mapping[str, str], place: int, rows: Sequence[Rows]) -> Part | None:
    """The ETags of the shard at that place, whose rows are given; None if they were not read and so did not change."""
    if isinstance(etags, Etags) and etags.shards == len(rows):
        return etags.part(place)
    found = ((object_key, etags.get(object_key)) for object_key in map(shards.key_of, rows[place]))
    return {object_key: etag for object_key, etag in found if etag is not None}
