"""Builds a market's detail from its rows: order book, recent fills, probability history. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from generator.api import contract, resources
from generator.api.contract import OrderBook, OrderBookLevel
from generator.config.settings import Config
from generator.markets import batch_validation, faults, fills, row_validation
from generator.markets.batch_validation import SlowPathError
from generator.markets.fills import Fill
from generator.markets.history import Point, history
from generator.markets.quarantine import Fault, Quarantine, printable
from generator.markets.row_validation import MAX_FLOAT

Rows: TypeAlias = Iterable[Sequence[Any]]
Sums: TypeAlias = dict[str, dict[float, float]]
#: What encloses the market object in the body of a detail.
_MARKET: Final = b'{"market":'
_REST: Final = b',"orderBook":'


@dataclass(frozen=True, slots=True)
class MarketRows:
    """One public market and the streams of its rows; consume them before advancing to the next market.

    Each row starts with the market's id, followed in `orders` by side, price and amount (sorted by all three), in
    `fills` by id, amount, shares, price and time, in `points` by time and probability.
    """

    market: contract.PublicMarketDetailMarket
    orders: Rows
    fills: Rows
    points: Rows


@dataclass(frozen=True, slots=True)
class Detail:
    """The public detail of one market; points are oldest first."""

    market: contract.PublicMarketDetailMarket
    order_book: OrderBook
    recent_fills: list[Fill]
    points: list[Point]

    def body(self) -> bytes:
        """Encode the detail response."""
        return contract.encode(
            {
                "market": self.market,
                "orderBook": self.order_book,
                "recentFills": [fill.wire() for fill in self.recent_fills],
                "probHistory": [{"timestamp": timestamp, "prob": prob} for timestamp, prob in self.points],
            }
        )


def with_market(body: bytes, market: contract.PublicMarketDetailMarket) -> bytes:
    """The body of a detail with another market object, and the same order book, fills and history."""
    return b"".join((_MARKET, contract.encode(market), _REST, rest(body)))


def rest(body: bytes) -> bytes:
    """What follows the market object in the body of a detail."""
    # No text can hold this: a quotation mark in a text is escaped.
    return body.partition(_REST)[2]


def from_rows(rows: MarketRows, config: Config, quarantine: Quarantine) -> Detail:
    """Build the detail of one market; consumes its rows."""
    market_id = rows.market.id
    return Detail(
        market=rows.market,
        points=history(market_id, rows.points, config.detail.history_points, quarantine),
        order_book=order_book(market_id, rows.orders, quarantine),
        recent_fills=fills.recent(rows.fills, config.detail.recent_fills, quarantine),
    )


def order_book(market_id: str, orders: Rows, quarantine: Quarantine) -> OrderBook:
    """Sum the orders per price, rounded to a millionth; bids highest first, asks lowest first."""
    sums: Sums = {"bid": {}, "ask": {}}
    for batch in batch_validation.batches(orders):
        _, sides, prices, amounts = zip(*batch, strict=True)
        try:
            _sum(
                sides,
                batch_validation.level_prices(prices),
                batch_validation.numbers(amounts, 0, MAX_FLOAT),
                sums,
            )
        except SlowPathError:
            _sum_one_by_one(market_id, batch, sums, quarantine)
    bids, asks = (_levels(market_id, sums[side], quarantine) for side in ("bid", "ask"))
    return resources.of_valid(OrderBook, {"bids": bids[::-1], "asks": asks})


def _sum(sides: Sequence[Any], prices: Sequence[float], amounts: Sequence[float], sums: Sums) -> None:
    if not sums.keys() >= set(sides):
        raise SlowPathError
    for side, price, amount in zip(sides, prices, amounts, strict=True):
        sums[side][price] = sums[side].get(price, 0.0) + amount


def _sum_one_by_one(market_id: str, orders: Rows, sums: Sums, quarantine: Quarantine) -> None:
    for _, side, price, amount in orders:
        try:
            level = row_validation.LevelRow.model_validate({"price": price, "amount": amount})
        except ValidationError as error:
            quarantine.reject("orders", market_id, *faults.of(error))
            continue
        levels = sums.get(side)
        if levels is None:
            quarantine.reject("orders", market_id, Fault("side", "neither bid nor ask", printable(side)))
        else:
            levels[level.price] = levels.get(level.price, 0.0) + level.amount


def _levels(market_id: str, sums: dict[float, float], quarantine: Quarantine) -> list[OrderBookLevel]:
    levels = []
    for price, amount in sorted(sums.items()):
        if isfinite(amount):
            levels.append(resources.of_valid(OrderBookLevel, {"price": price, "amount": amount}))
        else:
            quarantine.reject(
                "orders", market_id, Fault("amount", "the sum at its price is too large a number", str(price))
            )
    return levels
