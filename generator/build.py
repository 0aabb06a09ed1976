"""One build: read, put everything new aside, move it into place. The stages follow one another as written here."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from generator import __version__, check, keys, manifest, output, render, source, workers
from generator.catalog import Catalog
from generator.config import Config
from generator.errors import ConfigError, GuardError, SourceError
from generator.manifest import Current, Manifest, States
from generator.output import Output
from generator.pages import Generation, ItemList, page_count
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


def build(config: Config, as_of: datetime, *, allowed: Allowed, progress: Progress) -> Report:
    """Bring `output/` to the state of the database at `as_of`, an aware time; every refusal leaves it as it was."""
    _refuse_unbuildable(config)
    report = Report(source=source.describe(config))
    with output.locked(config.output) as folder:
        previous = folder.manifest()
        with source.reading(config, report.quarantine) as reading:
            with report.stage("read"):
                _require(check.findings(reading.columns))
                catalog = reading.catalog(as_of)
                _guard(catalog, previous, config, report, allowed)
            with report.stage("render"):
                rendered = _render(catalog, reading, folder, previous, config, report, progress)
        with report.stage("publish"):
            _publish(folder, previous or rendered.record.emptied(), rendered, config, report)
        if report.says_more_than(folder.read(output.REPORT)):
            folder.save(output.REPORT, report.encoded())
    return report


def _refuse_unbuildable(config: Config) -> None:
    if config.variant not in VARIANTS:
        raise ConfigError(f"variant: {config.variant} is not in this version; set it to {' or '.join(VARIANTS)}")
    if config.layout not in LAYOUTS:
        raise ConfigError(f"layout: {config.layout} is not in this version; set it to {' or '.join(LAYOUTS)}")


def _require(findings: list[str]) -> None:
    if findings:
        raise SourceError("the database cannot be read:\n  " + "\n  ".join(findings))


def _guard(catalog: Catalog, previous: Manifest | None, config: Config, report: Report, allowed: Allowed) -> None:
    bad, good = report.quarantine.total("markets"), len(catalog.markets)
    report.published, report.hidden, report.as_of = good, catalog.hidden, catalog.as_of
    if not allowed.invalid and bad > config.guards.max_invalid * (bad + good):
        reasons = "".join(f"\n  {row.key}: {row.reason}" for row, _ in list(report.quarantine)[:10])
        raise GuardError(
            f"{bad} of {bad + good} markets break the contract, more than guards.max_invalid "
            f"({config.guards.max_invalid:g}) allows; nothing was replaced. mend them, or use --allow-invalid:{reasons}"
        )
    before = set(previous.markets) if previous else set()
    lost = len(before - {market.item.id for market in catalog.markets})
    if not allowed.shrink and lost > config.guards.max_shrink * len(before):
        raise GuardError(
            f"{lost} of {len(before)} markets would disappear, more than guards.max_shrink "
            f"({config.guards.max_shrink:g}) allows; nothing was replaced. is the database whole? if so, --allow-shrink"
        )


def _render(
    catalog: Catalog,
    reading: source.Reading,
    folder: Output,
    previous: Manifest | None,
    config: Config,
    report: Report,
    progress: Progress,
) -> Rendered:
    lists = render.lists(catalog)
    progress.start(len(lists) + len(catalog.markets))
    known = previous.generations() if previous else {}
    staged = Staged()
    stage_list = partial(_stage_list, folder, known)
    with workers.Crew(stage_list, lists, lambda one: len(one.items), workers.available()) as crew:
        for shown in reading.details(catalog):
            staged.put(folder, render.market_detail(shown, config, report.quarantine))
            progress.advance()
        staged_lists = []
        for result in crew.results():
            staged_lists.append(result)
            progress.advance()
    staged_lists.sort(key=lambda one: one.name)
    for artifact in render.documents(catalog, config):
        staged.put(folder, artifact)
    for one in staged_lists:
        staged.add(one.first_pages)
    staged.put(folder, render.build_record(catalog, config, {one.name: one.current.count for one in staged_lists}))
    return Rendered(staged_lists, staged, _record(catalog, config, staged_lists, staged), _states(catalog))


def _stage_list(folder: Output, known: dict[tuple[str, str], Current], items: ItemList) -> StagedList:
    """Put one list aside, its first pages included. Runs in a worker."""
    generation = Generation(items)
    current = known.get((generation.list_name, generation.name))
    is_new = current is None
    if current is None:
        written = folder.put_generation(generation)
        current = Current(generation=generation.name, count=generation.count, bytes=written)
    staged = Staged()
    for artifact in render.first_pages(generation):
        staged.put(folder, artifact)
    as_current = Current(generation=current.generation, count=current.count, bytes=current.bytes)
    return StagedList(generation.list_name, as_current, is_new, staged)


def _record(catalog: Catalog, config: Config, lists: list[StagedList], staged: Staged) -> Manifest:
    return Manifest(
        complete=True,
        as_of=catalog.as_of,
        version=__version__,
        variant=config.variant,
        layout=config.layout,
        lists={one.name: one.current for one in lists},
        retired=(),
        objects=dict(sorted(staged.objects.items())),
        markets={},
    )


def _states(catalog: Catalog) -> States:
    return {market.item.id: () if market.fx else (market.item.status,) for market in catalog.markets}


def _publish(folder: Output, previous: Manifest, rendered: Rendered, config: Config, report: Report) -> None:
    """Move what was put aside into place; from here on a kill leaves work that the next build finishes."""
    final = manifest.settle(previous, rendered.record, rendered.states, config.cursor.lifetime)
    new = [one for one in rendered.lists if one.is_new]
    report.withdrawn = sorted(previous.markets.keys() - rendered.states.keys())
    if final != previous:
        _move(folder, previous, rendered, new, report)
        folder.save(output.MANIFEST, final.encoded())
    for path in list(folder.unknown(final)):
        folder.discard(path)
        report.deleted += 1
    pages = sum(page_count(one.current.count) for one in new)
    report.written = len(rendered.staged.changed) + pages
    report.written_bytes = rendered.staged.bytes + sum(one.current.bytes for one in new)
    report.unchanged = (
        len(rendered.staged.objects) + sum(page_count(one.current.count) for one in rendered.lists) - report.written
    )
    report.lists, report.retained = final.lists, len(final.retired)
    report.new_lists = [one.name for one in new]


def _move(folder: Output, previous: Manifest, rendered: Rendered, new: list[StagedList], report: Report) -> None:
    folder.sync()
    if not previous.lists:
        # From now on what lies under v1/ is known to be ours, even if this very first build is killed.
        folder.save(output.MANIFEST, previous.encoded())
    for market_id in report.withdrawn:
        folder.discard_key(keys.detail(market_id))
    for one in new:
        folder.move(keys.generation_prefix(one.name, one.current.generation))
    if new:
        lists = {one.name: one.current for one in new}
        intent = manifest.intend(previous, lists, rendered.states, rendered.record.as_of)
        folder.save(output.MANIFEST, intent.encoded())
    for key in rendered.staged.changed:
        folder.move(key)
