"""A build that finds nothing to do ends here: it compares ids and versions, and loads nothing of what it knows.

Whatever it doubts is left to an ordinary build. Every one that was whole leaves, beside its manifest, what the next one
needs to tell that nothing came, went, changed or is due.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from pydantic_core import from_json

from generator import program
from generator.api import contract, forms, keys
from generator.api.changes import ChangesHead
from generator.api.downloads import STEP_LIFETIME
from generator.builder import joined, last_details, notices, part_rendering
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.last_details import DetailCounts, Sample
from generator.builder.notices import Topic
from generator.builder.part_rendering import ReadDetail, RenderedPart, Task
from generator.builder.report import MarketChanges, Report
from generator.config.settings import Config
from generator.config.shape import QUESTIONS, following
from generator.cost import estimate, prices
from generator.cost.estimate import Basis, Terms
from generator.cost.sizes import NOTHING, Change, Site
from generator.downloads import periods
from generator.errors import OutputError
from generator.markets.categories import Spellings
from generator.markets.quarantine import Plain, Quarantine
from generator.models import replaced
from generator.progress import Stopwatch
from generator.source.queries import MANY, Chosen
from generator.source.reader import Reader, open_reader
from generator.source.relations import QUESTION_RELATIONS
from generator.source.survey import Survey, can_be_asked_for
from generator.tree import blocklist, files, manifest, manifest_file, staging
from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.tree.stored import StoredModel
from generator.tree.told import Told

if TYPE_CHECKING:
    from generator.builder.collecting import Collected
    from generator.builder.preparation import Preparation
    from generator.site.catalog import Catalog

#: The most markets that are always read, as they are reported, of a site whose builds can end here.
_MOST_READ: Final = 1_000
#: Markets that are read together.
_TOGETHER: Final = 500
#: Remarks that the next build may not make again, though nothing changed.
_PASSING: Final = frozenset({
    Topic.FUTURE_TIME, Topic.FALSE_VERSION, Topic.DAMAGE, Topic.NEW_SESSION, Topic.FEW_CONNECTIONS, Topic.TRADES,
    Topic.NEW_QUESTIONS, Topic.JOINED_QUESTION,
})  # fmt: skip
#: The files beside `v1/` that must have the same bytes, and those that must be there, or not.
_SAME: Final = (files.MANIFEST, files.REPORT, files.FINGERPRINTS, *files.BESIDE, files.BLOCKED)
_THERE: Final = (*files.PAGES, files.LAST_PUBLISH)
#: The folders of files beside `v1/`.
_FOLDERS: Final = (files.STATES, files.FORMER_STATES, files.FINGERPRINT_SHARDS)
#: That of a program does not change while it runs.
_digest_of_program: Final = cache(program.digest)
#: After every wire timestamp.
_NEVER: Final = "~"


class LastBuild(StoredModel):
    """What a build was made from, and what it said of its result.

    `shape` stands for program and settings, `beside` for the files beside `v1/`, and `names` for all that must be
    there; `edges` are the digests of the edges' files, by name. `until` has, by a number of seconds, an instant so long
    after which time may change something. `digests`, `questions`, `altered` and `always` are those of `Collected`,
    `refused` are the markets (ids) whose slugs are.
    """

    shape: str
    edges: Mapping[str, str]
    beside: str
    names: str
    until: Mapping[int, str]
    digests: tuple[str, ...]
    questions: str
    always: Mapping[str, bool]
    altered: frozenset[str]
    refused: frozenset[str]
    spelled: Spellings
    report: Report
    site: Site

    def save(self, folder: Output) -> None:
        """Save it with the folder's present files. Not flushed to the disk: it begins with its digest."""
        body = replaced(self, beside=_beside(folder)).model_dump_json(by_alias=True).encode()
        if folder.put(files.UNCHANGED, f"{_digest(body)}\n".encode() + body):
            folder.move(files.UNCHANGED)

    @classmethod
    def found(cls, folder: Output) -> "LastBuild | None":
        """What the folder says; None if the file is missing, damaged, of another version, or of another build."""
        digest, _, body = (folder.read(files.UNCHANGED) or b"").partition(b"\n")
        try:
            found = cls.model_validate_json(body)
        except ValidationError:
            return None
        is_whole = digest == _digest(body).encode() and found.beside == _beside(folder)
        return found if is_whole and found.edges == {name: _digest(folder.body(name)) for name in found.edges} else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _beside(folder: Output) -> str:
    bodies = {name: _digest(body) for name in _SAME if (body := folder.read(name)) is not None}
    return _digest(contract.encode([bodies, [name for name in _THERE if folder.has(name)]]))


