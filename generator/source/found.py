"""The market rows of a range, as they were read. It opens no connection."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from generator.markets import detail_market
from generator.markets.detail_market import DetailMarket
from generator.markets.market import Market


@dataclass(frozen=True)
class Found:
    """The rows of a range by id as the database spells it (`keys`), in its order, and what was made of each.

    `markets` has None for a row that was quarantined. `rest` has each row's values of `columns`, which only details
    show.
    `altered` names the markets (ids) whose categories are published otherwise than their rows have them, or left out.
    `false_versions` names the markets (ids) whose count of fills changed although their version did not.
    """

    keys: Sequence[Any]
    markets: Sequence[Market | None]
    columns: Sequence[str]
    rest: Sequence[Sequence[Any]]
    altered: list[str]
    false_versions: list[str]

    def public(self) -> Iterator[tuple[Any, Market]]:
        """Each public market, with its id as the database spells it."""
        return ((key, market) for key, market in zip(self.keys, self.markets, strict=True) if market is not None)

    def market_object(self, place: int) -> DetailMarket:
        """What a detail shows of the row at a place. Raises ValueError if it was quarantined."""
        market = self.markets[place]
        if market is None:
            raise ValueError(f"row {place} was quarantined")
        return detail_market.of_item(market.item, market.fx, dict(zip(self.columns, self.rest[place], strict=True)))
