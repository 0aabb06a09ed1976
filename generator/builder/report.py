"""What a build did, for people and monitors: `output/report.json`, metrics and the summary line. Never published."""

import json
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from generator import __version__
from generator.builder import notices
from generator.builder.notices import Topic
from generator.builder.part_staging import DetailCounts
from generator.builder.report_file import (
    DownloadCounts,
    ListCounts,
    MarketCounts,
    ReportFile,
    RunReport,
    SearchCounts,
    Withdrawal,
    withdrawals,
)
from generator.cost.estimate import Cost
from generator.findings import Finding
from generator.markets.quarantine import Quarantine
from generator.metrics import Samples, sample
from generator.progress import Span
from generator.source.relations import RELATIONS
from generator.tree import layouts
from generator.tree.manifest import Current
from generator.wording import counted

#: How many withdrawn markets a report lists by id.
REMEMBERED: Final = 1_000


@dataclass(frozen=True)
class MarketChanges:
    """What became of the markets (ids) since the build as of `since`; empty if there was none."""

    since: str = ""
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    withdrawn_earlier: list[Withdrawal] = field(default_factory=list)

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


@dataclass
class Report:
    """What was built, and what the run did for it. Files and bytes are those under `v1/`.

    `empty` are the relations in which a first build found no row; report.json does not tell.
    """

    as_of: str = ""
    source: str = ""
    layout: str = layouts.LAYOUTS[0]
    built: int = 0
    hidden: int = 0
    taken_down: list[str] = field(default_factory=list)
    lists: Mapping[str, Current] = field(default_factory=dict)
    search: SearchCounts | None = None
    downloads: DownloadCounts | None = None
    step_lines: int = 0
    cost: Cost | None = None
    retained: int = 0
    quarantine: Quarantine = field(default_factory=Quarantine)
    written: int = 0
    written_bytes: int = 0
    unchanged: int = 0
    deleted: int = 0
    remarks: list[Finding] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    markets: MarketChanges = field(default_factory=MarketChanges)
    new_lists: list[str] = field(default_factory=list)
    details: DetailCounts = field(default_factory=DetailCounts)
    stages: dict[str, Span] = field(default_factory=dict)

    def file(self) -> ReportFile:
        """The content of report.json."""
        return ReportFile(
            as_of=self.as_of,
            generator=__version__,
            source=self.source,
            markets=MarketCounts(
                published=self.built, hidden=self.hidden, quarantined=self.quarantine.total("markets")
            ),
            taken_down=self.taken_down,
            lists={name: ListCounts.of(name, current) for name, current in self.lists.items()},
            search=self.search,
            downloads=self.downloads,
            retained_generations=self.retained,
            quarantined=[*self.quarantine],
            quarantined_unnamed=self.quarantine.unnamed(),
            remarks=[remark.sentence() for remark in self.remarks],
            cost=self.cost,
            run=self._run(),
        )

    def _run(self) -> RunReport:
        return RunReport(
            written=self.written,
            written_bytes=self.written_bytes,
            unchanged=self.unchanged,
            deleted=self.deleted,
            new_lists=self.new_lists,
            step_lines=self.step_lines,
            since=self.markets.since,
            added=self.markets.added,
            changed=self.markets.changed,
            withdrawn=self.markets.withdrawn,
            withdrawn_earlier=self.markets.withdrawn_earlier,
            details=asdict(self.details),
            seconds={name: round(span.seconds, 3) for name, span in self.stages.items()},
        )

    def content(self) -> dict[str, Any]:
        """The content of report.json as JSON values."""
        return self.file().content()

    def encoded(self) -> bytes:
        """The file's bytes."""
        return self.file().encoded()

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
        about = Counter(remark.topic for remark in self.remarks)
        metrics |= {sample("remarks", topic=topic): about[topic] for topic in Topic}
        metrics |= {sample("details", by=how): number for how, number in asdict(self.details).items()}
        metrics |= {sample("quarantined_rows", relation=name): self.quarantine.total(name) for name in RELATIONS}
        if self.cost:
            layout = self.cost.layouts[self.layout]
            metrics[sample("bytes")] = layout.bytes
            metrics |= {sample("cost_usd_per_month", place=place): usd for place, usd in layout.usd_per_month.items()}
        return metrics

    def findings(self) -> list[str]:
        """A line for every kind of bad row and of remark, each with an example, and for the markets withdrawn."""
        gone = self.markets.withdrawn
        withdrawn = f"withdrawn: market {gone[0]} is no longer public" if gone else ""
        if len(gone) > 1:
            withdrawn = f"withdrawn: {counted(len(gone), 'market', ',')} are no longer public (such as {gone[0]})"
        return [*self.quarantine.lines(), *notices.lines(self.remarks), *filter(None, [withdrawn])]

    def summary(self) -> str:
        """The line that ends a build; its words are a contract."""
        return (
            f"built {counted(self.built, 'market')} as of {self.as_of}: {counted(self.written, 'file')} written "
            f"({counted(self.written_bytes, 'byte')}), {self.unchanged} unchanged, {self.deleted} deleted, "
            f"{counted(self.quarantine.total(), 'row')} quarantined, "
            f"{sum(span.seconds for span in self.stages.values()):.1f} s"
        )

    def forecast(self) -> str:
        """The line that ends the build of a dry run."""
        return (
            f"dry run: would build {counted(self.built, 'market')} as of {self.as_of}: write "
            f"{counted(self.written, 'file')} ({counted(self.written_bytes, 'byte')}), leave {self.unchanged} "
            f"unchanged, delete {self.deleted}, {counted(self.quarantine.total(), 'row')} quarantined, "
            f"{sum(span.seconds for span in self.stages.values()):.1f} s"
        )


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
