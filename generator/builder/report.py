"""What a build did, for people and monitors: `output/report.json`, metrics and the summary line. Never published."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, TypeAlias

from pydantic import ValidationError

from generator import __version__
from generator.builder.counts import DownloadCounts, QuestionCounts, SearchCounts
from generator.builder.last_details import DetailCounts
from generator.builder.news import News
from generator.builder.notices import OF_QUESTIONS, Topic
from generator.cost.estimate import Cost
from generator.findings import Finding
from generator.markets.quarantine import Quarantine, QuarantinedRow, StoredQuarantine
from generator.metrics import Samples, sample
from generator.progress import Span
from generator.source.relations import ALL_RELATIONS, RELATIONS
from generator.tree import generations, layouts
from generator.tree.manifest import Current
from generator.tree.stored import StoredModel
from generator.tree.told import Told
from generator.wording import counted


class Withdrawal(StoredModel):
    """A market (id) that the build of `as_of` withdrew."""

    id: str
    as_of: str


class _EarlierRun(StoredModel, extra="ignore"):
    withdrawn: list[str]
    withdrawn_earlier: list[Withdrawal]


class _EarlierReport(StoredModel, extra="ignore"):
    """The part of an earlier report that a later one takes over; another version may have written the rest."""

    as_of: str
    run: _EarlierRun


class _Counts(StoredModel, extra="ignore"):
    quarantined: int


class _EarlierBadRows(StoredModel, extra="ignore"):
    """The part of a report that says which markets were left out."""

    markets: _Counts
    quarantined: list[QuarantinedRow]


class Excused(NamedTuple):
    """The markets (ids) that were not public for a reason that is known, and how many `others` nobody named."""

    ids: frozenset[str] = frozenset()
    others: int = 0

    @classmethod
    def of(cls, report: bytes | None, decided: Iterable[str]) -> Self:
        """Those that the last build, which left this report, had quarantined; and those `decided` by takedowns."""
        try:
            found = _EarlierBadRows.model_validate_json(report or b"")
        except ValidationError:
            return cls(frozenset(decided))
        named = [row for row in found.quarantined if row.relation == "markets"]
        ids = frozenset((*decided, *(row.key.lower() for row in named)))
        return cls(ids, found.markets.quarantined - sum(row.rows for row in named))


def withdrawals(previous: bytes | None) -> list[Withdrawal]:
    """Every withdrawal in a saved report, the latest first."""
    try:
        report = _EarlierReport.model_validate_json(previous or b"{}")
    except ValidationError:  # written by an older version, or edited
        return []
    latest = [Withdrawal(id=market_id, as_of=report.as_of) for market_id in report.run.withdrawn]
    return latest + report.run.withdrawn_earlier


#: How many withdrawn markets a report lists by id.
REMEMBERED: Final = 1_000


@dataclass(frozen=True)
class MarketChanges:
    """What became of the markets (ids) since the build as of `since`; empty if there was none.

    `question` is that of the first one withdrawn, printable, which report.json does not tell.
    """

    since: str = ""
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    withdrawn_earlier: list[Withdrawal] = field(default_factory=list)
    question: str = ""

    @classmethod
    def between(
        cls, before: AbstractSet[str], now: AbstractSet[str], rewritten: AbstractSet[str], since: str
    ) -> "MarketChanges":
        """Compare two builds; `rewritten` markets got another detail."""
        return cls(since, sorted(now - before), sorted(rewritten & before), sorted(before - now))

    def after(self, previous: bytes | None, now: AbstractSet[str]) -> "MarketChanges":
        """Take over the withdrawals of the previous report, except of markets that are public `now`."""
        anew = {*self.withdrawn}
        earlier = [found for found in withdrawals(previous) if found.id not in now and found.id not in anew]
        return replace(self, withdrawn_earlier=earlier[:REMEMBERED])

    def sentence(self) -> str:
        """What was withdrawn, with one as an example; empty if nothing was."""
        if not self.withdrawn:
            return ""
        first, question = self.withdrawn[0], f': "{self.question}"' if self.question else ""
        if len(self.withdrawn) == 1:
            return f"withdrawn: market {first} is no longer public{question}"
        count = counted(len(self.withdrawn), "market", ",")
        return f"withdrawn: {count} are no longer public (such as {first}{question})"


@dataclass
class Report:
    """What was built, and what the run did for it. Files and bytes are those under `v1/`.

    `lists` are those of `of_list`. `empty` are the relations in which a first build found no row; report.json does not
    tell. `last` is what the build before told, if known: set it before anything is asked.
    """

    as_of: str = ""
    source: str = ""
    layout: str = layouts.LAYOUTS[0]
    built: int = 0
    hidden: int = 0
    taken_down: list[str] = field(default_factory=list)
    lists: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    questions: QuestionCounts | None = None
    search: SearchCounts | None = None
    downloads: DownloadCounts | None = None
    step_lines: int = 0
    cost: Cost | None = None
    retained: int = 0
    quarantine: StoredQuarantine = field(default_factory=Quarantine)
    written: int = 0
    written_bytes: int = 0
    unchanged: int = 0
    deleted: int = 0
    remarks: list[Finding] = field(default_factory=list)
    last: Told | None = None
    empty: list[str] = field(default_factory=list)
    markets: MarketChanges = field(default_factory=MarketChanges)
    new_lists: list[str] = field(default_factory=list)
    details: DetailCounts = field(default_factory=DetailCounts)
    stages: dict[str, Span] = field(default_factory=dict)

    @cached_property
    def news(self) -> News:
        """What the build before had not told."""
        return News(self.last, self.quarantine, self.remarks, self.as_of)

    def content(self) -> dict[str, Any]:
        """The content of report.json as JSON values: what was published, and what the `run` did for it.

        Only `run` varies over the same data. `quarantinedUnnamed` counts the rows that `quarantined` does not list.
        `since` and `remarksSince` (as-ofs) say which build found each first, if known; `told` is for the next one.
        """
        return {
            "asOf": self.as_of,
            "generator": __version__,
            "source": self.source,
            "markets": {
                "published": self.built,
                "hidden": self.hidden,
                "quarantined": self.quarantine.total("markets"),
            },
            **({"questions": _plain(self.questions)} if self.questions else {}),
            "takenDown": self.taken_down,
            "lists": {**self.lists},
            "search": _plain(self.search),
            "downloads": _plain(self.downloads),
            "retainedGenerations": self.retained,
            "quarantined": [*self.news.named_rows()],
            "quarantinedUnnamed": self.quarantine.unnamed(),
            "remarks": [remark.sentence() for remark in self.remarks],
            "remarksSince": [self.news.since_of(remark) for remark in self.remarks],
            "told": _plain(self.news.told()),
            "cost": _plain(self.cost),
            "run": self._run(),
        }

    def _run(self) -> dict[str, Any]:
        """What the run did to the folder, and to which markets (ids); `stepLines` are those of its step of the feed.

        `known` are the quarantined rows and remarks that the build before had, too.
        """
        return {
            "known": self.news.known(),
            "written": self.written,
            "writtenBytes": self.written_bytes,
            "unchanged": self.unchanged,
            "deleted": self.deleted,
            "newLists": self.new_lists,
            "stepLines": self.step_lines,
            "since": self.markets.since,
            "added": self.markets.added,
            "changed": self.markets.changed,
            "withdrawn": self.markets.withdrawn,
            "withdrawnEarlier": [*map(_plain, self.markets.withdrawn_earlier)],
            "details": asdict(self.details),
            "seconds": {name: round(span.seconds, 3) for name, span in self.stages.items()},
        }

    def encoded(self) -> bytes:
        """The file's bytes."""
        return json.dumps(self.content(), indent=1).encode() + b"\n"

    def says_more_than(self, previous: bytes | None) -> bool:
        """Whether the saved report is out of date. A run that found everything in place leaves it alone."""
        if self.written or self.deleted:
            return True
        return _comparable(_parsed(previous)) != _comparable(self.content())

    def counts(self, stage: str) -> dict[str, float]:
        """What a stage counted."""
        if stage == "read":
            return {"markets": self.built, "hidden": self.hidden}
        if stage == "render":
            return {"lists": len(self.lists), "new_lists": len(self.new_lists), "quarantined": self.quarantine.total()}
        if stage == "index" and self.search:
            return {"words": self.search.words, "objects": self.search.objects, "bytes": self.search.bytes}
        return {"written": self.written, "written_bytes": self.written_bytes, "deleted": self.deleted}

    def samples(self) -> Samples:
        """The metrics of the build."""
        metrics = {
            sample("built_as_of_timestamp_seconds"): datetime.fromisoformat(self.as_of).timestamp(),
            sample("markets", state="published"): self.built,
            sample("markets", state="hidden"): self.hidden,
            sample("markets", state="quarantined"): self.quarantine.total("markets"),
            sample("objects"): self.written + self.unchanged,
        }
        made = self.downloads or DownloadCounts()
        metrics |= {
            sample("dump_bytes", format="ndjson"): made.ndjson_bytes,
            sample("dump_bytes", format="parquet"): made.parquet_bytes + made.history_bytes,
            sample("change_feed_serial"): made.serial,
            sample("change_feed_steps"): made.steps,
            sample("change_step_lines"): self.step_lines,
        }
        about, new_rows, new_remarks = Counter(remark.topic for remark in self.remarks), *self.news.of_last_day()
        topics = [topic for topic in Topic if self.questions or topic not in OF_QUESTIONS]
        metrics |= {sample("remarks", topic=topic): about[topic] for topic in topics}
        metrics |= {sample("remarks_new", topic=topic): new_remarks[topic] for topic in topics}
        metrics |= {sample("details", by=how): number for how, number in asdict(self.details).items()}
        relations = ALL_RELATIONS if self.questions else RELATIONS
        metrics |= {sample("quarantined_rows", relation=name): self.quarantine.total(name) for name in relations}
        metrics |= {sample("quarantined_rows_new", relation=name): new_rows[name] for name in relations}
        if self.questions:
            metrics[sample("questions")] = self.questions.published
            metrics[sample("question_members")] = self.questions.members
        if self.cost:
            layout = self.cost.layouts[self.layout]
            metrics[sample("bytes")] = layout.bytes
            metrics |= {sample("cost_usd_per_month", place=place): usd for place, usd in layout.usd_per_month.items()}
        return metrics

    def findings(self) -> list[str]:
        """A line for every kind of bad row and of remark that has new ones, and for the markets withdrawn."""
        return [*self.news.lines(), *filter(None, [self.markets.sentence()])]

    def is_shortened(self, found: Sequence[str]) -> bool:
        """Whether the lines that were `found` name only some of what is new."""
        return self.news.number() + len(self.markets.withdrawn) > len(found)

    def summary(self) -> str:
        """The line that ends a build; its words are a contract."""
        return (
            f"built {counted(self.built, 'market')} as of {self.as_of}: {counted(self.written, 'file')} written "
            f"({counted(self.written_bytes, 'byte')}), {self.unchanged} unchanged, {self.deleted} deleted, "
            f"{self._end()}"
        )

    def forecast(self) -> str:
        """The line that ends the build of a dry run."""
        return (
            f"dry run: would build {counted(self.built, 'market')} as of {self.as_of}: write "
            f"{counted(self.written, 'file')} ({counted(self.written_bytes, 'byte')}), leave {self.unchanged} "
            f"unchanged, delete {self.deleted}, {self._end()}"
        )

    def _end(self) -> str:
        seconds = sum(span.seconds for span in self.stages.values())
        return f"{counted(self.quarantine.total(), 'row')} quarantined, {seconds:.1f} s"


#: Tells of a report.
Tell: TypeAlias = Callable[[Report], object]


def _plain(model: StoredModel | None) -> dict[str, Any] | None:
    return model.model_dump(mode="json", by_alias=True) if model else None


def of_list(name: str, current: Current) -> dict[str, Any]:
    """One list: its items, its generation, and how many objects and bytes that has, first pages included."""
    objects = generations.object_count(name, current) + len(generations.first_pages(name, current.generation))
    return {
        "count": current.count,
        "generation": current.generation,
        "objects": objects,
        "generationBytes": current.bytes,
    }


def _parsed(previous: bytes | None) -> dict[str, Any]:
    """The content of a saved report; empty if it cannot be read."""
    try:
        content = json.loads(previous or b"{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _comparable(content: dict[str, Any]) -> dict[str, Any]:
    """What two reports of the same state have in common; of `run` the keys, which differ between versions."""
    return {**content, "run": sorted(content.get("run", ()))}
