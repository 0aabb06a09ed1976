"""The approved markets in memory, and what is derived from them: lists in their total orders, snapshot groups. Pure.

Everything here is public. Hidden rows are refused by the query, so they cannot be left in by a bug of this module.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from generator.api import contract, slugs
from generator.api.contract import PublicMarketListItem, PublicMarketSignal, PublicMarketSnapshot, Sort, StatusFilter


@dataclass(frozen=True, slots=True)
class Market:
    """A public market as lists need it. `body` is `item`, encoded once for every list and page that shows it.

    `categories` are the slugs of the item's categories; none in the core variant.
    """

    item: PublicMarketListItem
    body: bytes
    fx: contract.FxFamilyMember | None
    categories: tuple[str, ...]

    @classmethod
    def of(cls, market: contract.PublicMarketDetailMarket) -> "Market":
        """Keep what lists show of a market; its description may be a megabyte and stays in the database."""
        item = PublicMarketListItem.model_validate(market)
        categories = tuple(slugs.of_category(name) for name in item.categories or ())
        return cls(item, contract.encode(item), market.fx_family_member, categories)


#: What each sort compares, descending; ties end with `id` ascending.
_RANK: Final[dict[Sort, Callable[[PublicMarketListItem], Any]]] = {
    "popular": lambda item: (item.trader_count, item.volume),
    "activity": lambda item: item.last_activity_at,
    "volume": lambda item: item.volume,
    "new": lambda item: item.created_at,
    "ended": lambda item: item.resolved_at or item.close_time,
}


_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Catalog:
    """All public markets at one instant. `as_of` is an RFC 3339 UTC time, `hidden` the number of rows not read.

    `refused_slugs` tells, by the market's id, why a slug cannot be used to ask for it.
    """

    def __init__(
        self, markets: Iterable[Market], *, as_of: str, hidden: int, refused_slugs: Mapping[str, str] = _NONE
    ) -> None:
        # Sorted by id once: every later sort is stable, which settles ties.
        self.markets = sorted(markets, key=lambda market: market.item.id)
        self.as_of = as_of
        self.hidden = hidden
        self.refused_slugs = refused_slugs

    def ids(self) -> set[str]:
        """The ids of all markets."""
        return {market.item.id for market in self.markets}

    def without(self, ids: Collection[str]) -> "Catalog":
        """The same instant without some markets."""
        kept = (market for market in self.markets if market.item.id not in ids)
        return Catalog(kept, as_of=self.as_of, hidden=self.hidden, refused_slugs=self.refused_slugs)

    def listed(self) -> list[Market]:
        """The markets that lists and snapshot may show, by id: members of public FX families are left out."""
        return [market for market in self.markets if market.fx is None]

    def categories(self) -> dict[str, str]:
        """The name of every category that a public market has, by its slug, sorted."""
        return dict(
            sorted(
                (slug, name)
                for market in self.markets
                for slug, name in zip(market.categories, market.item.categories or (), strict=True)
            )
        )

    def lists(self, offered: Iterable[str] = ()) -> Iterator[tuple[str | None, StatusFilter, Sort, list[Market]]]:
        """Every status and sort with its markets in order: of all categories (None), then of each that is `offered`."""
        listed = self.listed()
        for sort in contract.SORTS:
            rank = _RANK[sort]
            ranked = sorted(listed, key=lambda market: rank(market.item), reverse=True)
            for category, chosen in [(None, ranked), *_by_category(ranked, offered).items()]:
                for status in contract.STATUS_FILTERS:
                    states = contract.STATES_OF_FILTER[status]
                    yield category, status, sort, [market for market in chosen if market.item.status in states]

    def snapshot(self, size: int) -> PublicMarketSnapshot:
        """The landing page's groups, `size` markets each: newest first; closing soonest first."""
        opened = [market.item for market in self.listed() if market.item.status == "open"]
        fresh = sorted(opened, key=lambda item: item.created_at, reverse=True)
        closing = sorted((item for item in opened if item.close_time > self.as_of), key=lambda item: item.close_time)
        return PublicMarketSnapshot(
            fresh_markets=[PublicMarketSignal.model_validate(item) for item in fresh[:size]],
            closing_soon_markets=[PublicMarketSignal.model_validate(item) for item in closing[:size]],
        )


def _by_category(ranked: Iterable[Market], offered: Iterable[str]) -> dict[str, list[Market]]:
    chosen: dict[str, list[Market]] = {category: [] for category in offered}
    for market in ranked:
        for category in market.categories:
            if category in chosen:
                chosen[category].append(market)
    return chosen
