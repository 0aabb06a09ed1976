"""Makes the search index of a catalog. Pure."""

from collections.abc import Collection, Mapping

from generator.api import keys
from generator.markets.catalog import Catalog
from generator.search.generation import Generation, Order
from generator.search.words import Postings
from generator.tree import layouts
from generator.tree.manifest import Current


def make(catalog: Catalog, offered: Collection[str], layout: str, lists: Mapping[str, Current]) -> Generation:
    """The index that leads into these lists; `offered` are the slugs of the categories that have some."""
    ranked = dict(catalog.ranked())
    oldest_first = ranked["new"][::-1]
    numbers = {market.item.id: number for number, market in enumerate(oldest_first)}
    postings = Postings()
    for market in oldest_first:
        postings.add(market.words.split(), [slug for slug in market.categories if slug in offered])
    orders = {
        sort: Order(
            lists[keys.list_name("all", sort)].generation,
            [numbers[market.item.id] for market in markets],
            b"" if layouts.is_cut(layout) or not markets else markets[0].body,
        )
        for sort, markets in ranked.items()
    }
    words = postings.numbered(range(len(oldest_first)))
    return Generation(words, [market.item.status for market in oldest_first], orders)
