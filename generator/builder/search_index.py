"""Makes the search index of a catalog. Pure."""

from collections.abc import Collection, Mapping

from generator.api import keys
from generator.markets.catalog import Catalog
from generator.search.generation import Generation, Order
from generator.search.words import Postings
from generator.tree import layouts


def make(catalog: Catalog, offered: Collection[str], layout: str, generations: Mapping[str, str]) -> Generation:
    """The index of a catalog; `offered` are the slugs of the categories that have lists.

    `generations` has the name of every list's generation.
    """
    ranked = dict(catalog.ranked())
    oldest_first = ranked["new"][::-1]
    numbers = {market.item.id: number for number, market in enumerate(oldest_first)}
    postings = Postings()
    for market in oldest_first:
        postings.add(market.words.split(), [slug for slug in market.categories if slug in offered])
    postings.mention(offered)
    orders = {
        sort: Order(
            generations[keys.list_name("all", sort)],
            [numbers[market.item.id] for market in markets],
            b"" if layouts.is_cut(layout) or not markets else markets[0].body,
        )
        for sort, markets in ranked.items()
    }
    words = postings.numbered(range(len(oldest_first)))
    return Generation(words, [market.item.status for market in oldest_first], orders)
