"""Makes the search index of a catalog. Pure."""

from collections.abc import Collection, Mapping

from generator.search.generation import LISTS, NUMBERED_BY, Generation, Order
from generator.search.words import Postings
from generator.site.catalog import Catalog


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
