"""The objects of the API, frozen, and nothing else.

States, outcomes and other enumerations are plain text: a value that is new is no error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from public_markets_client.decoding import Extensible

__all__ = [
    "Build", "Category", "ChangesHead", "DumpHead", "Fill", "FullMarket", "FxFamilyMember", "Market", "MarketDetail",
    "MarketsFile", "OrderBook", "OrderBookLevel", "Page", "PartitionFile", "Price", "Prices", "ProbabilityPoint",
    "Signal", "Snapshot", "Sort", "Status", "Step",
]  # fmt: skip

Status = Literal["open", "archive", "closed", "resolved", "cancelled", "all"]
Sort = Literal["popular", "activity", "volume", "new", "ended"]


@dataclass(frozen=True, kw_only=True)
class Market(Extensible):
    """A market as lists show it. `slug`, `category` and `categories` are of the extended variant."""

    id: str
    question: str
    status: str
    prob: float
    volume: float
    close_time: datetime
    resolution: str | None
    created_at: datetime
    resolved_at: datetime | None
    last_activity_at: datetime
    trader_count: int
    fills24h: int
    accepting_bets: bool
    slug: str | None = None
    category: str | None = None
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class FxFamilyMember(Extensible):
    """A market's place in a public FX family."""

    title: str
    instrument: str
    source: str
    week_start: date
    week_end: date
    threshold_value: float
    direction: str


@dataclass(frozen=True, kw_only=True)
class FullMarket(Market):
    """A market as its detail, the dump and the change feed show it."""

    description: str | None
    pool_yes: float
    pool_no: float
    trading_pause_reason: str | None
    fx_family_member: FxFamilyMember | None
    creation_source: str | None = None
    sponsor: str | None = None


@dataclass(frozen=True, kw_only=True)
class OrderBookLevel(Extensible):
    """The public orders at one price."""

    price: float
    amount: float


@dataclass(frozen=True, kw_only=True)
class OrderBook(Extensible):
    """Public orders, best price first."""

    bids: tuple[OrderBookLevel, ...]
    asks: tuple[OrderBookLevel, ...]


@dataclass(frozen=True, kw_only=True)
class Fill(Extensible):
    """A trade; `price` is None if unknown."""

    id: str
    amount: float
    shares: float
    price: float | None
    timestamp: datetime


@dataclass(frozen=True, kw_only=True)
class ProbabilityPoint(Extensible):
    """The probability at an instant."""

    timestamp: datetime
    prob: float


@dataclass(frozen=True, kw_only=True)
class MarketDetail(Extensible):
    """One market with its book, recent fills (newest first) and history (oldest first)."""

    market: FullMarket
    order_book: OrderBook
    recent_fills: tuple[Fill, ...]
    prob_history: tuple[ProbabilityPoint, ...]


@dataclass(frozen=True, kw_only=True)
class Signal(Extensible):
    """A market of the snapshot; all of them are open."""

    id: str
    question: str
    prob: float
    volume: float
    close_time: datetime
    created_at: datetime
    last_activity_at: datetime
    trader_count: int
    fills24h: int


@dataclass(frozen=True, kw_only=True)
class Snapshot(Extensible):
    """Small groups of open markets for a landing page."""

    fresh_markets: tuple[Signal, ...]
    closing_soon_markets: tuple[Signal, ...]


@dataclass(frozen=True, kw_only=True)
class Price(Extensible):
    """The probability and volume of an open market."""

    id: str
    prob: float
    volume: float
    last_activity_at: datetime


@dataclass(frozen=True, kw_only=True)
class Prices(Extensible):
    """All open listed markets, ascending by id; `as_of` is that of the build that last changed one of them."""

    as_of: datetime
    markets: tuple[Price, ...]


@dataclass(frozen=True, kw_only=True)
class Category(Extensible):
    """A category that has lists."""

    slug: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Build(Extensible):
    """What is published, and as of when; `lists` has the size of each list by `status/sort`."""

    as_of: datetime
    generator: str
    variant: str
    layout: str
    markets: int
    lists: Mapping[str, int]
    snapshot_size: int
    search: tuple[str, ...] | None = None
    categories: tuple[Category, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Page(Extensible):
    """A page of a list; `next_cursor` is None at its end."""

    items: tuple[Market, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class MarketsFile(Extensible):
    """A file with all markets; `sha256` and `size` are those of the file as it is sent."""

    name: str
    url: str
    sha256: str
    size: int
    format: str


@dataclass(frozen=True, kw_only=True)
class PartitionFile(Extensible):
    """A Parquet file with the histories or fills of some markets."""

    name: str
    url: str
    sha256: str
    size: int
    state: str
    month: str | None = None
    part: str | None = None


@dataclass(frozen=True, kw_only=True)
class DumpHead(Extensible):
    """The files of the newest dump; those of histories and fills are as of `history_as_of`."""

    as_of: datetime
    count: int
    state: str
    markets: tuple[MarketsFile, ...]
    history_as_of: datetime | None = None
    history: tuple[PartitionFile, ...] | None = None
    fills: tuple[PartitionFile, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Step(Extensible):
    """A file with what changed from one serial to the next."""

    name: str
    size: int
    as_of: datetime


@dataclass(frozen=True, kw_only=True)
class ChangesHead(Extensible):
    """The head of the change feed: where it is, and the files that lead there."""

    session: str
    serial: int
    as_of: datetime
    count: int
    state: str
    dump: MarketsFile
    steps_url: str
    steps: tuple[Step, ...]
