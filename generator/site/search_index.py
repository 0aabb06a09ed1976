"""Makes the search index of a catalog. Pure."""

from collections.abc import Collection, Mapping
from typing import Final

from generator.api.contract import SORTS
from generator.search import folding
from generator.search.generation import LISTS, NUMBERED_BY, Generation, Order, low_width
from generator.search.words import Postings
from generator.site.catalog import Catalog
from generator.tree.generation import Weight

#: More objects than an index of ten million markets has.
_MOST_OBJECTS: Final = 1_000
#: Upper bounds, in bytes: of a bucket's name and first letters in a root, and of what a market adds to a word.
_NAME_BYTES: Final = 64
_ENTRY_BYTES: Final = 24


def at_most(catalog: Catalog) -> Weight:
    """An upper bound on what the index of a catalog takes. Making the index of a large one takes seconds."""
    width = len(SORTS) * (1 + low_width(len(catalog.markets)))
    size = sum(
        len("".join(market.words).encode()) + len(market.words) * _ENTRY_BYTES + width
        + sum(len(slug) + _ENTRY_BYTES for slug in market.categories)
        for market in catalog.markets
    )  # fmt: skip
    return Weight(_MOST_OBJECTS, size + len(folding.table()) + 2 * _MOST_OBJECTS * _NAME_BYTES, 1, 0)


def make(catalog: Catalog, offered: Collection[str], layout: str, generations: Mapping[str, str]) -> Generation:
    """The index of a catalog; `offered` are the slugs of the categories that have lists.

    `generations` has the name of every list's generation.
    """
    ranked = dict(catalog.ranked())
    oldest_first = ranked[NUMBERED_BY][::-1]
    number_of = {market.id: number for number, market in enumerate(oldest_first)}
    postings = Postings()
    for market in oldest_first:
        postings.add(market.words, [slug for slug in market.categories if slug in offered])
    postings.mention(offered)
    orders = {
        sort: Order.of(
            layout,
            generations[LISTS[sort]],
            [number_of[market.id] for market in markets],
            markets[0].body if markets else b"",
        )
        for sort, markets in ranked.items()
    }
    return Generation(postings.in_order(), [market.status for market in oldest_first], orders)