def _names_beside(folder: Output) -> Iterator[str]:
    return (f"{place}{name}" for place in _FOLDERS for name in folder.names(place))


def _shape(config: Config) -> str:
    """A digest of the program, with its templates, and of all settings, also of those that shape only the report.

    In a checkout, the templates lie beside the package.
    """
    settings = config.model_dump_json()
    return _digest(repr((_digest_of_program(".", "../templates"), last_details.shape_of(config), settings)).encode())


def _of_markets(found: Plain) -> Plain:
    """What was quarantined for itself: equal rows of questions and equal markets say the rest again."""
    return Plain(
        [row for row in found.rows if row.relation not in QUESTION_RELATIONS],
        {relation: total for relation, total in found.totals.items() if relation not in QUESTION_RELATIONS},
        [(fault, rows) for fault, rows in found.faults if fault.subject not in QUESTION_RELATIONS],
    )


# ── what an ordinary build leaves ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class BuildResult:
    """What an ordinary build made, with the size of its site, and the edges' files, by name, as they were rendered."""

    report: Report
    manifest: Manifest
    site: Site
    edges: Mapping[str, bytes]


def leave(build: "Preparation", found: "Collected", made: BuildResult) -> None:
    """Save what the next build can tell by that nothing changed; nothing if this one was not whole."""
    folder, config, report = build.folder, build.config, made.report
    bad = report.quarantine.total("markets")
    if (
        build.overrides.purge
        or not found.digests
        or len(found.always) > min(_MOST_READ, MANY * len(found.catalog.markets))
        or not all(map(can_be_asked_for, found.always))
        or any(remark.topic in _PASSING for remark in report.remarks)
        or bad > config.guards.max_invalid * (bad + report.built)  # which may have been accepted this once
    ):
        if folder.has(files.UNCHANGED):
            folder.discard_key(files.UNCHANGED)
        return
    names = files.expected(made.manifest.objects, made.manifest.generations())
    LastBuild(
        shape=_shape(config),
        edges={name: _digest(body) for name, body in made.edges.items()},
        beside="",
        names=files.tally(chain(names, _names_beside(folder))),
        until=dict(_until(found.catalog, folder)),
        digests=found.digests,
        questions=found.questions,
        always=found.always,
        altered=found.altered,
        refused=frozenset(found.catalog.naming.refused_slugs),
        spelled=found.catalog.naming.spellings,
        report=replace(report, markets=MarketChanges(), last=Told(), new_lists=[], deleted=0, step_lines=0),
        site=made.site,
    ).save(folder)


def _until(catalog: "Catalog", folder: Output) -> Iterator[tuple[int, str]]:
    as_of = datetime.fromisoformat(catalog.as_of)
    closing = [market.close_time for market in catalog.markets if market.status == "open" or market.accepting_bets]
    fills = (market.until for market in catalog.markets if market.until)
    yield 0, min(chain(fills, (time for time in closing if time > catalog.as_of)), default=_NEVER)
    overdue, ended = notices.OVERDUE_AFTER, forms.instant(as_of - notices.OVERDUE_AFTER)
    yield int(overdue.total_seconds()), min((time for time in closing if time >= ended), default=_NEVER)
    if feed := ChangesHead.found_by(folder.read):
        yield int(STEP_LIFETIME.total_seconds()), min((step.as_of for step in feed.steps), default=_NEVER)


