"""The examples of the OpenAPI document, built from the contract's models."""

from collections.abc import Mapping
from typing import Any, Final

from generator.api import contract
from generator.api.contract import (
    FxFamilyMember,
    OrderBook,
    OrderBookLevel,
    ProbabilityPoint,
    PublicMarketDetail,
    PublicMarketDetailMarket,
    PublicMarketList,
    PublicMarketListItem,
    PublicMarketSignal,
    PublicMarketSnapshot,
    PublicRecentFill,
    Variant,
)
from generator.models import replaced

#: Continues the first page below; has the form of `cursors.mint`.
CURSOR: Final = "6b0c28066ap7c1e90b4d25fa8361e02"
SLUG: Final = "harbour-bridge-before-july"
#: One name that is its own slug, and one that is not.
CATEGORIES: Final = ("transport", "u.s. cities")
MARKET_ID: Final = "3f0c8a52-6d1b-4c7e-9a34-5b8e2f7d1c60"

_POPULAR: Final = PublicMarketListItem(
    id=MARKET_ID,
    question="Will the harbour bridge reopen before July?",
    status="open",
    prob=0.62,
    volume=48210.5,
    close_time="2026-06-30T22:00:00.000Z",
    resolution=None,
    created_at="2025-12-04T09:15:00.000Z",
    resolved_at=None,
    last_activity_at="2026-01-31T11:58:12.340Z",
    trader_count=412,
    fills24h=37,
    accepting_bets=True,
)
_FRESH: Final = PublicMarketListItem(
    id="b81d4f07-92ae-4e15-8c3d-0f6a7e5b9d21",
    question="Will it snow in Lisbon in February 2026?",
    status="open",
    prob=0.04,
    volume=910.25,
    close_time="2026-02-28T23:59:59.000Z",
    resolution=None,
    created_at="2026-01-30T16:40:00.000Z",
    resolved_at=None,
    last_activity_at="2026-01-31T10:02:45.000Z",
    trader_count=58,
    fills24h=12,
    accepting_bets=True,
)
_ENDED: Final = PublicMarketListItem(
    id="0d5e9c1a-47b3-4f68-b2d9-c81f3a6e7045",
    question="Will the city marathon be won in under 2:10?",
    status="resolved",
    prob=1.0,
    volume=15300.0,
    close_time="2025-10-12T12:00:00.000Z",
    resolution="YES",
    created_at="2025-08-01T07:30:00.000Z",
    resolved_at="2025-10-12T13:05:30.000Z",
    last_activity_at="2025-10-12T11:59:58.120Z",
    trader_count=203,
    fills24h=0,
    accepting_bets=False,
)
_FX: Final = PublicMarketListItem(
    id="e2769b30-1c84-4da5-a7f1-6b0d93c5e81f",
    question="Will EUR/USD fix at 1.10 or higher this week?",
    status="open",
    prob=0.48,
    volume=2750.0,
    close_time="2026-02-06T16:00:00.000Z",
    resolution=None,
    created_at="2026-01-26T08:00:00.000Z",
    resolved_at=None,
    last_activity_at="2026-01-31T09:30:00.000Z",
    trader_count=64,
    fills24h=5,
    accepting_bets=False,
)


#: The additional fields in the extended variant.
_EXTRAS: Final[dict[str, dict[str, Any]]] = {
    _POPULAR.id: {"slug": SLUG, "category": "transport", "categories": ["transport", "u.s. cities"]},
    _FRESH.id: {"slug": "will-it-snow-in-lisbon", "category": "weather", "categories": ["weather"]},
    _ENDED.id: {"categories": []},
    _FX.id: {"slug": "eur-usd-1-10", "category": "finance", "categories": ["finance"]},
}


def lists(variant: Variant) -> dict[str, Any]:
    """Pages of the list by name."""
    return {
        "firstPage": _example("The first page of open markets", _page([_POPULAR, _FRESH], CURSOR, variant)),
        "lastPage": _example("The last page of the archive", _page([_ENDED], None, variant)),
        "empty": _example("A list without markets", _page([], None, variant)),
    }


def snapshots() -> dict[str, Any]:
    """Snapshots by name."""
    fresh, popular = PublicMarketSignal.model_validate(_FRESH), PublicMarketSignal.model_validate(_POPULAR)
    groups = PublicMarketSnapshot(fresh_markets=[fresh, popular], closing_soon_markets=[fresh, popular])
    return {"groups": _example("Two open markets, in both groups", groups)}


