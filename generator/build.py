"""One build: read, put everything new aside, move it into place. The stages follow one another as written here."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from generator import __version__, check, detail, edge, inspector, keys, manifest, output, render, source, workers
from generator.catalog import Catalog
from generator.config import Config
from generator.errors import ConfigError, GuardError, SourceError
from generator.manifest import Current, Manifest, States
from generator.output import Output
from generator.pages import Generation, ItemList, page_count
from generator.readings import Readings
from generator.render import Artifact
from generator.report import Report

#: What this version builds of what the configuration can ask for.
VARIANTS: Final = ("core",)
LAYOUTS: Final = ("pages",)


class Progress(Protocol):
    """Told how many steps there are, and of each one that is done."""

    def start(self, steps: int) -> None:
        """Expect so many steps."""

    def advance(self) -> None:
        """Count one as done."""


@dataclass(frozen=True)
class Allowed:
    """The guards the person at the keyboard has lifted for this run."""

    shrink: bool = False
    invalid: bool = False


@dataclass
class Staged:
    """What was put aside: digests of all mutable objects, and the keys of the new ones in publication order."""

    objects: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    bytes: int = 0

    def put(self, folder: Output, artifact: Artifact) -> None:
        """Put an object aside unless it is in place already."""
        self.objects[artifact.key] = manifest.digest(artifact.key, artifact.body)
        if folder.put(artifact.key, artifact.body):
            self.changed.append(artifact.key)
            self.bytes += len(artifact.body)

    def add(self, other: "Staged") -> None:
        """Put what `other` holds behind what is here."""
        self.objects |= other.objects
        self.changed += other.changed
        self.bytes += other.bytes


@dataclass(frozen=True)
class StagedList:
    """What a worker put aside for one list; `is_new` tells whether its generation is among it."""

    name: str
    current: Current
    is_new: bool
    first_pages: Staged


@dataclass(frozen=True)
class Rendered:
    """Everything a build put aside, and the record that will describe it."""

    lists: list[StagedList]
    staged: Staged
    record: Manifest
    states: States
    readings: Readings

    def new_lists(self) -> list[StagedList]:
        """The lists whose generation was put aside."""
        return [one for one in self.lists if one.is_new]


def build(config: Config, as_of: datetime, *, allowed: Allowed, progress: Progress) -> Report:
    """Bring `output/` to the state of the database at `as_of`, an aware time; every refusal leaves it as it was."""
    _refuse_unbuildable(config)
    report = Report(source=source.describe(config))
    with output.locked(config.output) as folder:
        run = _Run(config, folder, folder.manifest(), report, progress)
        with source.reading(config, report.quarantine) as reading:
            with report.stage("read"):
                catalog = run.read(reading, as_of)
            run.guard(catalog, allowed)
            with report.stage("render"):
                rendered = run.render(catalog, reading)
        with report.stage("publish"):
            run.publish(rendered)
            run.put_edge()
        if report.says_more_than(folder.read(output.REPORT)):
            folder.save(output.REPORT, report.encoded())
        run.put_inspection(rendered.readings)
    return report


def _refuse_unbuildable(config: Config) -> None:
    if config.variant not in VARIANTS:
        raise ConfigError(f"variant: {config.variant} is not in this version; set it to {' or '.join(VARIANTS)}")
    if config.layout not in LAYOUTS:
        raise ConfigError(f"layout: {config.layout} is not in this version; set it to {' or '.join(LAYOUTS)}")


@dataclass(frozen=True)
class _Run:
    """The stages of one build; `previous` is what the folder's manifest said when it began."""

    config: Config
    folder: Output
    previous: Manifest | None
    report: Report
    progress: Progress

    def read(self, reading: source.Reading, as_of: datetime) -> Catalog:
        findings = check.findings(reading.columns, reading.refusal)
        if findings:
            raise SourceError("\n  ".join(["the database lacks what a build reads:", *findings]))
        catalog = reading.catalog(as_of)
        self.report.as_of, self.report.hidden = catalog.as_of, catalog.hidden
        self.report.published = len(catalog.markets)
        return catalog

    def guard(self, catalog: Catalog, allowed: Allowed) -> None:
        """Refuse a state that looks like an accident, before anything is written."""
        guards = self.config.guards
        bad, good = self.report.quarantine.total("markets"), len(catalog.markets)
        if not allowed.invalid and bad > guards.max_invalid * (bad + good):
            reasons = "".join(f"\n  {row.key}: {row.reason}" for row in self.report.quarantine.named("markets")[:10])
            raise GuardError(
                f"{bad} of {bad + good} markets break the contract, more than guards.max_invalid "
                f"({guards.max_invalid:g}) allows; nothing was replaced. mend them, or use --allow-invalid:{reasons}"
            )
        before = self.previous.markets.keys() if self.previous else set[str]()
        lost = len(before - {market.item.id for market in catalog.markets})
        if not allowed.shrink and lost > guards.max_shrink * len(before):
            raise GuardError(
                f"{lost} of {len(before)} markets would disappear, more than guards.max_shrink "
                f"({guards.max_shrink:g}) allows; nothing was replaced. is the database whole? then use --allow-shrink"
            )

    def render(self, catalog: Catalog, reading: source.Reading) -> Rendered:
        """Put everything aside that is not in place yet: lists in forked workers, details meanwhile here."""
        lists = render.lists(catalog)
        self.progress.start(len(lists) + len(catalog.markets))
        known = self.previous.generations() if self.previous else {}
        staged, readings = Staged(), Readings(catalog)
        stage_list = partial(_stage_list, self.folder, known)
        with workers.Crew(stage_list, lists, lambda one: len(one.items), workers.available()) as crew:
            for shown in reading.details(catalog):
                made = detail.read(shown, self.config, self.report.quarantine)
                staged.put(self.folder, render.market_detail(made))
                readings.add(made)
                self.progress.advance()
            staged_lists = []
            for result in crew.results():
                staged_lists.append(result)
                self.progress.advance()
        staged_lists.sort(key=lambda one: one.name)
        for artifact in render.documents(catalog, self.config):
            staged.put(self.folder, artifact)
        for one in staged_lists:
            staged.add(one.first_pages)
        counts = {one.name: one.current.count for one in staged_lists}
        staged.put(self.folder, render.build_record(catalog, self.config, counts))
        record = self._record(catalog, staged_lists, staged)
        return Rendered(staged_lists, staged, record, _states(catalog), readings)

    def _record(self, catalog: Catalog, lists: list[StagedList], staged: Staged) -> Manifest:
        return Manifest(
            complete=True,
            as_of=catalog.as_of,
            version=__version__,
            variant=self.config.variant,
            layout=self.config.layout,
            lists={one.name: one.current for one in lists},
            retired=(),
            objects=dict(sorted(staged.objects.items())),
            markets={},
        )

    def publish(self, rendered: Rendered) -> None:
        """Move what was put aside into place; from here on a kill leaves work that the next build finishes."""
        previous = self.previous or rendered.record.emptied()
        self._compare(previous, rendered)
        final = manifest.settle(previous, rendered.record, rendered.states, self.config.cursor.lifetime)
        if final != previous or rendered.staged.changed or rendered.new_lists():
            self._move(previous, rendered)
            self.folder.save(output.MANIFEST, final.encoded())
        for path in list(self.folder.unknown(final)):
            self.folder.discard(path)
            self.report.deleted += 1
        self._count(final, rendered)

    def _compare(self, previous: Manifest, rendered: Rendered) -> None:
        written = {*rendered.staged.changed}
        now = rendered.states.keys()
        rewritten = {market_id for market_id in now if keys.detail(market_id) in written}
        self.report.compare(self.previous.as_of if self.previous else "", previous.markets.keys(), now, rewritten)
        self.report.remember(self.folder.read(output.REPORT), now)

    def _move(self, previous: Manifest, rendered: Rendered) -> None:
        self.folder.sync()
        if self.previous is None:
            # From now on what lies under v1/ is known to be ours, even if this very first build is killed.
            self.folder.save(output.MANIFEST, previous.encoded())
        for market_id in self.report.withdrawn:
            self.folder.discard_key(keys.detail(market_id))
        new = {one.name: one.current for one in rendered.new_lists()}
        for name, current in new.items():
            self.folder.move(keys.generation_prefix(name, current.generation))
        intent = manifest.intend(previous, new, rendered.states, rendered.record.as_of)
        self.folder.save(output.MANIFEST, intent.encoded())
        for key in rendered.staged.changed:
            self.folder.move(key)

    def _count(self, final: Manifest, rendered: Rendered) -> None:
        new = rendered.new_lists()
        self.report.lists, self.report.retained = final.lists, len(final.retired)
        self.report.new_lists = [one.name for one in new]
        self.report.written = len(rendered.staged.changed) + sum(page_count(one.current.count) for one in new)
        self.report.written_bytes = rendered.staged.bytes + sum(one.current.bytes for one in new)
        pages = sum(page_count(one.count) for one in final.lists.values())
        self.report.unchanged = len(final.objects) + pages - self.report.written

    def put_edge(self) -> None:
        """Bring the CDN's side up to date. It depends on settings alone, so it leads to old objects and new ones."""
        rendered = {file.name: file.text.encode() for file in edge.render(self.config)}
        changed = [name for name, body in rendered.items() if self.folder.put(name, body)]
        for name in changed:
            self.folder.move(name)
        for name in set(edge.NAMES) - rendered.keys():
            self.folder.discard_key(name)

    def put_inspection(self, readings: Readings) -> None:
        """Bring the pages for people up to date. They tell what the report in the folder does, whoever wrote it."""
        report = json.loads(self.folder.read(output.REPORT) or b"{}")
        for name, body in inspector.render(self.config, report, readings):
            if self.folder.put(name, body):
                self.folder.move(name)


def _stage_list(folder: Output, known: dict[tuple[str, str], Current], items: ItemList) -> StagedList:
    """Put one list aside, its first pages included. Runs in a worker."""
    generation = Generation(items)
    current = known.get((generation.list_name, generation.name))
    # Somebody may have deleted what the manifest knows.
    is_new = current is None or not folder.has_generation(generation)
    if current is None or is_new:
        written = folder.put_generation(generation)
        current = Current(generation=generation.name, count=generation.count, bytes=written)
    staged = Staged()
    for artifact in render.first_pages(generation):
        staged.put(folder, artifact)
    as_current = Current(generation=current.generation, count=current.count, bytes=current.bytes)
    return StagedList(generation.list_name, as_current, is_new, staged)


def _states(catalog: Catalog) -> States:
    return {market.item.id: () if market.fx else (market.item.status,) for market in catalog.markets}
