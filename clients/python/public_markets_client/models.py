# Generated from OpenAPI by generate_models.py; do not edit, run `make bless`.
"""The objects of the API, frozen, and nothing else; what is absent or null in JSON is None.

States, outcomes and other enumerations are plain text: a value that is new is no error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal

from public_markets_client.decoding import Extensible

__all__ = [
    "Build", "Category", "ChangesHead", "Definitions", "DefinitionsFile", "DumpHead", "Fill", "FullMarket",
    "FxFamilyMember", "Market", "MarketDetail", "MarketsFile", "NumberedDefinitions", "OrderBook", "OrderBookLevel",
    "Page", "PeriodFile", "Price", "Prices", "ProbabilityPoint", "Question", "QuestionDetail", "QuestionMarket",
    "QuestionMember", "QuestionPage", "QuestionSummary", "QuestionTotals", "Signal", "Snapshot", "Sort", "Status",
    "Step",
]  # fmt: skip

#: The groups of states that can be listed.
Status = Literal["open", "archive", "closed", "resolved", "cancelled", "all"]
#: The orders in which markets can be listed.
Sort = Literal["popular", "activity", "volume", "new", "ended"]


@dataclass(frozen=True, kw_only=True)
class Market(Extensible):
    """A market, as lists show it."""

    id: str  # The market's UUID, in lower case.
    question: str  # What the market asks. Plain text, not HTML.
    status: str  # The state the market is in.
    prob: float  # Probability of YES.
    volume: float  # Money traded so far.
    close_time: datetime  # When betting ends or ended.
    resolution: str | None  # How the market was resolved; always None while it is open or closed.
    created_at: datetime  # When the market was created.
    resolved_at: datetime | None  # When the market was resolved or cancelled; always None while it is open or closed.
    last_activity_at: datetime  # When something last happened on the market.
    trader_count: int  # How many people traded.
    # Trades within the 24 hours before this data was read, and up to 1 hour before: they leave the count in steps of 1
    # hour.
    fills24h: int
    accepting_bets: bool  # Whether the market is open, closes later than this data was read, and is not paused.
    slug: str | None = None  # Can stand for the id in a path; absent if the market has none that can.
    category: str | None = None  # Name of the market's primary category; absent if it has none. Plain text, not HTML.
    # Names of the market's categories, the primary one first. Plain text, not HTML.
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class FxFamilyMember(Extensible):
    """Membership of a public FX family."""

    title: str  # Name of the FX family. Plain text, not HTML.
    instrument: str  # The pair of currencies, or what else is priced. Plain text, not HTML.
    source: str  # Where the price is read. Plain text, not HTML.
    week_start: date  # First day of the week in question.
    week_end: date  # Last day of the week in question.
    threshold_value: float  # The price that decides.
    direction: str  # Whether YES means at least (`gte`) or at most (`lte`) the threshold.


@dataclass(frozen=True, kw_only=True)
class FullMarket(Market):
    """A market, as its detail, the dump and the change feed show it."""

    description: str | None  # The public text of the resolution rules; None if there is none. Plain text, not HTML.
    pool_yes: float  # YES shares in the market maker's pool.
    pool_no: float  # NO shares in the market maker's pool.
    trading_pause_reason: str | None  # Why trading is paused; None when it is not. Plain text, not HTML.
    fx_family_member: FxFamilyMember | None  # The market's place in a public FX family; None for all other markets.
    creation_source: str | None = None  # Where the market was made; absent if that is not told. Plain text, not HTML.
    sponsor: str | None = None  # Who sponsors the market; absent if nobody does. Plain text, not HTML.


@dataclass(frozen=True, kw_only=True)
class OrderBookLevel(Extensible):
    """The public open orders at one price."""

    price: float  # Price of a YES share, as a probability.
    amount: float  # What the orders at this price come to.


@dataclass(frozen=True, kw_only=True)
class OrderBook(Extensible):
    """Public bids and asks, best price first."""

    bids: tuple[OrderBookLevel, ...]  # Offers to buy, highest price first.
    asks: tuple[OrderBookLevel, ...]  # Offers to sell, lowest price first.


@dataclass(frozen=True, kw_only=True)
class Fill(Extensible):
    """A trade, without who made it."""

    id: str  # The trade's UUID, in lower case; no other resource refers to it.
    amount: float  # Money that changed hands.
    shares: float  # Shares that changed hands.
    price: float | None  # Price of a share, as a probability; None if none is known.
    timestamp: datetime  # When it was.


@dataclass(frozen=True, kw_only=True)
class ProbabilityPoint(Extensible):
    """A point of the probability history."""

    timestamp: datetime  # When it was.
    prob: float  # Probability of YES.


@dataclass(frozen=True, kw_only=True)
class MarketDetail(Extensible):
    """A market with its order book, latest trades and history."""

    market: FullMarket  # The market itself.
    order_book: OrderBook  # Open public orders, summed per price, which is rounded to a millionth.
    recent_fills: tuple[Fill, ...]  # The latest trades, newest first.
    prob_history: tuple[ProbabilityPoint, ...]  # How the probability went, oldest first.


@dataclass(frozen=True, kw_only=True)
class Signal(Extensible):
    """A market in the snapshot."""

    id: str  # The market's UUID, in lower case.
    question: str  # What the market asks. Plain text, not HTML.
    prob: float  # Probability of YES.
    volume: float  # Money traded so far.
    close_time: datetime  # When betting ends or ended.
    created_at: datetime  # When the market was created.
    last_activity_at: datetime  # When something last happened on the market.
    trader_count: int  # How many people traded.
    # Trades within the 24 hours before this data was read, and up to 1 hour before: they leave the count in steps of 1
    # hour.
    fills24h: int


@dataclass(frozen=True, kw_only=True)
class Snapshot(Extensible):
    """Small groups of open markets, for a landing page."""

    fresh_markets: tuple[Signal, ...]  # Markets that accept bets, newest first.
    closing_soon_markets: tuple[Signal, ...]  # Open markets whose `close_time` is to come, soonest first.


@dataclass(frozen=True, kw_only=True)
class Price(Extensible):
    """An open market: its price, and what tells whether it is one to follow."""

    id: str  # The market's UUID, in lower case.
    prob: float  # Probability of YES.
    volume: float  # Money traded so far.
    last_activity_at: datetime  # When something last happened on the market.


@dataclass(frozen=True, kw_only=True)
class Prices(Extensible):
    """All open listed markets, ascending by id."""

    as_of: datetime  # The instant of the build that last changed this object.
    markets: tuple[Price, ...]  # The open markets, ascending by `id`; members of FX families are not among them.


@dataclass(frozen=True, kw_only=True)
class Category(Extensible):
    """A category that has lists."""

    slug: str  # Its slug; `category` takes it or the name.
    name: str  # The name, as it stands in `category` and `categories`. Plain text, not HTML.


@dataclass(frozen=True, kw_only=True)
class QuestionTotals(Extensible):
    """How many questions there are."""

    count: int  # How many questions are public, without the markets that are in none.
    # How many rows each list of questions without category holds, by `status/sort`; absent if they are not published.
    lists: Mapping[str, int] | None = field(default=None, hash=False)


@dataclass(frozen=True, kw_only=True)
class Build(Extensible):
    """What is published, and as of when."""

    as_of: datetime  # The instant whose data is published.
    generator: str  # Version of the program that made the files.
    variant: str  # The form of the API that is published.
    layout: str  # How lists are stored; of no concern to readers.
    markets: int  # How many markets are public, members of FX families included.
    lists: Mapping[str, int] = field(hash=False)  # How many markets each list without category holds, by `status/sort`.
    questions: QuestionTotals | None = None  # How many questions there are.
    snapshot_size: int  # How many markets each group of the snapshot has at most.
    search: tuple[str, ...] | None = None  # The texts in which `q` finds words; absent if there is no search.
    categories: tuple[Category, ...] | None = None  # The categories that have lists, by name and slug.


@dataclass(frozen=True, kw_only=True)
class Page(Extensible):
    """A page of a list."""

    items: tuple[Market, ...]  # The markets of this page.
    next_cursor: str | None  # Pass it as `cursor` for the next page; None on the last page, and only there.


@dataclass(frozen=True, kw_only=True)
class QuestionMarket(Extensible):
    """A market of a question, as lists of questions show it; the label of a market that stands alone is None."""

    id: str  # The market's UUID, in lower case.
    label: str | None  # What the market stands for in its question; None if it is in none. Plain text, not HTML.
    prob: float  # Probability of YES.
    status: str  # The state the market is in.
    resolution: str | None  # How the market was resolved; always None while it is open or closed.


@dataclass(frozen=True, kw_only=True)
class Question(Extensible):
    """A row of the lists: a question, or a market that is in none."""

    id: str  # The question's UUID, in lower case; of a market in no question, that of the market.
    title: str  # What its markets answer together; of a market in no question, what that asks. Plain text, not HTML.
    # `exclusive` if one of its markets at most is to be resolved YES, `independent` if any number may be, `single` for
    # a market in no question.
    kind: str
    status: str  # The state of its markets: the first of open, closed, resolved and cancelled that one of them is in.
    volume: float  # Money traded so far, summed over its markets.
    trader_count: int  # How many people traded, summed over its markets.
    # Trades within the 24 hours before this data was read, and up to 1 hour before: they leave the count in steps of 1
    # hour.
    fills24h: int
    accepting_bets: bool  # Whether one of its markets accepts bets.
    close_time: datetime  # When betting ends or ended: the latest time of its open markets or, if none is open, of all.
    created_at: datetime  # When the question was asked.
    # When the last of its markets was resolved or cancelled; always None while one is open or closed.
    resolved_at: datetime | None
    last_activity_at: datetime  # When something last happened on one of its markets.
    size: int  # How many markets it has.
    # Its markets: open ones first, then the one that came true, then by `prob`; 10 at most.
    markets: tuple[QuestionMarket, ...]
    # Can stand for the id in a path, that of a market in no question for the market's; absent if it has none that can.
    slug: str | None = None
    category: str | None = None  # The first of `categories`; absent if it has none. Plain text, not HTML.
    # Names of the categories of its markets, those of most markets first. Plain text, not HTML.
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class QuestionPage(Extensible):
    """A page of a list of questions."""

    items: tuple[Question, ...]  # The rows of this page.
    next_cursor: str | None  # Pass it as `cursor` for the next page; None on the last page, and only there.


@dataclass(frozen=True, kw_only=True)
class QuestionSummary(Extensible):
    """A question in its detail, whose markets stand beside it; a market that stands alone has none."""

    id: str  # The question's UUID, in lower case; of a market in no question, that of the market.
    title: str  # What its markets answer together; of a market in no question, what that asks. Plain text, not HTML.
    # `exclusive` if one of its markets at most is to be resolved YES, `independent` if any number may be, `single` for
    # a market in no question.
    kind: str
    status: str  # The state of its markets: the first of open, closed, resolved and cancelled that one of them is in.
    volume: float  # Money traded so far, summed over its markets.
    trader_count: int  # How many people traded, summed over its markets.
    # Trades within the 24 hours before this data was read, and up to 1 hour before: they leave the count in steps of 1
    # hour.
    fills24h: int
    accepting_bets: bool  # Whether one of its markets accepts bets.
    close_time: datetime  # When betting ends or ended: the latest time of its open markets or, if none is open, of all.
    created_at: datetime  # When the question was asked.
    # When the last of its markets was resolved or cancelled; always None while one is open or closed.
    resolved_at: datetime | None
    last_activity_at: datetime  # When something last happened on one of its markets.
    size: int  # How many markets it has.
    description: str | None  # What holds for all its markets; None if there is none. Plain text, not HTML.
    # Can stand for the id in a path, that of a market in no question for the market's; absent if it has none that can.
    slug: str | None = None
    category: str | None = None  # The first of `categories`; absent if it has none. Plain text, not HTML.
    # Names of the categories of its markets, those of most markets first. Plain text, not HTML.
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class QuestionMember(Extensible):
    """A market in the detail of its question; `payout` is what a YES share pays, None before the market is settled."""

    label: str  # What the market stands for in its question. Plain text, not HTML.
    position: int | None  # Its place among the markets of the question, as the site counts; None if it has none.
    # What a YES share of it pays; None before it is resolved or cancelled, or if that is not told.
    payout: float | None
    market: Market  # The market itself.


@dataclass(frozen=True, kw_only=True)
class QuestionDetail(Extensible):
    """A question with all its markets."""

    question: QuestionSummary  # The question itself.
    markets: tuple[QuestionMember, ...]  # All its markets, by `position`, those without one last, and then by `id`.


@dataclass(frozen=True, kw_only=True)
class MarketsFile(Extensible):
    """All listed markets in one file."""

    name: str  # The name of the file within the dump.
    url: str  # The address of the file.
    sha256: str  # The SHA-256 digest of the file, as it is sent.
    size: int  # The size of the file as it is sent, in bytes.
    format: str  # How the file is written.


@dataclass(frozen=True, kw_only=True)
class PeriodFile(Extensible):
    """The rows of one table and period in Parquet: of a month or year, or a part of those of a month."""

    name: str  # The name of the file within the dump.
    url: str  # The address of the file.
    sha256: str  # The SHA-256 digest of the file, as it is sent.
    size: int  # The size of the file as it is sent, in bytes.
    period: str  # The month or the year (UTC) of its rows; several files may share a month.


@dataclass(frozen=True, kw_only=True)
class DefinitionsFile(Extensible):
    """All definitions of questions in one file."""

    format: str  # How the file is written.
    url: str  # The address of the file.
    sha256: str  # The SHA-256 digest of the file, as it is sent.
    size: int  # The size of the file as it is sent, in bytes.


@dataclass(frozen=True, kw_only=True)
class Definitions(Extensible):
    """The files of all definitions of questions, how many these are, and since when they are as they are.

    `state` is the SHA-256 digest of the uncompressed NDJSON, which is the first file.
    """

    as_of: datetime  # The instant of the build that last changed them.
    count: int  # How many definitions the files have.
    state: str  # The SHA-256 digest of the uncompressed NDJSON of all definitions.
    # The files with definitions of all questions, in one format each: what seldom changes of them.
    files: tuple[DefinitionsFile, ...]


@dataclass(frozen=True, kw_only=True)
class NumberedDefinitions(Definitions):
    """The same in the change feed, whose `serial` is one more with every other state of its session."""

    serial: int  # The number of these definitions in the session, from 1: one more if they changed.


@dataclass(frozen=True, kw_only=True)
class DumpHead(Extensible):
    """The files of the newest dump, and its as-of.

    `state` is the SHA-256 digest of its uncompressed NDJSON; tables are as of `history_as_of`.
    """

    as_of: datetime  # The instant whose data is published.
    count: int  # How many markets the dump has.
    state: str  # The SHA-256 digest of the uncompressed NDJSON of all markets.
    markets: tuple[MarketsFile, ...]  # The files with all markets, in one format each.
    # The instant whose histories and fills the files hold, and what is made of these; they are made once a day.
    history_as_of: datetime | None = None
    history: tuple[PeriodFile, ...] | None = None  # The files with the histories of probabilities.
    fills: tuple[PeriodFile, ...] | None = None  # The files with trades, where the site publishes all of them.
    candles_day: tuple[PeriodFile, ...] | None = None  # The files with daily candles.
    candles_hour: tuple[PeriodFile, ...] | None = None  # The files with hourly candles.
    closes: tuple[PeriodFile, ...] | None = None  # The files with the prices of markets at their close, and before.
    questions: Definitions | None = None  # The definitions of questions: which markets each has, and what it says.


@dataclass(frozen=True, kw_only=True)
class Step(Extensible):
    """What changed from one serial to the next; its position in the head tells which."""

    name: str  # The name of the file: the first 32 hexadecimal digits of its SHA-256 digest, and an extension.
    size: int  # The size of the file as it is sent, in bytes.
    as_of: datetime  # The instant whose data is published.


@dataclass(frozen=True, kw_only=True)
class ChangesHead(Extensible):
    """Where the change feed is: `serial` in its `session`, the dump of just that state, and the steps that lead there.

    The steps are in order, each leads from one serial to the next, and the last one leads to `serial`. The address of a
    step is `steps_url` followed by its name.
    """

    session: str  # Names a run of serials; a takedown, for one, begins a new one.
    serial: int  # The number of this state in its session, from 1.
    as_of: datetime  # The instant whose data is published.
    count: int  # How many markets the dump has.
    state: str  # The SHA-256 digest of the uncompressed NDJSON of all markets.
    dump: MarketsFile  # The dump at this serial, to start from.
    steps_url: str  # The address of every step, without its name, which follows.
    # The steps that are kept, oldest first: each leads from one serial to the next, the last one to `serial`.
    steps: tuple[Step, ...]
    # The definitions of questions: which markets each has, and what it says.
    questions: NumberedDefinitions | None = None
