"""What a market's detail shows besides its fields: order book, recent fills, probability history. Pure.

Fills and points arrive as streams in any order; what is kept of them is bounded, so memory does not grow with a
market's past.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from generator import contract, rows
from generator.config import Config
from generator.contract import OrderBook, OrderBookLevel, PublicRecentFill
from generator.quarantine import Quarantine

#: A history up to this long is thinned exactly; a longer one is brought down to a grid of so many cells first.
GRID: Final = 10_000

#: RFC 3339 UTC time in milliseconds, probability.
Point: TypeAlias = tuple[str, float]
Rows: TypeAlias = Iterable[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class MarketRows:
    """One public market and the streams of its rows, to be consumed before the next market's.

    Each row starts with the market's id. Then follow, for `orders`, side, price and amount, sorted by all three; for
    `fills` id, amount, shares, price and time; for `points` time and probability.
    """

    market: contract.PublicMarketDetailMarket
    orders: Rows
    fills: Rows
    points: Rows


@dataclass(frozen=True, slots=True)
class Detail:
    """What is public of one market; its points are oldest first."""

    market: contract.PublicMarketDetailMarket
    order_book: OrderBook
    recent_fills: list[PublicRecentFill]
    points: list[Point]

    def body(self) -> bytes:
        """The detail response, encoded."""
        return contract.encode(
            {
                "market": self.market,
                "orderBook": self.order_book,
                "recentFills": self.recent_fills,
                "probHistory": [{"timestamp": timestamp, "prob": prob} for timestamp, prob in self.points],
            }
        )


def read(shown: MarketRows, config: Config, quarantine: Quarantine) -> Detail:
    """The detail of one market; consumes its rows. What the configuration withholds was not even read."""
    market_id = shown.market.id
    return Detail(
        market=shown.market,
        points=history(market_id, shown.points, config.detail.history_points, quarantine),
        order_book=order_book(market_id, shown.orders, quarantine),
        recent_fills=recent_fills(shown.fills, config.detail.recent_fills, quarantine),
    )


def order_book(market_id: str, orders: Rows, quarantine: Quarantine) -> OrderBook:
    """Sum public open orders per price; bids highest first, asks lowest first."""
    sums: dict[str, dict[float, float]] = {"bid": {}, "ask": {}}
    for _, side, price, amount in orders:
        try:
            level = rows.LevelRow.model_validate({"price": price, "amount": amount})
        except ValidationError as error:
            quarantine.reject("orders", market_id, rows.reason(error))
            continue
        levels = sums.get(side)
        if levels is None:
            quarantine.reject("orders", market_id, f"side: neither bid nor ask ({side!r})")
        else:
            levels[level.price] = levels.get(level.price, 0.0) + level.amount
    return OrderBook(
        bids=_levels(market_id, sums["bid"], quarantine)[::-1], asks=_levels(market_id, sums["ask"], quarantine)
    )


def _levels(market_id: str, sums: dict[float, float], quarantine: Quarantine) -> list[OrderBookLevel]:
    levels = []
    for price, amount in sorted(sums.items()):
        if isfinite(amount):
            levels.append(OrderBookLevel(price=price, amount=amount))
        else:
            quarantine.reject("orders", market_id, f"amount: the sum at price {price} is too large a number")
    return levels


class RecentFills:
    """The newest fills of one market, at most `limit`."""

    def __init__(self, limit: int, quarantine: Quarantine) -> None:
        self._limit = limit
        self._quarantine = quarantine
        self._kept: list[PublicRecentFill] = []
        self._oldest = ""

    def add(self, row: Sequence[Any]) -> None:
        """Keep the fill if it is among the newest so far and does not break the contract."""
        try:
            # The cheap test first: most fills of a busy market are older than what is shown.
            if rows.timestamp(row[-1]) < self._oldest:
                return
        except ValueError:
            pass  # the model says it better, together with what else is wrong
        try:
            self._kept.append(rows.fill(row))
        except ValidationError as error:
            self._quarantine.reject("fills", row[1], rows.reason(error))
        if len(self._kept) >= 2 * self._limit:
            self._cut()

    def _cut(self) -> None:
        # Equal times end with the id ascending: both sorts are stable.
        self._kept.sort(key=lambda fill: fill.id)
        self._kept.sort(key=lambda fill: fill.timestamp, reverse=True)
        unique: dict[str, PublicRecentFill] = {}
        for fill in self._kept:
            if unique.setdefault(fill.id, fill) is not fill:
                self._quarantine.reject("fills", fill.id, "id: another fill has the same")
        self._kept = list(unique.values())[: self._limit]
        if len(self._kept) == self._limit:
            self._oldest = self._kept[-1].timestamp

    def newest(self) -> list[PublicRecentFill]:
        """The fills to show, newest first."""
        self._cut()
        return self._kept


def recent_fills(fills: Rows, limit: int, quarantine: Quarantine) -> list[PublicRecentFill]:
    """The newest `limit` fills, newest first."""
    if limit == 0:
        return []
    recent = RecentFills(limit, quarantine)
    for fill in fills:
        recent.add(fill)
    return recent.newest()


def history(market_id: str, points: Rows, limit: int, quarantine: Quarantine) -> list[Point]:
    """The probability history, oldest first, thinned evenly in time to `limit` points; the result ignores row order."""
    if limit == 0:
        return []
    grid = _Grid()
    kept: list[Point] = []
    for _, recorded_at, prob in points:
        # This loop sees every point there is. A model per point would cost three times as much, so models only see
        # the ones that are not plainly good.
        try:
            if type(prob) is not float or not 0.0 <= prob <= 1.0:
                raise ValueError  # noqa: TRY301 - to the slow path below
            kept.append((rows.timestamp(recorded_at), prob + 0.0))  # minus zero becomes zero
        except ValueError:
            _add_unusual(market_id, recorded_at, prob, kept, quarantine)
        if len(kept) >= 2 * GRID:
            kept = grid.reduce(kept)
    kept.sort()
    return thin(grid.reduce(kept) if len(kept) > GRID or grid.used else kept, limit)


def _add_unusual(market_id: str, recorded_at: Any, prob: Any, kept: list[Point], quarantine: Quarantine) -> None:
    try:
        point = rows.PointRow.model_validate({"timestamp": recorded_at, "prob": prob})
    except ValidationError as error:
        quarantine.reject("probabilities", market_id, rows.reason(error))
    else:
        kept.append((point.timestamp, point.prob))


class _Grid:
    """Bounds a long history: the latest point of each cell of time, and the first point of all.

    Cells are a power of two milliseconds wide, the narrowest that leaves at most GRID of them. Wider cells are made of
    whole narrower ones, so reducing in steps, in whatever order rows arrive, ends in the same points as at once.
    """

    def __init__(self) -> None:
        self.used = False
        self._shift = 0

    def reduce(self, points: list[Point]) -> list[Point]:
        self.used = True
        points.sort()
        times = [_milliseconds(time) for time, _ in points]
        while len({time >> self._shift for time in times}) > GRID:
            self._shift += 1
        latest = {time >> self._shift: point for time, point in zip(times, points, strict=True)}
        kept = list(latest.values())
        return kept if kept[0] == points[0] else [points[0], *kept]


def thin(points: list[Point], limit: int) -> list[Point]:
    """Choose at most `limit` (2 or more) of the sorted `points`, evenly in time.

    They are the first of all, and the last one in each of `limit - 1` equal spans.
    """
    if len(points) <= limit:
        return points
    start, end = _milliseconds(points[0][0]), _milliseconds(points[-1][0])
    spans = limit - 1
    length = max(end - start, 1)
    # Rounded up in whole numbers: floats would now and then open a span too many.
    chosen = {-((start - _milliseconds(point[0])) * spans // length): point for point in points}
    chosen[0] = points[0]
    chosen[spans] = points[-1]
    return [chosen[span] for span in sorted(chosen)]


def _milliseconds(time: str) -> int:
    moment = datetime.fromisoformat(time)
    return (moment.toordinal() * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second) * 1000 + (
        moment.microsecond // 1000
    )
