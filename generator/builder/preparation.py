"""What comes before a build moves anything into place: read, guard, render. A dry run ends there."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Final, Self

from generator import __version__, program
from generator.api import downloads, forms, keys
from generator.api.licensing import Licensing
from generator.builder import collecting, executors, guards, joined, last_details, notices
from generator.builder.collecting import Collected
from generator.builder.content_guards import ContentGuards
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.last_details import EVERY_DETAIL, DetailCounts, LastDetails, Sample
from generator.builder.notices import CLOCK_SKEW
from generator.builder.part_staging import PartWork, StagedPart
from generator.builder.prepared import Prepared
from generator.builder.report import Excused
from generator.config.settings import Config
from generator.config.shape import QUESTIONS
from generator.downloads import parquet, periods
from generator.downloads.histories import HeldRows, LastHistories, NewHistories
from generator.downloads.side_file import HistoryState
from generator.errors import ConfigError, DamageError, FalseVersionsError, GuardError
from generator.filesystem import WriteAhead
from generator.findings import Finding
from generator.markets import detail, questions, row_validation
from generator.markets.quarantine import Quarantine
from generator.markets.questions import PublishedMarkets
from generator.models import replaced
from generator.progress import Progress, Stopwatch
from generator.site import download_files, families, sessions, worker_pool
from generator.site.catalog import Catalog, Details
from generator.site.make import MadeSite, Maker
from generator.source.address import shape
from generator.source.reader import Reader
from generator.source.survey import Survey
from generator.tree import blocklist, files, generations, manifest, shrink
from generator.tree.folder import Output
from generator.tree.generation import Read
from generator.tree.manifest import Manifest
from generator.tree.manifest_file import UnreadableManifestError
from generator.tree.staging import Staged

#: Markets with a false version that a report names.
_MOST_FALSE: Final = 100
NO_QUESTIONS: Final = (
    "the last build had questions, and the database no longer has both relations, questions and question_members; "
    "nothing was replaced. Restore them or, if the site is to have no questions, pass --accept shrink"
)
_MISSING_QUESTIONS: Final = (
    "questions.enabled is true, and the database has no relations questions and question_members; add them, or leave "
    "the setting out"
)


@dataclass(frozen=True)
class Preparation:
    """The stages of one build until all is staged.

    `previous` is the manifest it found, `blocked` the ids of blocked markets, and the references of blocked
    questions. The details of the `sample` are read anyway. Bad rows go to `quarantine`. `suspects` are markets (ids)
    whose versions turned out to be false, so that everything is read and compared.
    """

    config: Config
    clock: Clock
    folder: Output
    previous: Manifest | None
    blocked: frozenset[str]
    overrides: BuildOverrides
    sample: Sample
    progress: Progress
    quarantine: Quarantine = field(default_factory=Quarantine)
    remarks: list[Finding] = field(default_factory=list)
    details: DetailCounts = field(default_factory=DetailCounts)
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    suspects: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Output, config: Config, clock: Clock, overrides: BuildOverrides, progress: Progress) -> Self:
        """Prepare a build in a folder. Raises OutputError if what the last build left there cannot be read."""
        # Only versions and clusters need digests of details: otherwise every detail is compared with its file.
        is_light = not folder.has(files.FINGERPRINTS) and config.cluster is None
        try:
            previous = folder.manifest(is_light=is_light)
        except UnreadableManifestError:
            if not overrides.anew:
                raise
            previous, overrides = None, replace(overrides, full=True)
            # Without it, the change feed begins a new session: steps of the old one may show what is gone.
            folder.discard_key(files.DUMP_PARTS)
        blocked, sample = blocklist.load(folder).ids(), Sample.chosen(config.source.audit)
        return cls(config, clock, folder, previous, blocked, overrides, sample, progress)

    def knowing(self, reader: Reader) -> Self:
        """The same, with a setting that says whether the database has questions, and with what they block.

        Raises ConfigError if it lacks what the settings ask for, GuardError if the last build had questions.
        """
        if self.has_lost_questions(reader) and "shrink" not in self.overrides.accepted:
            raise GuardError(NO_QUESTIONS)
        has_any, wanted = reader.has_questions(), self.config.questions
        if not has_any and wanted.enabled:
            reader.require_schema()
            raise ConfigError(_MISSING_QUESTIONS)
        blocked = joined.block(self.folder, reader, self.previous, forms.instant(self.clock.as_of))
        self.remarks.extend(map(notices.JOINED_QUESTION.about, sorted(blocked - self.blocked)))
        if has_any and self.previous and not self.previous.settings.get(QUESTIONS):
            self.remarks.append(notices.NEW_QUESTIONS.about("questions"))
        self.quarantine.leave_out(blocked)
        config = replaced(self.config, questions=replaced(wanted, enabled=has_any))
        return replace(self, config=config, blocked=blocked)

    def has_lost_questions(self, reader: Reader) -> bool:
        """Whether the last build had questions, and the database no longer has both relations."""
        had_any = bool(self.previous and self.previous.settings.get(QUESTIONS))
        return had_any and self.config.questions.enabled is not False and not reader.has_questions()

    def distrusting(self, markets: Iterable[str]) -> Self:
        """Build again from the beginning, comparing everything, and report these markets (ids) and all like them."""
        return replace(
            self, quarantine=Quarantine(), remarks=[], details=DetailCounts(), stopwatch=Stopwatch(),
            suspects=tuple(markets),
        )  # fmt: skip

    def mending(self, damage: DamageError) -> Self:
        """Build again from the beginning, in full, and report the damage."""
        overrides = replace(self.overrides, full=True)
        return replace(self.distrusting(()), overrides=overrides, remarks=[notices.DAMAGE.about(damage.place)])

    def collect(self, reader: Reader) -> Collected:
        """Read, render and stage all parts: every market that the database shows; blocked ones get no detail.

        Raises SourceError for a bad schema.
        """
        if self.config.has_parquet:
            parquet.require()
        with self.stopwatch.stage("read"):
            reader.require_schema()
            last = self._last_details()
            sample = EVERY_DETAIL if self.suspects else self.sample
            histories = self._last_histories()
            if histories:
                last = last.without_histories_of(histories.entries)
            now = row_validation.timestamp(self.clock.as_of.isoformat())
            survey = reader.survey(last.earlier(now, sample, self.blocked, histories or LastHistories()))
        with self.stopwatch.stage("render"), self.folder.written_ahead() as ahead:
            parts = executors.staged(
                self._work(survey, last, sample, histories), reader, self.progress, self.remarks.append
            )
            found = collecting.collect(self._watched(parts, ahead), survey, last, forms.instant(self.clock.as_of))
        if found.false_versions and not self.suspects:
            raise FalseVersionsError(found.false_versions)
        false = islice(dict.fromkeys((*self.suspects, *found.false_versions)), _MOST_FALSE)
        if histories and found.histories is None:  # nothing need be read, but a month may be over
            found = replace(found, histories=NewHistories(histories.is_first))
        self.quarantine.add(found.quarantine)
        self.remarks.extend([*found.remarks, *map(notices.FALSE_VERSION.about, false)])
        self.details.add(found.counts)
        return self._with_questions(found, reader)

    def _with_questions(self, found: Collected, reader: Reader) -> Collected:
        """The same with the public questions, if the database has such."""
        if not self.config.has_questions:
            return found
        catalog, asked = found.catalog.without(self.blocked), reader.questions()
        with self.stopwatch.stage("read"):
            markets = PublishedMarkets({market.id: market for market in catalog.listed()}, catalog.ids())
            given = asked.given(keys.question_ids(self.blocked))
            gathered = questions.gather(given, asked.members(), markets, self.quarantine)
            digest = asked.digest()
        self.remarks.extend(gathered.remarks)
        shown = frozenset(keys.question_reference(question.id) for question in given)
        catalog = found.catalog.of_questions(gathered.questions)
        return replace(found, catalog=catalog, questions=digest, shown_questions=shown)

    def empty_relations(self, reader: Reader, found: Collected) -> list[str]:
        """The relations without a row that may be public, if this is the first build and has a market."""
        if self.previous is not None or not found.catalog.markets:
            return []
        of_details = self.config.detail.shows()
        wanted = {"fx_members": True, "market_categories": self.config.variant == "extended", **of_details}
        return [name for name, is_wanted in wanted.items() if is_wanted and not reader.has_rows(name)]

    def _last_details(self) -> LastDetails:
        """What this build may keep of the last one; nothing in a full build, or if the last one was killed."""
        shape, last = last_details.shape_of(self.config), self.previous
        # A later as-of may have made remarks about future times, which an earlier one must make again.
        if self.overrides.full or not last or not last.complete or last.as_of > forms.instant(self.clock.as_of):
            return LastDetails(self.folder, shape)
        return LastDetails.load(self.folder, last.objects, last.as_of, shape)

    def _last_histories(self) -> LastHistories | None:
        """What the files of histories hold; None unless this build is to bring them up to date."""
        if not self.config.has_parquet:
            return None
        if self.overrides.full:
            return LastHistories()
        state, as_of = self._history_state, forms.instant(self.clock.as_of)
        if state is None or download_files.maker(self.folder) != program.maker():
            return LastHistories()
        # What a false version kept from being read is missing in them, too.
        is_due = periods.is_due(state.as_of, as_of) or sessions.has_unpublished_histories(self.config, self.folder)
        if not (self.suspects or is_due):
            return None
        if as_of < state.as_of:  # candles may be of periods that are not over yet
            return LastHistories()
        is_undamaged = download_files.are_undamaged(self.folder, self._read_head)
        return LastHistories(state.markets, state.as_of) if is_undamaged else LastHistories()

    @property
    def _read_head(self) -> Read:
        return sessions.reader_of_heads(self.folder.read, self.previous)

    @cached_property
    def _history_state(self) -> HistoryState | None:
        """What the files in place hold; None if they are not of the tables that are wanted, or state other rights."""
        state = download_files.found_in(self.folder, self._read_head)
        wanted = downloads.tables(fills=self.config.has_fills), Licensing.of(self.config).stated()
        return state if state and (state.tables, state.stated) == wanted else None

    def _work(self, survey: Survey, last: LastDetails, sample: Sample, histories: LastHistories | None) -> PartWork:
        latest, as_of = notices.latest_time(forms.instant(self.clock.as_of)), self.clock.as_of
        # Rows that were written by then, by another clock, may have come later.
        since = forms.instant(datetime.fromisoformat(self.previous.as_of) - CLOCK_SKEW) if self.previous else ""
        return PartWork(self.config, self.folder, survey, last, sample, self.blocked, as_of, latest, histories, since)

    def _watched(self, parts: Iterable[StagedPart], ahead: WriteAhead) -> Iterator[StagedPart]:
        for part in parts:
            self.progress.advance()
            if part.staged.changed:
                ahead.begin()
            yield part

    def finish(self, collected: Collected, *, is_demo: bool) -> Prepared:
        """Guard what was collected, and stage all the rest. Raises GuardError."""
        catalog = collected.catalog.without(self.blocked)
        new = [*filter(None, map(keys.market_id, collected.staged.changed))]
        content = self._content_guards(catalog, collected, {*new})
        others = self.blocked | collected.shown_questions
        shown = guards.visible(catalog, self.quarantine, others)
        self._guard(catalog, content, others, shown)
        self.remarks.extend(notices.of(catalog, self.config))
        self.remarks.extend(notices.of_histories(self.config, self.previous.settings if self.previous else {}))
        base = Manifest(
            complete=False, as_of=catalog.as_of, is_clock_set=self.clock.is_set, is_demo=is_demo, version=__version__,
            variant=self.config.variant, layout=self.config.layout, settings=shape(self.config), current={}, retired=(),
            objects={}, markets={},
        )  # fmt: skip
        details = Details(
            collected.staged,
            catalog.ids() if self.overrides.full else new,  # in a full build, the dump in place is not believed
            lambda market_id: detail.market_object(self._body(keys.detail(market_id), collected.staged)),
            collected.fingerprints,
            histories=collected.histories,
            is_full=self.overrides.mends,
        )
        maker = Maker(self.folder, self.previous, self.config, self.progress, self.stopwatch, worker_pool.available())
        made = maker.make(catalog, details, families.of_settings(self.config), base)
        if "shrink" not in self.overrides.accepted:
            # What the database shows of markets can be believed all the same: hidden ones go.
            self.refuse_fewer_questions(made, shown)
        if self.overrides.mends and self.previous:
            made = self._without_damaged(made, self.previous)
        if self.config.prices_file and keys.PRICES not in made.rendered.staged.objects:
            self.remarks.append(notices.NO_PRICES.about(keys.PRICES))
        return Prepared(collected.catalog, catalog, made, self.previous.as_of if self.previous else "", content)

    def _without_damaged(self, made: MadeSite, previous: Manifest) -> MadeSite:
        """The same, but generations end that would be retired and are damaged."""
        new = {place for generation in made.rendered.new_generations() for place in generation.places}
        current = made.rendered.manifest.current_generations()
        damaged = generations.damaged(self.folder.path, previous.generations(), current, new)
        return replace(made, rendered=replace(made.rendered, damaged=damaged))

    def _body(self, key: str, staged: Staged) -> bytes:
        """An object as it is staged, or in place; raise DamageError if it is not what was built."""
        return manifest.intact(key, self.folder.newest_body(key), staged.objects[key])

    def _content_guards(self, catalog: Catalog, found: Collected, new: AbstractSet[str]) -> ContentGuards:
        unchanged = [market for market in catalog.markets if market.id not in new]
        before = self.previous.settings if self.previous else {}
        return ContentGuards(
            self.config, before, found.comparison, unchanged,
            lambda market_id: self.folder.read(keys.detail(market_id)), self._held(catalog, found.histories),
        )  # fmt: skip

    def _held(self, catalog: Catalog, new: NewHistories | None) -> dict[str, tuple[HeldRows, HeldRows]]:
        """What files of histories hold of each market that stays listed, and will; empty if they stay."""
        last = self._history_state if new else None
        if new is None or last is None:
            return {}
        listed = {market.id for market in catalog.listed()}
        return {key: (held, new.entries.get(key, held)) for key, held in last.markets.items() if key in listed}

    def _guard(
        self, catalog: Catalog, content: ContentGuards, others: frozenset[str], shown: frozenset[str] | None
    ) -> None:
        """Refuse a state that looks like an accident, before anything derived from it is made.

        Besides the markets, `others` need not be withdrawn then; `shown` is what the database shows.
        """
        limits, accepted = self.config.guards, self.overrides.accepted
        if "invalid" not in accepted:
            guards.refuse_invalid(catalog, self.quarantine, others, limits.max_invalid)
        if "shrink" not in accepted:
            shrink.refuse(self.before() - self.blocked, catalog.ids(), limits.max_shrink)
        if "growth" not in accepted:
            self.refuse_growth(catalog, shown)
        if refusals := [*content.refusals(accepted)]:
            raise GuardError("\n".join(refusals), shown)

    def before(self) -> AbstractSet[str]:
        """The markets (ids) that the last build made public; none before a first one has ended."""
        return self.previous.ids() if self.previous and not self.previous.is_first else frozenset()

    def refuse_fewer_questions(self, made: MadeSite, shown: frozenset[str] | None = None) -> None:
        """Raise GuardError if there are many fewer questions, markets in them, or labels than the last build made.

        `shown` is what the database shows.
        """
        if self.previous:
            limit = self.config.guards.max_shrink
            shrink.refuse_fewer(self.previous, made.rendered.manifest, limit, self.blocked, shown)

    def refuse_growth(self, catalog: Catalog, shown: frozenset[str] | None = None) -> None:
        """Raise GuardError when too many old markets appear; `shown` are the markets that the database shows."""
        if self.previous:
            # The last build left some out for a reason that is known.
            excused = Excused.of(self.folder.read(files.REPORT), blocklist.load(self.folder).markets)
            guards.refuse_growth(catalog, self.previous.ids(), self.previous.as_of, excused, shown)
