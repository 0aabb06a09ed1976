"""What a build to come writes because of certain markets, and what that costs."""

from collections import Counter
from collections.abc import Collection
from typing import Final

from generator.api import keys
from generator.builder.dry_run import DryRun
from generator.config.settings import Config
from generator.cost import estimate, sizes
from generator.cost.estimate import ChangeCost
from generator.cost.prices import PriceList
from generator.cost.sizes import Change
from generator.markets.market import Market
from generator.tree import layouts, membership
from generator.tree.membership import Membership
from generator.wording import counted

#: About how many chunks of a list change with a market that moves in it.
_CHUNKS: Final = 2
#: What changes with most markets, besides their details and lists.
_OTHERS: Final = (keys.SNAPSHOT, keys.PRICES, keys.BUILD)


def cost_of(markets: Collection[Market], measured: DryRun, config: Config, known: PriceList) -> ChangeCost:
    """What a build costs that changes these markets, by trades or as time passes, and nothing else.

    Where lists are pages, no such build has more objects; chunks are as many as on average.
    """
    rendered = measured.prepared.made.rendered
    held = Counter(name for market in markets for name in membership.lists_of(rendered.memberships[market.id]))
    lists = frozenset(held) - {*keys.INDEXED}
    details = sum(len(keys.details(market.id, market.slug)) for market in markets)
    change = Change(
        new_generations=lists,
        new_first_pages=lists,
        objects=details + sum(key in rendered.staged.objects for key in _OTHERS),
        minutes=0,
        chunks=_chunks(held, lists, measured) if layouts.is_cut(config.layout) else {},
        index=measured.index.of_places() if measured.index and lists else sizes.NO_INDEX,
        downloads=measured.site.next_downloads(has_step=config.has_changes) if lists else sizes.NO_DOWNLOADS,
    )
    return estimate.of_change(config.layout, measured.site, change, known)


def _chunks(held: Counter[str], lists: Collection[str], measured: DryRun) -> dict[str, int]:
    """The number of new chunks of each list, by how many markets change in it."""
    families = measured.prepared.made.rendered.families
    return {name: min(_CHUNKS * held[name], len(families[name].current.chunks)) for name in lists}


def _dearest(measured: DryRun, layout: str) -> Market | None:
    """Of the markets that are traded, open ones and those with recent fills, one whose lists are the most to write."""
    rendered, weights = measured.prepared.made.rendered, measured.site.weights(layout)

    def objects(memberships: tuple[Membership, ...]) -> int:
        lists = membership.lists_of(memberships) - {*keys.INDEXED}
        return len(lists) if layouts.is_cut(layout) else sum(weights[name].objects for name in lists)

    traded = [market for market in measured.catalog.markets if market.status == "open" or market.fills24h]
    found = {rendered.memberships[market.id]: market for market in traded}
    return found[max(found, key=objects)] if found else None


def of_one(measured: DryRun, config: Config, known: PriceList) -> tuple[str, ChangeCost] | None:
    """What one changed market costs, in a sentence and in figures; None if no market is traded."""
    if (market := _dearest(measured, config.layout)) is None:
        return None
    cost, is_cut = cost_of([market], measured, config, known), layouts.is_cut(config.layout)
    new = "two chunks, an index and a head of each of its lists are" if is_cut else "every page of its lists is"
    usd = ", ".join(f"{price:,.4f} USD at {place}" for place, price in cost.usd.items())
    sentence = f"one changed market costs {in_words(cost, config.layout)}, whose PUT requests cost {usd}: {new} new"
    return f"layout {config.layout}: {sentence}", cost


def in_words(cost: ChangeCost, layout: str) -> str:
    """Objects and bytes, such as `at most 2,345 objects of some 23,456,789 bytes`."""
    most = "up to about" if layouts.is_cut(layout) else "at most"
    return f"{most} {counted(cost.objects, 'object', ',')} of some {counted(cost.bytes, 'byte', ',')}"
