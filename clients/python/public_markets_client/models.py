"""The objects of the API, frozen. What a site says beyond them is in `extra`, by its name in JSON.

States, outcomes and other enumerations are plain text: a value that is new is no error. `decoded` reads an object from
JSON values and raises AnswerError with the path of what is missing or of another type.
"""

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import date, datetime, timezone
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from public_markets_client.errors import AnswerError

__all__ = [
    "Build", "Category", "ChangesHead", "DumpHead", "Fill", "FullMarket", "FxFamilyMember", "Market", "MarketDetail",
    "MarketsFile", "OrderBook", "OrderBookLevel", "Page", "PartitionFile", "Price", "Prices", "ProbabilityPoint",
    "Signal", "Snapshot", "Sort", "Status", "Step",
]  # fmt: skip

Status = Literal["open", "archive", "closed", "resolved", "cancelled", "all"]
Sort = Literal["popular", "activity", "volume", "new", "ended"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Extensible:
    """The base of all objects: what this version of the client does not know is kept in `extra`."""

    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


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


class _Property(NamedTuple):
    key: str
    convert: Callable[[Any, str], Any]
    is_required: bool


def decoded(cls: Callable[..., T], value: Any, path: str = "") -> T:
    """The object that these JSON values describe; raise AnswerError if a property is missing or of another type."""
    if not isinstance(value, dict):
        raise AnswerError("must be an object", path=path)
    known, given = _properties(cls), dict[str, Any]()
    for name, (key, convert, is_required) in known.items():
        if key in value:
            given[name] = convert(value[key], f"{path}.{key}" if path else key)
        elif is_required:
            raise AnswerError(f"{key} is missing", path=path)
    extra = value.keys() - {key for key, _, _ in known.values()}
    return cls(**given, extra={key: value[key] for key in value if key in extra})


@cache
def _properties(cls: Any) -> dict[str, _Property]:
    hints = get_type_hints(cls)
    return {
        one.name: _Property(wire_name(one.name), _converter(hints[one.name]), one.default is MISSING)
        for one in fields(cls)
        if one.name != "extra"
    }


def encoded(value: Any) -> Any:
    """The JSON values of an object, as the site sends them, what is in `extra` included."""
    if isinstance(value, Extensible):
        kind: Any = value.__class__
        known = [(one, getattr(value, name)) for name, one in _properties(kind).items()]
        return {one.key: encoded(held) for one, held in known if one.is_required or held is not None} | {**value.extra}
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple):
        return [encoded(one) for one in value]
    return value


def wire_name(name: str) -> str:
    """The name of a field in JSON: closeTime for close_time."""
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _converter(hint: Any) -> Callable[[Any, str], Any]:
    """What reads a value of this type, given it and its path."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        inner = _converter(arguments[0])
        return lambda value, path: None if value is None else inner(value, path)
    if origin is tuple:
        element = _converter(arguments[0])
        return lambda value, path: tuple(
            element(one, f"{path}.{at}") for at, one in enumerate(_plain(list, value, path))
        )
    if origin is not None:
        number = _converter(arguments[1])
        return lambda value, path: {key: number(one, f"{path}.{key}") for key, one in _plain(dict, value, path).items()}
    if hint in {datetime, date}:
        return lambda value, path: _instant(hint, value, path)
    if hint in {str, int, float, bool}:
        return lambda value, path: _plain(hint, value, path)
    return lambda value, path: decoded(hint, value, path)


def _plain(kind: type[Any], value: Any, path: str) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise AnswerError(f"must be of type {kind.__name__}", path=path)
    return value


def _instant(kind: Any, value: Any, path: str) -> Any:
    try:
        # Python 3.10 does not know Z.
        return kind.fromisoformat(_plain(str, value, path).replace("Z", "+00:00"))
    except ValueError:
        raise AnswerError(f"must be a {kind.__name__}", path=path) from None
