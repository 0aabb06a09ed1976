"""The words of the search index in place, without some markets: no text is read, and no market's words are kept."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from pydantic_core import from_json

from generator.api import keys
from generator.markets.market import Market
from generator.search import buckets
from generator.search.generation import FORMAT, WordObjects
from generator.search.words import OF_CATEGORY, Postings
from generator.site.catalog import Catalog
from generator.site.short_lists import Each
from generator.tree import chunks, generations
from generator.tree.generation import Read
from generator.tree.manifest import Current

_GONE: Final = -1


@dataclass(frozen=True)
class WordsInPlace:
    """The buckets of an index of `count` markets, and its table."""

    count: int
    buckets: Sequence[bytes]
    table: bytes

    @classmethod
    def found(cls, current: Current, read: Read, each: Each) -> "WordsInPlace | None":
        """Those of a generation; None if something of it is missing or damaged."""
        index = read(keys.index(keys.SEARCH, current.generation)) or b""
        if not generations.is_index(keys.SEARCH, current.generation, index):
            return None
        root = from_json(index)
        try:
            form, count, names = root["format"], int(root["count"]), [*root["buckets"], root["table"]]
            objects = [keys.chunk(keys.SEARCH, name) for name in names]
        except (LookupError, TypeError, ValueError):  # another program's, of the same version
            return None
        bodies = [body or b"" for body in each(read, objects)]
        is_whole = form == FORMAT and [*map(chunks.name, bodies)] == names
        return cls(count, bodies[:-1], bodies[-1]) if is_whole else None

    def of_markets(
        self, before: Catalog, oldest_first: Sequence[Market], offered: Collection[str]
    ) -> tuple[WordObjects, None]:
        """Those of the markets that are left of the ones `before`, which the index has. Nobody counts the words."""
        numbers = {market.id: number for number, market in enumerate(oldest_first)}
        moved = [numbers.get(market.id, _GONE) for market in before.oldest_first()]
        categories = Postings()
        for market in oldest_first:
            categories.add((), [slug for slug in market.categories if slug in offered])
        categories.mention(offered)
        entries = chain(categories.in_order(), self._left(moved))
        return WordObjects(0, buckets.make(entries, len(oldest_first)), self.table), None

    def _left(self, moved: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
        for word, markets in chain.from_iterable(map(buckets.read, self.buckets)):
            left = [number for number in map(moved.__getitem__, markets) if number != _GONE]
            if left and not word.startswith(OF_CATEGORY):
                yield word, left
