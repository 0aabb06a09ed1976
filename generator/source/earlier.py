"""What an earlier build made of rows, and which of it still holds, so that these rows need not be read. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from generator.markets.categories import Spellings
from generator.markets.market import Market, version_digest


class Versions(NamedTuple):
    """The digests of a market's `detail_version` and `market_version`; None for NULL, which says nothing."""

    detail: str | None
    market: str | None

    @classmethod
    def of(cls, detail: object, market: object) -> "Versions":
        """The versions that a row tells."""
        return cls(version_digest(detail), version_digest(market))


class EarlierMarket(NamedTuple):
    """A market as it was made of the row that had these versions."""

    versions: Versions
    market: Market


@dataclass(frozen=True)
class EarlierMarkets:
    """The markets that an earlier build left, by id, and the names of their categories by slug.

    Only those that a build kept: nothing of theirs was quarantined, nor a category shown in another spelling. `now` is
    the instant to read for, a wire timestamp, and not before that build's. `is_audited` chooses the markets (ids) to
    read all the same.
    """

    now: str = ""
    markets: Mapping[str, EarlierMarket] = field(default_factory=dict)
    categories: Mapping[str, str] = field(default_factory=dict)
    is_audited: Callable[[str], bool] = lambda _: False

    def holding(self, versions: Mapping[str, Versions], slugs: Mapping[str, str]) -> dict[str, Market]:
        """The markets that a reading would make again, by id; `slugs` are those that are usable now, by id."""
        found = ((market_id, self.markets.get(market_id), now) for market_id, now in versions.items())
        return {
            market_id: earlier.market
            for market_id, earlier, now in found
            if earlier is not None
            and None not in now
            and earlier.versions == now
            and earlier.market.slug == slugs.get(market_id)
            and earlier.market.holds_at(self.now)
        }

    def named(self, markets: Mapping[str, Market]) -> Iterator[tuple[str, str]]:
        """The id of each market with the name of each of its categories, as its rows have it."""
        return ((key, self.categories[slug]) for key, market in markets.items() for slug in market.categories)

    def respelled(self, markets: Mapping[str, Market], now: Spellings) -> list[str]:
        """The markets (ids) with a category that is shown otherwise now."""
        new = {slug for slug, name in self.categories.items() if name in now.shown or name in now.refused}
        return [key for key, market in markets.items() if not new.isdisjoint(market.categories)] if new else []


#: Everything is to be read.
NOTHING_EARLIER: Final = EarlierMarkets()


def lower(key: Any) -> str:
    """The id that we publish, of one as the database spells it; a malformed one, too."""
    return str(key).lower()
