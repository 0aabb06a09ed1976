"""Builds a market's detail from its rows: order book, recent fills, probability history. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from pydantic import ValidationError

from generator.api import contract, resources
from generator.api.resources import Table
from generator.config.settings import Config
from generator.findings import Finding
from generator.markets import batch_validation, faults, fills, row_validation
from generator.markets.batch_validation import CollectRows, RelationRows, SlowPathError, Valid, ignored
from generator.markets.fills import Fill
from generator.markets.history import Point, history
from generator.markets.quarantine import Quarantine, printable
from generator.markets.row_validation import MAX_FLOAT

DetailMarket: TypeAlias = contract.PublicMarketDetailMarket

#: The columns of `markets` that it needs, besides those of the extended variant.
COLUMNS: Final = ("id", "description", "pool_yes", "pool_no", "trading_pause_reason")


def of_item(
    item: contract.PublicMarketListItem, fx: contract.FxFamilyMember | None, row: Mapping[str, Any]
) -> DetailMarket:
    """Complete a validated market with COLUMNS of its row, which were validated with it; validate them again if odd."""
    try:
        values = {
            **vars(item),
            "description": _text(row, "description"),
            "pool_yes": _amount(row["pool_yes"]),
            "pool_no": _amount(row["pool_no"]),
            "trading_pause_reason": row_validation.pause_reason(_text(row, "trading_pause_reason")),
            "fx_family_member": fx,
            "creation_source": _text(row, "creation_source"),
            "sponsor": _text(row, "sponsor"),
        }
    except ValueError:
        return row_validation.MarketRow.model_validate({**dict(item), **row, "fx_family_member": fx})
    return resources.of_valid(DetailMarket, values)


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is not None and not row_validation.is_publishable(name, row_validation.text(value)):
        raise ValueError("not publishable")
    return value


def _amount(value: Any) -> float:
    found = row_validation.number(value)
    if not 0 <= found < inf:
        raise ValueError("not an amount")
    return found


Sums: TypeAlias = dict[str, dict[float, float]]
_SIDES: Final = frozenset(("bid", "ask"))
_NO_SIDE: Final = Finding(column="side", text="neither bid nor ask", remedy="map your words to bid and ask in a view")
_TOO_LARGE: Final = Finding(
    column="amount", text="the sum at its price is too large a number", remedy="correct the amounts"
)
#: What encloses the market object in the body of a detail.
_MARKET: Final = b'{"market":'
_REST: Final = b',"orderBook":'
#: What begins fills and points in the rest of the body.
_SHOWN_FILLS: Final = b'},"recentFills":'
_SHOWN_POINTS: Final = b',"probHistory":'
_LEVELS: Final = Table(price=float, amount=float)
_FILLS: Final = Table(id=str, amount=float, shares=float, price=float, timestamp=str)
_POINTS: Final = Table(timestamp=str, prob=float)


class Level(NamedTuple):
    """The public open orders at one price, as described by OrderBookLevel."""

    price: float
    amount: float


class Book(NamedTuple):
    """Public bids and asks, best price first."""

    bids: list[Level]
    asks: list[Level]


class RowCounts(NamedTuple):
    """How many order levels, fills and points a detail shows."""

    levels: int
    fills: int
    points: int


@dataclass(frozen=True, slots=True)
class MarketRows:
    """One public market and its rows; consume them before advancing to the next market.

    Rows that are not converted yet are streams. Each row starts with the market's id, followed in `orders` by side,
    price and amount (sorted by all three), in `fills` by id, amount, shares, price and time, in `points` by time and
    probability.
    """

    market: contract.PublicMarketDetailMarket
    orders: RelationRows
    fills: RelationRows
    points: RelationRows


@dataclass(frozen=True, slots=True)
class Detail:
    """The public detail of one market; points are oldest first. `is_thinned`: there are more than it shows."""

    market: contract.PublicMarketDetailMarket
    order_book: Book
    recent_fills: list[Fill]
    points: list[Point]
    is_thinned: bool = False

    def body(self) -> bytes:
        """Encode the detail response."""
        bids, asks = self.order_book
        return b"".join(
            (
                *(_MARKET, contract.encode(self.market)),
                *(_REST, b'{"bids":', _LEVELS.encode(bids), b',"asks":', _LEVELS.encode(asks)),
                *(_SHOWN_FILLS, _FILLS.encode([*map(fills.in_wire_order, self.recent_fills)])),
                *(_SHOWN_POINTS, _POINTS.encode(self.points), b"}"),
            )
        )


class RowCollector(Protocol):
    """Takes all points and fills of a market, which its detail may thin out."""

    @property
    def points(self) -> CollectRows: ...  # noqa: D102
    @property
    def fills(self) -> CollectRows: ...  # noqa: D102


def with_market(body: bytes, market: bytes) -> bytes:
    """The body of a detail with another market object, encoded, and the same order book, fills and history."""
    return b"".join((_MARKET, market, _REST, rest(body)))


def market_object(body: bytes) -> bytes:
    """The market object in the body of a detail, encoded."""
    return body.partition(_REST)[0].removeprefix(_MARKET)


def rest(body: bytes) -> bytes:
    """What follows the market object in the body of a detail."""
    # No text can hold this: a quotation mark in a text is escaped.
    return body.partition(_REST)[2]


def row_counts(body: bytes) -> RowCounts:
    """What the body of a detail shows of each relation."""
    # Every level, fill and point is an object without braces in its texts: ids and times.
    book, _, shown = rest(body).partition(_SHOWN_FILLS)
    shown_fills, _, points = shown.partition(_SHOWN_POINTS)
    return RowCounts(max(0, book.count(b"{") - 1), shown_fills.count(b"{"), points.count(b"{"))


def shown_fills(body: bytes) -> bytes:
    """The recent fills in the body of a detail, encoded."""
    return rest(body).partition(_SHOWN_FILLS)[2].partition(_SHOWN_POINTS)[0]


def newest_prob(body: bytes) -> float | None:
    """The probability of the newest point in the body of a detail; None without points. ValueError if it is damaged."""
    _, found, last = rest(body).partition(_SHOWN_POINTS)[2].rpartition(b'"prob":')
    return float(last.partition(b"}")[0]) if found else None


def from_rows(
    rows: MarketRows, config: Config, quarantine: Quarantine, collector: RowCollector | None = None
) -> Detail:
    """Build the detail of one market; consumes its rows, of which the `collector` gets all points and fills."""
    market_id = rows.market.id
    of_points, of_fills = (collector.points, collector.fills) if collector else (ignored, ignored)
    points, is_thinned = history(market_id, rows.points, config.detail.history_points, quarantine, of_points)
    return Detail(
        market=rows.market,
        points=points,
        is_thinned=is_thinned,
        order_book=order_book(market_id, rows.orders, quarantine),
        recent_fills=fills.recent(rows.fills, config.detail.recent_fills, quarantine, of_fills),
    )


def order_book(market_id: str, orders: RelationRows, quarantine: Quarantine) -> Book:
    """Sum the orders per price, rounded to a millionth; bids highest first, asks lowest first."""
    sums: Sums = {"bid": {}, "ask": {}}
    if isinstance(orders, Valid):
        _sum(orders, sums)
    else:
        for batch in batch_validation.batches(orders):
            try:
                _sum(converted(batch), sums)
            except SlowPathError:
                _sum_one_by_one(market_id, batch, sums, quarantine)
    bids, asks = (_levels(market_id, sums[side], quarantine) for side in ("bid", "ask"))
    return Book(bids[::-1], asks)


def converted(batch: Sequence[Sequence[Any]]) -> Valid:
    """Convert orders of one or several markets at once: sides, prices, amounts. Raises SlowPathError if one is odd."""
    _, sides, prices, amounts = zip(*batch, strict=True)
    if not _SIDES.issuperset(sides):
        raise SlowPathError
    return Valid((sides, batch_validation.level_prices(prices), batch_validation.numbers(amounts, 0, MAX_FLOAT)))


def _sum(orders: Valid, sums: Sums) -> None:
    for side, price, amount in zip(*orders.columns, strict=True):
        levels = sums[side]
        levels[price] = levels.get(price, 0.0) + amount


def _sum_one_by_one(market_id: str, orders: Sequence[Sequence[Any]], sums: Sums, quarantine: Quarantine) -> None:
    for _, side, price, amount in orders:
        try:
            level = row_validation.LevelRow.model_validate({"price": price, "amount": amount})
        except ValidationError as error:
            quarantine.reject("orders", market_id, *faults.of(error))
            continue
        levels = sums.get(side)
        if levels is None:
            quarantine.reject("orders", market_id, _NO_SIDE._replace(value=printable(side)))
        else:
            levels[level.price] = levels.get(level.price, 0.0) + level.amount


def _levels(market_id: str, sums: dict[float, float], quarantine: Quarantine) -> list[Level]:
    levels = []
    for price, amount in sorted(sums.items()):
        if isfinite(amount):
            levels.append(Level(price, amount))
        else:
            quarantine.reject("orders", market_id, _TOO_LARGE._replace(value=str(price)))
    return levels