# ── the end of a build that finds nothing to do ───────────────────────────────────────────────────────────────────


def ended(folder: Output, config: Config, clock: Clock, overrides: BuildOverrides, sample: Sample) -> Report | None:
    """End a build that finds nothing to do, and report; None if it may have to do something.

    Raises SourceError as an ordinary build does, which would wait as long for a database that does not answer.
    """
    folder.is_as_left = False
    if overrides.full or overrides.purge or sample.share >= MANY or (last := LastBuild.found(folder)) is None:
        return None
    stopwatch = Stopwatch()
    with stopwatch.stage("read"):
        try:
            before = manifest_file.decoded(folder.path(""), folder.read(files.MANIFEST) or b"")
            build = _Build(folder, config, clock, overrides, sample, last, before)
            details = build.unchanged()
        except (OutputError, OSError):  # which an ordinary build meets again, if it lasts
            return None
    if details is None:
        return None
    report, is_later = build.report(details), forms.instant(clock.as_of) != before.as_of
    with stopwatch.stage("place"):
        if is_later:
            build.place(report)
    report.stages = stopwatch.spans
    if is_later:
        folder.save(files.REPORT, report.encoded())
        replaced(last, report=replace(report, markets=MarketChanges(), last=Told())).save(folder)
    return report


@dataclass(frozen=True)
class _Build:
    """A build into a folder with a manifest, or the header of one, of `before`, and with what the `last` one left."""

    folder: Output
    config: Config
    clock: Clock
    overrides: BuildOverrides
    sample: Sample
    last: LastBuild
    before: Manifest

    def unchanged(self) -> DetailCounts | None:
        """The counts of details if there is nothing to do. A build that has work may rely on the first checks, too."""
        self.folder.is_as_left = self._is_same() and self._is_in_place()
        if not (self.folder.is_as_left and self._is_time()):
            return None
        quarantine = Quarantine()
        with open_reader(self.config, quarantine) as reader:
            is_demo = self.config.source.is_default or reader.is_demo()
            if is_demo != self.before.is_demo or (is_demo and not self.overrides.demo):
                return None
            reader.require_schema()
            return self._audited(reader, quarantine) if self._have_same_questions(reader) else None

    def _is_same(self) -> bool:
        config = following(self.config, {QUESTIONS: self.last.questions})
        return self.before.complete and self.last.shape == _shape(config)

    def _is_time(self) -> bool:
        """Whether time has changed nothing since the last build, by the clocks for markets and for ages."""
        as_of, before, config = forms.instant(self.clock.as_of), self.before, self.config
        if as_of < before.as_of or (before.is_clock_set and not self.clock.is_set):
            return False
        if config.has_parquet:
            from generator.site import sessions  # noqa: PLC0415 - most sites have none, and need no downloads

            if periods.is_due(before.as_of, as_of) or sessions.has_unpublished_histories(config, self.folder):
                return False
        now = as_of if before.is_clock_set else self.folder.now()
        retired = before.retirements or [entry.retired_at for entry in before.retired]
        oldest = forms.instant(datetime.fromisoformat(now) - config.cursor.lifetime)
        return all(oldest <= time <= now for time in retired) and all(
            forms.instant(self.clock.as_of - timedelta(seconds=after)) < time for after, time in self.last.until.items()
        )

    def _is_in_place(self) -> bool:
        build = self.folder.body(keys.BUILD)
        names = chain(self.folder.placed(), _names_beside(self.folder))
        is_of_last = manifest.digest(keys.BUILD, build) == self.before.objects[keys.BUILD]
        return is_of_last and self.last.names == files.tally(names)

    def _have_same_questions(self, reader: Reader) -> bool:
        copy = blocklist.load(self.folder)
        if joined.after_joining(copy, reader, None, forms.instant(self.clock.as_of)) != copy:
            return False
        if not reader.has_questions():
            return not self.last.questions
        asked = reader.questions()
        asked.read()
        return self.last.questions == asked.digest()

    def _audited(self, reader: Reader, quarantine: Quarantine) -> DetailCounts | None:
        """The counts if no market changed, as far as versions and a sample tell."""
        last, always, is_chosen = self.last, self.last.always, self.sample.has
        survey = reader.surveyor().same(
            last.digests, last.refused, last.spelled, lambda market_id: market_id in always or is_chosen(market_id)
        )
        if survey is None:
            return None
        altered, counts = {*survey.doubled}, DetailCounts()
        for part in self._rendered(reader, survey):
            if part.remarks or not all(map(self._is_as_shown, part.details)) or not self._have_outcomes(part):
                return None
            altered.update(part.altered)
            quarantine.add(part.quarantine)
            for found in part.details:
                is_unknown = always.get(found.market_id, False)
                counts.read += is_unknown or is_chosen(found.market_id)
                counts.audited += not is_unknown and is_chosen(found.market_id)
        is_equal = altered == last.altered and quarantine.plain() == _of_markets(last.report.quarantine.plain())
        return counts if is_equal else None

    def _rendered(self, reader: Reader, survey: Survey) -> Iterator[RenderedPart]:
        blocked = blocklist.load(self.folder).ids()
        latest = notices.latest_time(forms.instant(self.clock.as_of))
        for start in range(0, len(survey.keys), _TOGETHER):
            within = Chosen(tuple(survey.keys[start : start + _TOGETHER]))
            task = Task(self.config, within, survey.facts, self.clock.as_of, latest, Sample(0, 0), blocked)
            yield part_rendering.render(task, reader.reporting_to)

    def _is_as_shown(self, found: ReadDetail) -> bool:
        return all(self.folder.read(key) == found.body for key in keys.details(found.market_id, found.slug))

    def _have_outcomes(self, part: RenderedPart) -> bool:
        """Whether the same markets have an outcome that is not shown yet: no detail says that of their rows."""
        early = {remark.key for remark in self.last.report.remarks if remark.topic == Topic.EARLY_OUTCOME}
        shown = {found.market_id: found.market_id in early for found in part.details}
        markets = part.markets.markets({})
        return all(market.has_early_outcome == shown.get(market.id, market.has_early_outcome) for market in markets)

    def report(self, details: DetailCounts) -> Report:
        """What the last report said, of a build that found the same."""
        last, as_of, previous = self.last.report, forms.instant(self.clock.as_of), self.folder.read(files.REPORT)
        details.kept = last.built - details.read
        changes = MarketChanges(since=self.before.as_of).after(previous, frozenset())
        objects = last.written + last.unchanged
        return replace(
            last, as_of=as_of, last=Told.of(previous), written=0, written_bytes=0, unchanged=objects, details=details,
            markets=changes, empty=[],
        )  # fmt: skip

    def place(self, report: Report) -> None:
        """Have everything say that it is of this instant, as an ordinary build does, but for the inspection page.

        That shows the last build which changed something.
        """
        config, site = self.config, self.last.site
        body = contract.encode({**from_json(self.folder.body(keys.BUILD)), "asOf": report.as_of})
        report.written, report.written_bytes, report.unchanged = 1, len(body), report.unchanged - 1
        minutes = manifest.minutes_between(self.before.as_of, report.as_of)
        change = Change(frozenset(), frozenset(), 1, minutes, made={config.layout: NOTHING})
        terms = Terms(config.schedule, config.cursor.lifetime, prices.load())
        basis = estimate.learned(report.cost.basis if report.cost else Basis(), site, change, terms.schedule)
        report.cost = estimate.cost(site, basis, terms)
        staging.redate(self.folder, self.before, report.as_of, body)
