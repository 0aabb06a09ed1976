"""One build, stage by stage: read, guard, render, move into place, report."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Final

from generator import __version__, garbage
from generator.api import keys, times
from generator.api.downloads import ChangesHead
from generator.builder import changes, collecting, disk_space, executors, guards, last_details, notices
from generator.builder.collecting import Collected
from generator.builder.guards import BuildOverrides
from generator.builder.inspection import pages as inspection
from generator.builder.inspection.downloads import Downloads
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.last_details import EVERY_DETAIL, LastDetails, Sample
from generator.builder.part_staging import DetailCounts, PartWork, StagedPart
from generator.builder.report import MarketChanges, Report
from generator.builder.report_file import DownloadCounts, SearchCounts
from generator.config import demo
from generator.config.settings import Config
from generator.cost import estimate, prices
from generator.cost.estimate import Basis, Cost, Terms
from generator.cost.sizes import Site
from generator.downloads import parquet
from generator.edge import deployment
from generator.errors import FalseVersionsError
from generator.filesystem import WriteAhead
from generator.findings import Finding, in_order
from generator.markets import detail
from generator.markets.quarantine import Quarantine
from generator.progress import Progress, Stopwatch
from generator.site import documents, worker_pool
from generator.site.catalog import Catalog
from generator.site.make import Details, Made, Maker, Outline
from generator.source.address import display_url, shape
from generator.source.reader import Reader, open_reader
from generator.source.survey import Survey
from generator.tree import blocklist, families, files, manifest, sessions, staging
from generator.tree.folder import Output, locked
from generator.tree.manifest import Manifest
from generator.tree.staging import Placed, Rendered

#: Markets with a false version that a report names.
_MOST_FALSE: Final = 100


@dataclass(frozen=True)
class Clock:
    """The instant to build for, an aware time; `is_set` when the operator chose it."""

    as_of: datetime
    is_set: bool


def build(config: Config, clock: Clock, *, overrides: BuildOverrides, progress: Progress) -> Report:
    """Bring `output/` to the state of the database; a refused build leaves it unchanged."""
    with locked(config.output) as folder:
        return build_into(folder, config, clock, overrides=overrides, progress=progress)


def build_into(
    folder: Output, config: Config, clock: Clock, *, overrides: BuildOverrides, progress: Progress
) -> Report:
    """Build in a folder that is locked already."""
    with garbage.uncollected():
        # Only versions and clusters need digests of details: otherwise every detail is compared with its file.
        is_light = not folder.has(files.FINGERPRINTS) and config.cluster is None
        previous = folder.manifest(is_light=is_light)
        run = _Run(config, clock, folder, previous, blocklist.load(folder).ids(), overrides, progress)
        try:
            return _attempt(run)
        except FalseVersionsError as found:
            folder.start_again()
            return _attempt(run.distrusting(found.markets))


def _attempt(run: "_Run") -> Report:
    """Build, or raise FalseVersionsError before anything has moved into place."""
    config, stopwatch = run.config, Stopwatch()
    terms = Terms(config.schedule, config.cursor.lifetime, prices.load(config))
    if config.has_parquet:
        parquet.require()
    with open_reader(config, run.quarantine) as reader:
        is_demo = reader.is_demo()
        if not run.overrides.demo:
            demo.refuse(config, is_marked=is_demo)
        collected = run.collect(reader, stopwatch)
    found = collected.catalog
    catalog = found.without(run.blocked)
    run.guard(catalog)
    run.remarks.extend(notices.of(catalog, config))
    outline, made = run.make(catalog, collected, stopwatch, is_demo=config.source.is_default or is_demo)
    rendered, files = made.rendered, made.downloads
    with stopwatch.stage("render"):
        excerpts = run.excerpts(catalog, rendered)
    with stopwatch.stage("place"):
        placed = run.place(rendered)
        run.put_edge()
    if files.lost:
        run.remarks.append(notices.new_session(files.lost))
    counts = DownloadCounts.of(files.dump, files.feed) if files.dump else None
    report = run.report(found, catalog, rendered, placed)
    report.search = SearchCounts.of(made.index) if made.index else None
    report.downloads, report.step_lines = run.downloads(counts, files.step_lines)
    report.cost = run.estimate(changes.site_of(outline.lists, rendered, counts), rendered, terms)
    report.stages = stopwatch.spans
    run.save_report(report)
    run.put_inspection(excerpts)
    return report


@dataclass(frozen=True)
class _Run:
    """The stages of one build. `previous` is the manifest it found, `blocked` the ids of blocked markets.

    `suspects` are markets (ids) whose versions turned out to be false, so that everything is read and compared.
    """

    config: Config
    clock: Clock
    folder: Output
    previous: Manifest | None
    blocked: frozenset[str]
    overrides: BuildOverrides
    progress: Progress
    quarantine: Quarantine = field(default_factory=Quarantine)
    remarks: list[Finding] = field(default_factory=list)
    details: DetailCounts = field(default_factory=DetailCounts)
    suspects: tuple[str, ...] = ()

    def distrusting(self, markets: Iterable[str]) -> "_Run":
        """Build again from the beginning, comparing everything, and report these markets (ids) and all like them."""
        suspects = tuple(markets)
        return replace(self, suspects=suspects, quarantine=Quarantine(), remarks=[], details=DetailCounts())

    def last_details(self) -> LastDetails:
        """What this build may keep of the last one; nothing in a full build."""
        shape = last_details.shape_of(self.config)
        if self.overrides.full:
            return LastDetails(self.folder, shape)
        return LastDetails.load(self.folder, self.previous, shape, times.instant(self.clock.as_of))

    def collect(self, reader: Reader, stopwatch: Stopwatch) -> Collected:
        """Read, render and stage all parts: every market that the database shows; blocked ones get no detail."""
        with stopwatch.stage("read"):
            survey = self._survey(reader)
        with stopwatch.stage("render"), self.folder.written_ahead() as ahead:
            last = self.last_details()
            parts = executors.staged(self._work(survey, last), reader, self.progress)
            found = collecting.collect(self._watched(parts, ahead), survey, last, times.instant(self.clock.as_of))
        if found.false_versions and not self.suspects:
            raise FalseVersionsError(found.false_versions)
        false = islice(dict.fromkeys((*self.suspects, *found.false_versions)), _MOST_FALSE)
        self.quarantine.add(found.quarantine)
        self.remarks.extend([*found.remarks, *map(notices.false_version, false)])
        self.details.add(found.counts)
        return found

    def _survey(self, reader: Reader) -> Survey:
        """What must be known before parts are read. Raises SourceError for a bad schema, OutputError without room."""
        reader.require_schema()
        survey = reader.survey()
        disk_space.require_details(self.config, survey, self.previous, self.folder.path(""))
        return survey

    def _work(self, survey: Survey, last: LastDetails) -> PartWork:
        latest = notices.latest_time(times.instant(self.clock.as_of))
        sample = EVERY_DETAIL if self.suspects else Sample.chosen(self.config.source.audit)
        return PartWork(self.config, self.folder, survey, last, sample, self.blocked, self.clock.as_of, latest)

    def _watched(self, parts: Iterable[StagedPart], ahead: WriteAhead) -> Iterator[StagedPart]:
        for part in parts:
            self.progress.advance()
            if part.staged.changed:
                ahead.begin()
            yield part

    def make(
        self,
        catalog: Catalog,
        collected: Collected,
        stopwatch: Stopwatch,
        *,
        is_demo: bool,
    ) -> tuple[Outline, Made]:
        """Stage everything but the details, which were `collected`. Raises OutputError without room."""
        config, folder, staged = self.config, self.folder, collected.staged
        with stopwatch.stage("render"):
            outline = Outline.of(catalog, config)
            plan = disk_space.Plan(config, catalog, outline.lists, outline.categories, self.previous, staged)
            plan.require(folder.path(""))
        base = Manifest(
            complete=False, as_of=catalog.as_of, is_clock_set=self.clock.is_set, is_demo=is_demo, version=__version__,
            variant=config.variant, layout=config.layout, settings=shape(config), current={}, retired=(), objects={},
            markets={},
        )  # fmt: skip
        details = Details(
            staged,
            [*filter(None, map(keys.market_id, staged.changed))],
            lambda market_id: detail.market_object(folder.newest_body(keys.detail(market_id))),
            collected.fingerprints,
        )
        maker = Maker(folder, self.previous, config, self.progress, stopwatch, worker_pool.available())
        return outline, maker.make(outline, details, documents.fixed(config), base)

    def excerpts(self, catalog: Catalog, rendered: Rendered) -> Excerpts:
        """Excerpts for the inspection page, of details as they are staged or in place."""
        excerpts = Excerpts(catalog)
        for market_id in excerpts.wanted():
            key = keys.detail(market_id)
            body = self.folder.newest(key)
            if body is not None and manifest.digest(key, body) == rendered.staged.objects.get(key):
                excerpts.keep(market_id, body)
        return excerpts

    def guard(self, catalog: Catalog) -> None:
        """Refuse a state that looks like an accident, before anything is written."""
        limits, overrides = self.config.guards, self.overrides
        if not overrides.invalid:
            guards.refuse_invalid(catalog, self.quarantine, self.blocked, limits.max_invalid)
        if not overrides.shrink:
            guards.refuse_shrink(catalog, self.previous, self.blocked, limits.max_shrink)

    def place(self, rendered: Rendered) -> Placed:
        """Move everything staged into place; a build killed from here on leaves work that the next one finishes."""
        lifetime = self.config.cursor.lifetime
        placed = staging.place(self.folder, self.previous, rendered, lifetime)
        if not self.overrides.purge:
            return placed
        return replace(placed, manifest=sessions.purge(self.folder, placed.manifest, lifetime))

    def downloads(self, counts: DownloadCounts | None, step_lines: int) -> tuple[DownloadCounts | None, int]:
        """What to report of the downloads, and the lines of the step that was made: none is left after a purge."""
        feed = ChangesHead.found_by(self.folder.read) if self.overrides.purge else None
        return (counts.followed_by(feed), 0) if counts and feed else (counts, step_lines)

    def put_edge(self) -> None:
        """Update the CDN's files. They depend on settings alone, so they fit the old objects and the new ones."""
        rendered = {file.name: file.text.encode() for file in deployment.render(self.config)}
        changed = [name for name, body in rendered.items() if self.folder.put(name, body)]
        for name in changed:
            self.folder.move(name)
        for name in set(deployment.NAMES) - rendered.keys():
            self.folder.discard_key(name)

    def report(self, found: Catalog, catalog: Catalog, rendered: Rendered, placed: Placed) -> Report:
        """What was built, apart from its cost and duration."""
        built = placed.manifest
        written, written_bytes = rendered.written()
        return Report(
            as_of=catalog.as_of,
            source=display_url(self.config),
            layout=self.config.layout,
            built=len(catalog.markets),
            hidden=catalog.hidden,
            taken_down=sorted(self.blocked & found.ids()),
            lists=built.lists(),
            retained=len(built.retired),
            quarantine=self.quarantine,
            written=written,
            written_bytes=written_bytes,
            unchanged=len(built.objects) + families.total(built.current_generations()) - written,
            deleted=placed.deleted,
            remarks=in_order(self.remarks),
            details=self.details,
            markets=self._market_changes(rendered),
            new_lists=[staged.name for staged in rendered.lists() if staged.new],
        )

    def _market_changes(self, rendered: Rendered) -> MarketChanges:
        now = rendered.memberships.keys()
        before = self.previous.markets.keys() if self.previous else set[str]()
        changed = {*rendered.staged.changed} if before else set[str]()
        rewritten = {market_id for market_id in now if keys.detail(market_id) in changed}
        since = self.previous.as_of if self.previous else ""
        return MarketChanges.between(before, now, rewritten, since).after(self.folder.read(files.REPORT), now)

    def estimate(self, site: Site, rendered: Rendered, terms: Terms) -> Cost:
        """The cost of publishing such builds, from what this one and earlier ones changed."""
        known = estimate.of_report(self.folder.read(files.REPORT))
        basis = known.basis if known else Basis()
        change = changes.made(self.previous, rendered)
        if change:
            basis = estimate.learned(basis, site, change, terms.schedule)
        return estimate.cost(site, basis, terms)

    def save_report(self, report: Report) -> None:
        """Save the report, unless the saved one says the same."""
        if report.says_more_than(self.folder.read(files.REPORT)):
            self.folder.save(files.REPORT, report.encoded())

    def put_inspection(self, excerpts: Excerpts) -> None:
        """Update the pages for people. They show the saved report, whichever build wrote it."""
        report = json.loads(self.folder.read(files.REPORT) or b"{}")
        downloads = Downloads.read(self.folder.read)
        for name, body in inspection.render(self.config, report, excerpts, downloads):
            if self.folder.put(name, body):
                self.folder.move(name)
