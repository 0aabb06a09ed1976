"""A build that has work, stage by stage: prepare (read, guard, render), move into place, report."""

import json
from dataclasses import dataclass, replace

from generator.api import keys
from generator.api.changes import ChangesHead
from generator.builder import notices, unchanged
from generator.builder.counts import DownloadCounts, QuestionCounts, SearchCounts
from generator.builder.inspection import placing
from generator.builder.preparation import Preparation
from generator.builder.prepared import Prepared
from generator.builder.report import MarketChanges, Report, Tell, of_list
from generator.builder.unchanged import BuildResult
from generator.config import demo
from generator.cost import estimate, prices
from generator.cost.estimate import Basis, Cost, Terms
from generator.edge import deployment
from generator.errors import DamageError, FalseVersionsError
from generator.findings import in_order
from generator.markets import detail
from generator.markets.quarantine import printable
from generator.site import sessions
from generator.site.sessions import LastPublish
from generator.source.address import display_url
from generator.source.reader import open_reader
from generator.tree import files, generations, staging
from generator.tree.staging import Placed
from generator.tree.told import Told


def build(preparation: Preparation, tell: Tell) -> Report:
    """Build in a folder that is locked; once more from the beginning if what it finds there proves to be wrong."""
    try:
        return _attempt(preparation, tell)
    except FalseVersionsError as found:
        again = preparation.distrusting(found.markets)
    except DamageError as damage:
        again = preparation.mending(damage)
    preparation.folder.start_again()
    return _attempt(again, tell)


def _attempt(preparation: Preparation, tell: Tell) -> Report:
    """Build, or raise FalseVersionsError before anything has moved into place."""
    config, stopwatch = preparation.config, preparation.stopwatch
    terms = Terms(config.schedule, config.cursor.lifetime, prices.load())
    with open_reader(config, preparation.quarantine) as reader:
        preparation = preparation.knowing(reader)
        is_demo = reader.is_demo()
        if not preparation.overrides.demo:
            demo.refuse(config, is_marked=is_demo)
        collected = preparation.collect(reader)
        empty = preparation.empty_relations(reader, collected)
    prepared = preparation.finish(collected, is_demo=config.source.is_default or is_demo)
    made, run = prepared.made, _Run(preparation, prepared, _market_changes(preparation, prepared))
    with stopwatch.stage("place"):
        placed = run.place()
        edges = run.put_edge()
    if made.downloads.lost:
        preparation.remarks.append(notices.NEW_SESSION.about(made.downloads.lost))
    report = run.report(placed)
    report.empty = empty
    report.search = SearchCounts.of(made.index) if made.index else None
    report.downloads, report.step_lines = run.downloads()
    report.cost = run.estimate(terms)
    report.stages = stopwatch.spans
    tell(report)
    if report.says_more_than(preparation.folder.read(files.REPORT)):
        preparation.folder.save(files.REPORT, report.encoded())
    placing.place(preparation.folder, preparation.config, prepared.catalog, placed.manifest.objects)
    unchanged.leave(preparation, collected, BuildResult(report, placed.manifest, prepared.site, edges))
    return report


@dataclass(frozen=True)
class _Run:
    """What follows the preparation: placing, and reporting."""

    preparation: Preparation
    prepared: Prepared
    changes: MarketChanges

    def place(self) -> Placed:
        """Move everything staged into place; a build killed from here on leaves work that the next one finishes."""
        folder, config = self.preparation.folder, self.preparation.config
        lifetime, has_target = config.cursor.lifetime, config.publish.target is not None
        if has_target and LastPublish.found(folder.read) is None:
            LastPublish().save(folder)
        placed = staging.place(folder, self.preparation.previous, self.prepared.made.rendered, lifetime)
        if not has_target:
            folder.discard_key(files.LAST_PUBLISH)
        if not self.preparation.overrides.purge:
            return placed
        return replace(placed, manifest=sessions.purge(folder, placed.manifest, lifetime))

    def downloads(self) -> tuple[DownloadCounts | None, int]:
        """What to report of the downloads, and the lines of the step that was made: none is left after a purge."""
        counts, lines = self.prepared.counts(), self.prepared.made.downloads.step_lines
        feed = ChangesHead.found_by(self.preparation.folder.read) if self.preparation.overrides.purge else None
        return (counts.followed_by(feed), 0) if counts and feed else (counts, lines)

    def put_edge(self) -> dict[str, bytes]:
        """Update the CDN's files, and return them. They depend on settings alone, so they fit old and new objects."""
        folder = self.preparation.folder
        rendered = {file.name: file.text.encode() for file in deployment.render(self.preparation.config)}
        for name in [name for name, body in rendered.items() if folder.put(name, body)]:
            folder.move(name)
        for name in set(deployment.NAMES) - rendered.keys():
            folder.discard_key(name)
        return rendered

    def report(self, placed: Placed) -> Report:
        """What was built, apart from its cost and duration."""
        found, catalog, built = self.prepared.found, self.prepared.catalog, placed.manifest
        written, written_bytes = self.prepared.made.rendered.written()
        return Report(
            as_of=catalog.as_of,
            source=display_url(self.preparation.config),
            layout=self.preparation.config.layout,
            built=len(catalog.markets),
            hidden=catalog.hidden,
            taken_down=sorted(self.preparation.blocked & found.ids()),
            questions=QuestionCounts.of(catalog),
            lists={name: of_list(name, current) for name, current in built.lists().items()},
            retained=len(built.retired),
            quarantine=self.preparation.quarantine,
            written=written,
            written_bytes=written_bytes,
            unchanged=len(built.objects) + generations.total(built.current_generations()) - written,
            deleted=placed.deleted,
            remarks=in_order(self.preparation.remarks),
            details=self.preparation.details,
            last=Told.of(self.preparation.folder.read(files.REPORT)),
            markets=self.changes,
            new_lists=[staged.name for staged in self.prepared.made.rendered.lists() if staged.new],
        )

    def estimate(self, terms: Terms) -> Cost:
        """The cost of publishing such builds, from what this one and earlier ones changed."""
        known = estimate.of_report(self.preparation.folder.read(files.REPORT))
        basis = known.basis if known else Basis()
        is_new = self.prepared.made.rendered.staged.changed or self.prepared.made.rendered.new_generations()
        if is_new and self.preparation.previous and self.preparation.previous.complete:
            basis = estimate.learned(basis, self.prepared.site, self.prepared.change, terms.schedule)
        return estimate.cost(self.prepared.site, basis, terms)


def _market_changes(preparation: Preparation, prepared: Prepared) -> MarketChanges:
    """What becomes of the markets, as long as the details of those that go are in place."""
    previous, rendered, folder = preparation.previous, prepared.made.rendered, preparation.folder
    now = prepared.catalog.ids()
    before = previous.ids() if previous else set[str]()
    changed = {*rendered.staged.changed} if before else set[str]()
    rewritten = {market_id for market_id in now if keys.detail(market_id) in changed}
    changes = MarketChanges.between(before, now, rewritten, previous.as_of if previous else "")
    question = _question(folder.read(keys.detail(changes.withdrawn[0]))) if changes.withdrawn else ""
    return replace(changes.after(folder.read(files.REPORT), now), question=question)


def _question(body: bytes | None) -> str:
    """The question in a detail, for people; empty if it is missing or damaged."""
    try:
        return printable(json.loads(detail.market_object(body or b""))["question"])
    except (ValueError, LookupError, TypeError):
        return ""
