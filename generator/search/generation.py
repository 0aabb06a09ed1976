"""One content of the search index: its root, and the objects that this leads to. Pure.

    root      {"generation": …, "count": n, …}      as the head: the pointer to the current generation
    root      {"format": …, "count": n, …}          as the index of a generation, which never changes
    buckets   words and their markets               see `buckets`
    vectors   places and states of the markets      the high digit of each place, then what remains, in fixed width
    table     how characters fold                   see `folding`

Markets have numbers from the oldest to the newest, so that a new market changes only the words it has. The index finds
places in `all/<sort>`; the lists of one status are subsequences of those, and so is every answer. Its root names the
generations of these lists: a walk with `q` stays in one generation of the index, and so in one of the list.

Keys are those of a list named `all/search`, whose chunks are everything but the root. So the rules for lists hold for
it: a withdrawal ends all earlier generations, which are otherwise kept while walks may be in them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

from generator.api import keys
from generator.api.contract import MARKET_STATUSES, SORTS, MarketStatus, Sort
from generator.search import buckets, folding, numbers
from generator.search.buckets import SIZES, Sizes
from generator.search.words import OF_CATEGORY
from generator.tree import chunks, generations, layouts
from generator.tree.generation import StagedGeneration, Weight, Workplace, stage_objects

#: Part of the root, and so of every generation's name: increase it when the bytes of an object change.
FORMAT: Final = 2
#: How many states a vector can tell apart.
STATES: Final = len(MARKET_STATUSES)
#: The most objects that a search reads, and the most buckets of words among them, where every vector beyond the first
#: counts as one, and a category has another: so some are left for items. A Worker may make 50 subrequests, and a search
#: may begin anew once.
MOST_OBJECTS: Final = 24
MOST_BUCKETS: Final = 18
#: In the layout `pages`, an item comes from a page of the greatest of these limits that does not exceed its place.
BLOCK_SIZES: Final = (1, 2, 5, 10, 20, 50, 100)
#: The list in whose generation the index finds places, by its sort. Markets are numbered from the end of the newest.
LISTS: Final[Mapping[Sort, str]] = {sort: keys.list_name("all", sort) for sort in SORTS}
NUMBERED_BY: Final[Sort] = "new"


@dataclass(frozen=True)
class Order:
    """One sort: the generation of `all/<sort>`, the numbers of its markets in order, and its first item.

    The item is needed where lists are pages: no page of a generation begins at position 0.
    """

    generation: str
    markets: Sequence[int]
    first_item: bytes = b""

    @classmethod
    def of(cls, layout: str, generation: str, markets: Sequence[int], first_item: bytes) -> "Order":
        """The order of a list with this first item, which is left out in a layout that does not need it."""
        return cls(generation, markets, b"" if layouts.is_cut(layout) else first_item)


def _block(count: int) -> int:
    """How many places share their high digit: a router finds the first places by it, among many markets."""
    return max(1, -(-count // numbers.BASE))


def low_width(count: int) -> int:
    """The digits that a vector of `count` markets has for each, besides the high digit."""
    return numbers.width(_block(count) * STATES)


@dataclass(frozen=True)
class WordObjects:
    """What texts and categories alone change of an index: buckets, table, and the count of words but categories."""

    count: int
    buckets: Sequence[bytes]
    table: bytes

    @classmethod
    def of(cls, words: Iterable[tuple[str, Sequence[int]]], markets: int, sizes: Sizes = SIZES) -> Self:
        """Made of words in order, with the ascending numbers of their markets, out of so many."""
        words = [*words]
        count = sum(not word.startswith(OF_CATEGORY) for word, _ in words)
        return cls(count, buckets.make(words, markets, sizes), folding.table())


class SearchIndex:
    """An index of `count` markets; equal content has an equal `name`.

    `states` are by number; a vector has the numbers of `span` markets.
    """

    def __init__(
        self,
        words: WordObjects,
        states: Sequence[MarketStatus],
        orders: Mapping[Sort, Order],
        span: int = SIZES.span,
    ) -> None:
        self.list_name = keys.SEARCH
        self.count = len(states)
        #: How many words it has, categories aside.
        self.words = words.count
        self._bodies = dict[str, bytes]()
        self._block, self._width = _block(self.count), low_width(self.count)
        self._content: dict[str, Any] = {
            "format": FORMAT,
            "count": self.count,
            "block": self._block,
            "width": self._width,
            "span": span,
            "lists": {sort: order.generation for sort, order in orders.items()},
            "firsts": {sort: order.first_item.decode() for sort, order in orders.items() if order.first_item},
            "vectors": {sort: self._vectors(states, order.markets, span) for sort, order in orders.items()},
            "table": self._named(words.table),
            "starts": [buckets.start(body) for body in words.buckets],
            "buckets": [self._named(body) for body in words.buckets],
        }
        #: The names of its objects but the root.
        self.chunks = tuple(self._bodies)
        self.name = generations.name_of_index(keys.SEARCH_LETTER, self.root)

    def _named(self, body: bytes) -> str:
        name = chunks.name(body)
        self._bodies[name] = body
        return name

    def _vectors(self, states: Sequence[MarketStatus], markets: Sequence[int], span: int) -> list[str]:
        places = [0] * len(markets)
        for place, number in enumerate(markets):
            places[number] = place
        codes = {state: code for code, state in enumerate(MARKET_STATUSES)}
        high = numbers.encode_fixed([place // self._block for place in places], 1)
        low = [place % self._block * STATES + codes[state] for place, state in zip(places, states, strict=True)]
        parts = [slice(start, start + span) for start in range(0, self.count, span)]
        texts = [high[part] + numbers.encode_fixed(low[part], self._width) for part in parts]
        return [self._named(f'["{text}"]'.encode()) for text in texts]

    @cached_property
    def root(self) -> bytes:
        """The body of the root, as the index of the generation."""
        return json.dumps(self._content, ensure_ascii=False, separators=(",", ":")).encode()

    def head(self) -> bytes:
        """The body of the root, as the pointer to the current generation."""
        return f'{{"generation":"{self.name}",'.encode() + self.root[1:]

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of every immutable object, the root last."""
        yield from ((keys.chunk(self.list_name, name), body) for name, body in self._bodies.items())
        yield keys.index(self.list_name, self.name), self.root

    def first_pages(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of the head."""
        yield keys.head(self.list_name), self.head()

    def weight(self) -> Weight:
        """All objects, and their bytes."""
        immutable = [len(body) for _, body in self.objects()]
        mutable = [len(body) for _, body in self.first_pages()]
        return Weight(len(immutable), sum(immutable), len(mutable), sum(mutable))

    def of_places(self) -> Weight:
        """What of it is new where markets only change places: root, head, and the places of each sort."""
        places = {name for names in self._content["vectors"].values() for name in names}
        size = len(self.root) + sum(len(self._bodies[name]) for name in places)
        return Weight(1 + len(places), size, 1, len(self.head()))

    def places(self) -> Iterator[str]:
        """The keys of what exists when the generation is in place."""
        return (key for key, _ in self.objects())

    def stage(self, folder: Workplace) -> StagedGeneration:
        """Stage the objects that are not in place."""
        return stage_objects(folder, self.objects())
