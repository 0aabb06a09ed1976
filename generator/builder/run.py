"""One build: read, put everything new aside, move it into place. The stages follow one another as written here."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import TypeAlias, TypeVar

from generator import __version__
from generator.api import keys
from generator.builder import artifacts, disk_space, guards, notices, worker_pool
from generator.builder.detail_workers import Details, StagedRange
from generator.builder.guards import BuildOverrides
from generator.builder.inspection import pages as inspection
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.report import Report
from generator.config.settings import Config, shaping
from generator.cost import estimate, prices
from generator.cost.estimate import Basis, Change, ListSize, Site, Terms
from generator.edge import deployment
from generator.markets.catalog import Catalog, Market
from generator.progress import Progress
from generator.source.connection import display_url
from generator.source.queries import Range
from generator.source.reader import Reader, open_reader
from generator.tree import blocklist, files, layouts, manifest, staging
from generator.tree.folder import Output, locked
from generator.tree.manifest import Manifest, Membership, Memberships
from generator.tree.pages import LIMITS, ItemList, page_count
from generator.tree.staging import Rendered, Staged, StagedList

Result = TypeVar("Result")
#: What a worker stages at a time.
Unit: TypeAlias = ItemList | Range


@dataclass(frozen=True)
class Clock:
    """The instant to build for, an aware time; `is_set` when somebody set it by hand."""

    as_of: datetime
    is_set: bool


def build(config: Config, clock: Clock, *, overrides: BuildOverrides, progress: Progress) -> Report:
    """Bring `output/` to the state of the database; every refusal leaves it as it was."""
    with locked(config.output) as folder:
        return build_into(folder, config, clock, overrides=overrides, progress=progress)


def build_into(
    folder: Output, config: Config, clock: Clock, *, overrides: BuildOverrides, progress: Progress
) -> Report:
    """Build in a folder that is held already."""
    report = Report(source=display_url(config), layout=config.layout)
    terms = Terms(config.schedule, config.cursor.lifetime, prices.load(config))
    run = _Run(config, clock, folder, folder.manifest(), blocklist.load(folder).ids(), report, progress)
    with open_reader(config, report.quarantine) as reader:
        with report.stage("read"):
            catalog = run.read(reader)
        run.guard(catalog, overrides)
        with report.stage("render"):
            excerpts = Excerpts(catalog)
            rendered = run.render(catalog, reader, excerpts)
    with report.stage("publish"):
        run.publish(rendered)
        run.put_edge()
    run.estimate(rendered, terms)
    if report.says_more_than(folder.read(files.REPORT)):
        folder.save(files.REPORT, report.encoded())
    run.put_inspection(excerpts)
    return report


def shape(config: Config) -> dict[str, str]:
    """The settings that shape what is published, and the database, by key: equal shapes give equal bytes."""
    return {**shaping(config), "source": display_url(config)}


@dataclass(frozen=True)
class _Run:
    """The stages of one build; `previous` is what the folder's manifest said when it began, `blocked` its takedowns."""

    config: Config
    clock: Clock
    folder: Output
    previous: Manifest | None
    blocked: frozenset[str]
    report: Report
    progress: Progress

    def read(self, reader: Reader) -> Catalog:
        reader.require_schema()
        found = reader.catalog(self.clock.as_of)
        catalog = found.without(self.blocked)
        self.report.as_of, self.report.hidden = catalog.as_of, catalog.hidden
        self.report.built = len(catalog.markets)
        self.report.taken_down = sorted(self.blocked & found.ids())
        self.report.remarks = list(notices.of(catalog, self.config))
        return catalog

    def guard(self, catalog: Catalog, overrides: BuildOverrides) -> None:
        """Refuse a state that looks like an accident, before anything is written."""
        limits = self.config.guards
        if not overrides.invalid:
            guards.refuse_invalid(catalog, self.report.quarantine, self.blocked, limits.max_invalid)
        if not overrides.shrink:
            guards.refuse_shrink(catalog, self.previous, self.blocked, limits.max_shrink)

    def render(self, catalog: Catalog, reader: Reader, excerpts: Excerpts) -> Rendered:
        """Put everything aside that is not in place yet: lists in forked workers, details meanwhile here."""
        categories = artifacts.offered(catalog, self.config)
        lists = artifacts.lists(catalog, categories)
        disk_space.require(self.folder.path(""), self.config, catalog, lists, self.previous)
        details = Details(self.config, self.folder, catalog, excerpts, reader)
        self.progress.start(len(lists) + details.count())
        staged_lists, ranges = self._stage(lists, details)
        staged = Staged()
        for part in ranges:
            staged.add(part.staged)
            self.report.quarantine.add(part.quarantine)
            excerpts.keep(part.excerpts)
        for artifact in artifacts.documents(catalog, self.config):
            staged.put(self.folder, artifact)
        for one in staged_lists:
            staged.add(one.first_pages)
        counts = {one.name: one.current.count for one in staged_lists}
        staged.put(self.folder, artifacts.build_json(catalog, self.config, counts, categories))
        self.report.site = _site(lists, staged_lists, staged)
        built = self._manifest(catalog, staged_lists, staged)
        return Rendered(staged_lists, staged, built, _memberships_by_market(catalog, categories))

    def _stage(self, lists: list[ItemList], details: Details) -> tuple[list[StagedList], list[StagedRange]]:
        """Put lists and details aside, in forked workers as far as possible."""
        known = self.previous.generations() if self.previous else {}
        staged_lists, ranges = list[StagedList](), list[StagedRange]()

        def stage(unit: Unit) -> StagedList | StagedRange | Range:
            if isinstance(unit, Range):
                return details.stage_apart(unit)
            return staging.stage_list(self.folder, self.config.layout, known, unit)

        units: list[Unit] = [*lists, *details.ranges()]
        pool = worker_pool.WorkerPool(stage, units, _work, worker_pool.available(), details.close)
        with pool, self.folder.written_ahead() as ahead:
            if not details.ranges():
                ranges += map(self._advanced, details.stage_rest(ranges))
            for result in map(self._advanced, pool.results()):
                if isinstance(result, StagedList):
                    staged_lists.append(result)
                    if result.first_pages.changed:
                        ahead.begin()
                elif isinstance(result, StagedRange):
                    ranges.append(result)
        ranges += details.stage_rest(ranges)
        staged_lists.sort(key=lambda one: one.name)
        return staged_lists, details.in_order(ranges)

    def _advanced(self, result: Result) -> Result:
        self.progress.advance()
        return result

    def _manifest(self, catalog: Catalog, lists: list[StagedList], staged: Staged) -> Manifest:
        return Manifest(
            complete=True,
            as_of=catalog.as_of,
            is_clock_set=self.clock.is_set,
            version=__version__,
            variant=self.config.variant,
            layout=self.config.layout,
            settings=shape(self.config),
            lists={one.name: one.current for one in lists},
            retired=(),
            objects=dict(sorted(staged.objects.items())),
            markets={},
            slugs={one.item.id: (one.item.slug,) for one in catalog.markets if one.item.slug is not None},
        )

    def publish(self, rendered: Rendered) -> None:
        """Move what was put aside into place; from here on a kill leaves work that the next build finishes."""
        placed = staging.place(self.folder, self.previous, rendered, self.config.cursor.lifetime)
        self.report.deleted = placed.deleted
        self._compare(rendered)
        self._count(placed.manifest, rendered)

    def _compare(self, rendered: Rendered) -> None:
        previous, now = self.previous, rendered.memberships.keys()
        before = previous.markets.keys() if previous else set[str]()
        written = {*rendered.staged.changed}
        rewritten = {market_id for market_id in now if keys.detail(market_id) in written}
        self.report.compare(previous.as_of if previous else "", before, now, rewritten)
        self.report.remember(self.folder.read(files.REPORT), now)

    def _count(self, final: Manifest, rendered: Rendered) -> None:
        new = rendered.new_generations()
        self.report.lists, self.report.retained = final.lists, len(final.retired)
        self.report.new_lists = [one.name for one in rendered.new_lists()]
        self.report.written = len(rendered.staged.changed) + sum(one.objects for one in new)
        self.report.written_bytes = rendered.staged.bytes + sum(one.bytes for one in new)
        self.report.unchanged = len(final.objects) + layouts.total(final.current()) - self.report.written

    def estimate(self, rendered: Rendered, terms: Terms) -> None:
        """Say what publishing such builds costs, from what this one changed and from what is known of earlier ones."""
        known = estimate.of_report(self.folder.read(files.REPORT))
        basis = known.basis if known else Basis()
        change = _change(self.previous, rendered)
        if change:
            basis = estimate.learned(basis, self.report.site, change, terms.schedule)
        self.report.cost = estimate.cost(self.report.site, basis, terms)

    def put_edge(self) -> None:
        """Bring the CDN's side up to date. It depends on settings alone, so it leads to old objects and new ones."""
        rendered = {file.name: file.text.encode() for file in deployment.render(self.config)}
        changed = [name for name, body in rendered.items() if self.folder.put(name, body)]
        for name in changed:
            self.folder.move(name)
        for name in set(deployment.NAMES) - rendered.keys():
            self.folder.discard_key(name)

    def put_inspection(self, excerpts: Excerpts) -> None:
        """Bring the pages for people up to date. They tell what the report in the folder does, whoever wrote it."""
        report = json.loads(self.folder.read(files.REPORT) or b"{}")
        for name, body in inspection.render(self.config, report, excerpts):
            if self.folder.put(name, body):
                self.folder.move(name)


