"""Renders one part of the markets from the database: their list items, and the details that changed.

It needs no folder, so it runs in any process that sees the same instant, on any machine. The result depends only on the
task and the database, so a task may run twice, or again elsewhere after its worker died.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from generator.api import contract, forms, keys
from generator.builder import last_details, notices
from generator.builder.last_details import Fate, Sample
from generator.config.settings import Config
from generator.downloads.histories import LastHistories, NewHistories
from generator.findings import Finding
from generator.markets import detail
from generator.markets.batch_validation import CollectRows, ignored
from generator.markets.columns import Columns
from generator.markets.detail import Detail
from generator.markets.fills import TradeCounter, Trades, Window
from generator.markets.market import Market
from generator.markets.quarantine import Quarantine
from generator.progress import Stopwatch
from generator.source.fill_windows import EarlierCounts
from generator.source.queries import Chosen, Within, few_or_all
from generator.source.reader import Reader
from generator.source.survey import Facts, Found
from generator.tree import manifest
from generator.tree.fingerprints import MadeOf

if TYPE_CHECKING:
    from generator.builder.collector import Collector

#: Returns a reader that reports bad rows to this quarantine.
OpenReader: TypeAlias = Callable[[Quarantine], Reader]


@dataclass(frozen=True)
class Task:
    """What to render, and what need not be rendered again.

    `known` says what the details in place were made of, by market id. `in_place` has the digests of those in place, by
    market id: the bytes of such a detail are not returned. `blocked` markets (ids) get no detail. Times after `latest`
    count as in the future. `histories` says what the files of histories hold of these markets; without it, the rows of
    histories are not collected. Fills later than `since`, a wire timestamp shortly before the last build, are new; it
    is empty if there was none.
    """

    config: Config
    within: Within
    facts: Facts
    as_of: datetime
    latest: str
    sample: Sample
    blocked: frozenset[str] = frozenset()
    known: Mapping[str, MadeOf] = field(default_factory=dict)
    in_place: Mapping[str, str] = field(default_factory=dict)
    histories: LastHistories | None = None
    since: str = ""

    def earlier(self) -> EarlierCounts:
        """The fills that were counted in the last build."""
        windows = {key: (made.version, Window(made.fills24h, made.until)) for key, made in self.known.items()}
        return EarlierCounts(windows, self.sample.has)

    def without(self, market_ids: Collection[str]) -> "Task":
        """The same task, but nothing is known of the details of these markets, and none is in place."""
        known = {key: made for key, made in self.known.items() if key not in market_ids}
        in_place = {key: found for key, found in self.in_place.items() if key not in market_ids}
        return replace(self, known=known, in_place=in_place)


class ReadDetail(NamedTuple):
    """A detail that was read, of `size` bytes; `body` is None if it is in place already.

    `digest` is that of each of its objects, under its id and its slug. `made` is None where the next build must read it
    again. `is_thinned`: the database has more points than it shows. `is_audited`: read only to check its version.
    `has_findings`: it has quarantined rows or remarks. `trades` are counted if there was a build before.
    """

    market_id: str
    slug: str | None
    body: bytes | None
    digest: str
    size: int
    made: MadeOf | None
    is_thinned: bool
    is_audited: bool
    has_findings: bool
    trades: Trades


class NewMarketObject(NamedTuple):
    """A detail of which only the market object changed; `shown` is the new one, encoded."""

    market: Market
    shown: bytes


@dataclass
class Reading:
    """What reading was like: how many markets told a version, and how long `markets` and `details` took."""

    versions: int = 0
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    def add(self, other: "Reading") -> None:
        """Add what it was like for another part."""
        self.versions += other.versions
        self.stopwatch.add(other.stopwatch)


@dataclass
class RenderedPart:
    """The markets of a part, what is new in their details, and findings about rows.

    `kept` are the markets (ids) whose details stay as they are; `altered` is that of `Found`. `false_versions` are
    those whose count of fills changed although their version did not. `histories` are those of the details that were
    read, and `spool` the file with their lines. `reading` is not sent to another machine.
    """

    markets: Columns = field(default_factory=Columns)
    details: list[ReadDetail] = field(default_factory=list)
    updates: list[NewMarketObject] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    quarantine: Quarantine = field(default_factory=Quarantine)
    remarks: list[Finding] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    false_versions: list[str] = field(default_factory=list)
    histories: NewHistories | None = None
    spool: IO[bytes] | None = field(default=None, compare=False)
    reading: Reading = field(default_factory=Reading, compare=False)


def render(task: Task, open_reader: OpenReader) -> RenderedPart:
    """Render a part. Raises SourceError if the database cannot be read."""
    made = RenderedPart()
    made.quarantine.leave_out(task.blocked)
    reader = open_reader(made.quarantine)
    with made.reading.stopwatch.stage("markets"):
        found = reader.read(task.within, task.facts, task.as_of, task.earlier())
        made.markets = Columns.of([market for market in found.markets if market is not None])
        made.altered, made.false_versions = found.altered, found.false_versions
    with made.reading.stopwatch.stage("details"):
        _Details(task, reader, found, made).add()
    return made


class _Details:
    """Adds the details of the markets that were found."""

    def __init__(self, task: Task, reader: Reader, found: Found, made: RenderedPart) -> None:
        self._task = task
        self._reader = reader
        self._found = found
        self._made = made
        self._audited: set[str] = set()
        self._collector: Collector | None = None
        if task.histories:
            from generator.builder import collector  # noqa: PLC0415 - most sites need no NumPy

            self._collector = collector.Collector(task.histories, forms.instant(task.as_of))
        self._rows = _RowsOfMarket(task, self._collector)

    def add(self) -> None:
        """Keep, update or read each."""
        fates: dict[Fate, dict[Any, Market]] = {fate: {} for fate in Fate}
        for key, market in self._found.public():
            if market.id not in self._task.blocked:
                self._made.reading.versions += market.fingerprint is not None
                fates[self._fate(market)][key] = market
        self._made.kept += [market.id for market in fates[Fate.KEEP].values()]
        self._update(fates[Fate.UPDATE])
        self._read(fates[Fate.READ])
        if self._collector:
            self._made.histories, self._made.spool = self._collector.close()

    def _fate(self, market: Market) -> Fate:
        """What to do with a detail; a sample of those that should not have changed is read all the same."""
        fate = last_details.fate(self._task.known.get(market.id), market.fingerprint)
        if fate is not Fate.READ and self._task.sample.has(market.id):
            self._audited.add(market.id)
            return Fate.READ
        histories = self._task.histories
        return Fate.READ if histories is not None and histories.has_other_close(market) else fate

    def _update(self, markets: Mapping[Any, Market]) -> None:
        for place, key in enumerate(self._found.keys if markets else ()):
            if key in markets:
                shown = contract.encode(self._found.market_object(place))
                self._made.updates.append(NewMarketObject(markets[key], shown))

    def _read(self, markets: Mapping[Any, Market]) -> None:
        task, made = self._task, self._made
        by_id = {market.id: market for market in markets.values()}
        for within in few_or_all([*markets], len(self._found.keys), task.within):
            wanted = frozenset(within.ids) if isinstance(within, Chosen) else markets
            rows, quarantined = self._reader.details(self._found, wanted, within), made.quarantine.total()
            for of_market in rows:
                read = detail.from_rows(of_market, task.config, made.quarantine, self._rows)
                remarks = [*notices.of_detail(read, task.latest)]
                has_findings = bool(remarks) or made.quarantine.total() > quarantined
                quarantined = made.quarantine.total()
                made.remarks += remarks
                market = by_id[read.market.id]
                made.details.append(self._detail(market, read, has_findings=has_findings))
                if self._collector:
                    self._collector.finish(market)

    def _detail(self, market: Market, read: Detail, *, has_findings: bool) -> ReadDetail:
        body = read.body()
        digest = manifest.digest(keys.detail(market.id), body)
        sent = None if digest == self._task.in_place.get(market.id) else body
        made = None if has_findings else last_details.made_of(market, len(body))
        is_audited = market.id in self._audited
        trades = self._rows.trades()
        return ReadDetail(
            market.id, market.slug, sent, digest, len(body), made, read.is_thinned, is_audited, has_findings, trades
        )


class _RowsOfMarket:
    """Takes the rows of one market after the other: for the files of histories, and to count its trades."""

    def __init__(self, task: Task, collector: "Collector | None") -> None:
        self._since, self._limit = task.since, 2 * task.config.detail.recent_fills
        self._of_histories = collector.fills if collector and task.config.has_fills else ignored
        self._counter = TradeCounter(self._since, self._limit)
        self.points: CollectRows = collector.points if collector else ignored
        self.fills: CollectRows = self._counted if self._since else self._of_histories

    def _counted(self, rows: Iterable[Any]) -> None:
        self._counter.add(rows)
        self._of_histories(rows)

    def trades(self) -> Trades:
        """What was counted since the last call: of one market."""
        trades = self._counter.trades()
        self._counter = TradeCounter(self._since, self._limit)
        return trades
