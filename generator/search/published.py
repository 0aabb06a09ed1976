"""Reads a published index, to make one without some of its markets. This needs no text and no database. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from pydantic import BaseModel, ConfigDict

from generator.api import keys
from generator.search import buckets
from generator.search.words import OF_CATEGORY


class Root(BaseModel):
    """What a withdrawal needs of a root: format, number of markets, the generations of `all/<sort>`, and buckets.

    Market n is the item at `count - 1 - n` of that generation of `all/new`.
    """

    model_config = ConfigDict(frozen=True)

    format: int
    count: int
    lists: Mapping[str, str]
    buckets: Sequence[str]

    def bucket_keys(self) -> list[str]:
        """The keys of the buckets, in order."""
        return [keys.chunk(keys.SEARCH, name) for name in self.buckets]


class _Objects(BaseModel):
    """Everything that a root names."""

    vectors: Mapping[str, Sequence[str]]
    table: str
    buckets: Sequence[str]


def object_names(root: bytes) -> tuple[str, ...]:
    """The names of the objects that a root leads to, in order; raise ValueError when it is none."""
    found = _Objects.model_validate_json(root)
    return tuple(dict.fromkeys((*chain.from_iterable(found.vectors.values()), found.table, *found.buckets)))


def words_without(root: Root, gone: Collection[int], read: Callable[[str], bytes]) -> Iterator[tuple[str, list[int]]]:
    """The words of the index in order, each with the new numbers of its markets.

    Leaves out the markets `gone`, given by their numbers in the index, and the words that only they have.
    """
    numbers = renumbered(root.count, gone)
    for key in root.bucket_keys():
        for word, markets in buckets.read(read(key)):
            kept = [number for number in map(numbers.__getitem__, markets) if number >= 0]
            # A category keeps its lists, although they may be empty.
            if kept or word.startswith(OF_CATEGORY):
                yield word, kept


def renumbered(count: int, gone: Collection[int]) -> list[int]:
    """The new number of each market, by its old one; -1 for those gone."""
    return list(_renumbered(range(count), frozenset(gone)))


def _renumbered(numbers: Iterable[int], gone: Collection[int]) -> Iterator[int]:
    kept = 0
    for number in numbers:
        yield -1 if number in gone else kept
        kept += number not in gone