def _work(unit: Unit) -> float:
    """What it costs, in no unit. Details go first: nobody knows whether a list will cost anything at all."""
    return inf if isinstance(unit, Range) else page_count(len(unit.items)) + len(LIMITS)


def _memberships_by_market(catalog: Catalog, offered: Collection[str]) -> Memberships:
    return {market.item.id: _shelves(market, offered) for market in catalog.markets}


def _shelves(market: Market, offered: Collection[str]) -> tuple[Membership, ...]:
    if market.fx:
        return ()
    return manifest.memberships_of(market.item.status, (one for one in market.categories if one in offered))


def _site(lists: Sequence[ItemList], staged_lists: Sequence[StagedList], staged: Staged) -> Site:
    sizes = tuple(ListSize(one.name, len(one.items), sum(map(len, one.items))) for one in lists)
    objects = sum(not keys.is_first_page(key) for key in staged.objects)
    return Site(sizes, objects, staged.size - sum(one.first_pages.size for one in staged_lists))


def _change(previous: Manifest | None, rendered: Rendered) -> Change | None:
    """What this build changed since the one before; None when that tells nothing of builds to come."""
    if previous is None or not previous.complete or not (rendered.staged.changed or rendered.new_lists()):
        return None
    minutes = manifest.minutes_between(previous.as_of, rendered.manifest.as_of)
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.changed)
    new = frozenset(one.name for one in rendered.new_lists())
    led = frozenset(one.name for one in rendered.lists if one.first_pages.changed)
    # An index is new with its list.
    chunks = {one.name: one.new.objects - 1 for one in rendered.new_lists() if one.new and one.current.chunks}
    return Change(new, led, objects, minutes, chunks) if minutes > 0 else None
