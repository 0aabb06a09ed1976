"""Stages the details of one range of markets: keeps those that did not change, and reads the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from generator.api import keys
from generator.builder import last_details, notices
from generator.builder.inspection.excerpts import Excerpt, Excerpts
from generator.builder.last_details import Fate, LastDetails, Sample
from generator.builder.notices import Remark
from generator.config.settings import Config
from generator.markets import detail
from generator.markets.catalog import Market
from generator.markets.quarantine import Quarantine
from generator.source.queries import Range, Within, few_or_all
from generator.source.reader import Reader
from generator.tree.artifact import Artifact
from generator.tree.fingerprints import Made
from generator.tree.folder import Output
from generator.tree.staging import Staged

#: Returns the reader to use; called once there is something to read.
OpenReader: TypeAlias = Callable[[], Reader]


@dataclass
class DetailCounts:
    """How many details were read, how many got a new market object only, how many stayed as they are.

    Of those read, `audited` need not have been: they were compared with what was in place.
    """

    read: int = 0
    updated: int = 0
    kept: int = 0
    audited: int = 0

    def add(self, other: "DetailCounts") -> None:
        """Add the counts of another range."""
        self.read += other.read
        self.updated += other.updated
        self.kept += other.kept
        self.audited += other.audited


@dataclass(frozen=True)
class Reuse:
    """The details that a build may keep, the sample of them that it audits, and the counts of what became of all."""

    last: LastDetails
    sample: Sample
    counts: DetailCounts


@dataclass
class StagedRange:
    """The staged details of a range of markets, findings about rows, and excerpts for the inspection page.

    `made` says what each of them is made of, if that is known. `kept` names the markets whose details stay as they are:
    what is known of these need not come from a worker. `false_versions` names those whose details changed although
    their versions did not.
    """

    within: Range
    staged: Staged = field(default_factory=Staged)
    quarantine: Quarantine = field(default_factory=Quarantine)
    remarks: list[Remark] = field(default_factory=list)
    excerpts: list[Excerpt] = field(default_factory=list)
    made: dict[str, Made] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    counts: DetailCounts = field(default_factory=DetailCounts)
    false_versions: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Stager:
    """Stages ranges of one build. `latest` is the time after which a time counts as in the future."""

    config: Config
    folder: Output
    excerpts: Excerpts
    reuse: Reuse
    latest: str

    def stage(self, within: Range, markets: Mapping[str, Market], open_reader: OpenReader) -> StagedRange:
        """Stage the markets of a range, given by id as the database spells it."""
        return _Work(self, within, markets, open_reader).done()


class _Work:
    """The work on one range. `_unread` are the markets to read, `_expected` what some of them must show besides."""

    def __init__(self, stager: Stager, within: Range, markets: Mapping[str, Market], open_reader: OpenReader) -> None:
        self._stager = stager
        self._last = stager.reuse.last
        self._within = within
        self._markets = markets
        self._open_reader = open_reader
        self._unread: dict[str, Market] = {}
        self._expected: dict[str, int] = {}
        self._made = StagedRange(within)

    def done(self) -> StagedRange:
        """Do the work."""
        fates: dict[Fate, list[Market]] = {fate: [] for fate in Fate}
        for market in self._markets.values():
            fates[self._last.fate(market)].append(market)
        self._add_unread(fates[Fate.READ])
        self._audit([*fates[Fate.KEEP], *fates[Fate.UPDATE]])
        self._keep(fates[Fate.KEEP])
        self._update(fates[Fate.UPDATE])
        self._read()
        return self._made

    def _add_unread(self, markets: Iterable[Market]) -> None:
        self._unread |= {market.id: market for market in markets}

    def _audit(self, unchanged: Iterable[Market]) -> None:
        """Read a sample of the details that should not have changed, and remember what they should show."""
        for market in unchanged:
            if not self._stager.reuse.sample.has(market.id):
                continue
            self._add_unread([market])
            body = self._last.body(market.id)
            if body is not None:
                self._expected[market.id] = hash(detail.rest(body))

    def _keep(self, markets: Iterable[Market]) -> None:
        for market in markets:
            if market.id in self._unread:
                continue
            if self._stager.excerpts.wants(market.id):
                body = self._last.body(market.id)
                if body is None:
                    self._add_unread([market])
                    continue
                self._made.excerpts += self._stager.excerpts.taken(market.id, body)
            self._made.kept.append(market.id)
            self._made.counts.kept += 1

    def _update(self, markets: Iterable[Market]) -> None:
        """Replace the market objects of these details, and keep everything else in them."""
        wanted = {market.id: market for market in markets if market.id not in self._unread}
        for within in self._selections(wanted):
            for shown in self._open_reader().market_objects(wanted, within):
                before = self._last.body(shown.id)
                if before is None:
                    self._add_unread([wanted[shown.id]])
                    continue
                body = detail.with_market(before, shown)
                self._stage(wanted[shown.id], body)
                self._made.counts.updated += 1
                self._made.excerpts += self._stager.excerpts.taken(shown.id, body)

    def _read(self) -> None:
        quarantine = Quarantine()
        for within in self._selections(self._unread):
            for rows in self._open_reader().details(self._unread, within):
                read = detail.from_rows(rows, self._stager.config, quarantine)
                remarks = [*notices.of_detail(read, self._stager.latest)]
                has_findings = bool(remarks) or quarantine.total() > 0
                if has_findings:
                    self._made.quarantine.add(quarantine)
                    self._made.remarks += remarks
                    quarantine = Quarantine()
                body = read.body()
                self._made.excerpts += self._stager.excerpts.taken(read.market.id, body)
                self._stage(self._unread[read.market.id], body, is_known=not has_findings)
                self._made.counts.read += 1
                self._compare(read.market.id, body, has_findings=has_findings)

    def _compare(self, market_id: str, body: bytes, *, has_findings: bool) -> None:
        if market_id in self._expected:
            self._made.counts.audited += 1
            # A market with findings would not have been kept.
            if has_findings or hash(detail.rest(body)) != self._expected[market_id]:
                self._made.false_versions.append(market_id)

    def _stage(self, market: Market, body: bytes, *, is_known: bool = True) -> None:
        for key in keys.details(market.id, market.slug):
            self._made.staged.put(self._stager.folder, Artifact(key, body))
        if is_known:
            self._remember(market, len(body))

    def _remember(self, market: Market, size: int) -> None:
        if made := last_details.made_of(market, size):
            self._made.made[market.id] = made

    def _selections(self, wanted: Mapping[str, Market]) -> Iterator[Within]:
        """How to read these markets: one by one if they are few, otherwise the whole range."""
        spelled = [spelled for spelled, market in self._markets.items() if market.id in wanted]
        yield from few_or_all(spelled, len(self._markets), self._within)