def details(variant: Variant) -> dict[str, Any]:
    """Detail responses by name."""
    family = FxFamilyMember(
        title="EUR/USD weekly",
        instrument="EUR/USD",
        source="ECB reference rate",
        week_start="2026-02-02",
        week_end="2026-02-06",
        threshold_value=1.1,
        direction="gte",
    )
    rules = "Resolves YES if all lanes are open to traffic by 30 June 2026, 22:00 UTC."
    member = _in_variant(_FX, variant)
    paused = _market(member, description=None, fx_family_member=family, trading_pause_reason="Awaiting the fixing.")
    popular = _market(_in_variant(_POPULAR, variant), description=rules)
    if variant == "extended":
        popular = replaced(popular, creation_source="web", sponsor="Harbour Gazette")
    return {
        "market": _example("An open market", _detail(popular)),
        "fxFamilyMember": _example("A paused member of an FX family", _bare(paused)),
    }


#: Values of `q`.
SEARCHES: Final = {
    "word": {"summary": "What begins a word", "value": "elect"},
    "words": {"summary": "All of several words, in any order", "value": "election 2026"},
    "accents": {"summary": "Case and accents are ignored, so this finds “election”", "value": "ÉLECTION"},
    "unspaced": {"summary": "Part of a text without spaces", "value": "選挙"},
}


def rejections(variant: Variant, faults: Mapping[str, tuple[str, ...]], *, can_search: bool = False) -> dict[str, Any]:
    """400 bodies by name, for the parameters given for each."""
    bodies = {
        name: contract.invalid(*parameters, variant=variant, can_search=can_search)
        for name, parameters in faults.items()
    }
    return {name: _example(f"Refuses {' and '.join(faults[name])}", body) for name, body in bodies.items()}


def fixed_error(status: int) -> dict[str, Any]:
    """The fixed body of an error status."""
    return {"error": _example("Always the same", contract.FIXED_ERRORS[status])}


def _example(summary: str, model: Any) -> dict[str, Any]:
    return {"summary": summary, "value": model.model_dump(mode="json", by_alias=True)}


def _page(items: list[PublicMarketListItem], next_cursor: str | None, variant: Variant) -> PublicMarketList:
    return PublicMarketList(items=[_in_variant(item, variant) for item in items], next_cursor=next_cursor)


def _in_variant(item: PublicMarketListItem, variant: Variant) -> PublicMarketListItem:
    """The item in this variant."""
    return item if variant == "core" else replaced(item, **_EXTRAS[item.id])


def _market(
    item: PublicMarketListItem,
    *,
    description: str | None,
    fx_family_member: FxFamilyMember | None = None,
    trading_pause_reason: str | None = None,
) -> PublicMarketDetailMarket:
    return PublicMarketDetailMarket(
        **item.model_dump(),
        description=description,
        pool_yes=820.0,
        pool_no=1337.5,
        trading_pause_reason=trading_pause_reason,
        fx_family_member=fx_family_member,
    )


def _bare(market: PublicMarketDetailMarket) -> PublicMarketDetail:
    return PublicMarketDetail(market=market, order_book=OrderBook(bids=[], asks=[]), recent_fills=[], prob_history=[])


def _detail(market: PublicMarketDetailMarket) -> PublicMarketDetail:
    return PublicMarketDetail(
        market=market,
        order_book=OrderBook(
            bids=[OrderBookLevel(price=0.61, amount=150.0), OrderBookLevel(price=0.58, amount=40.0)],
            asks=[OrderBookLevel(price=0.64, amount=95.5)],
        ),
        recent_fills=[
            PublicRecentFill(
                id="7a2f6c94-e05b-4d38-91c7-d4b8063f5e1a",
                amount=25.0,
                shares=40.32,
                price=0.62,
                timestamp="2026-01-31T11:58:12.340Z",
            )
        ],
        prob_history=[
            ProbabilityPoint(timestamp="2025-12-04T09:15:00.000Z", prob=0.5),
            ProbabilityPoint(timestamp="2026-01-31T11:58:12.340Z", prob=0.62),
        ],
    )
