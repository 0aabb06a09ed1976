"""The content of `output/report.json`, as models."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from generator.api.downloads import ChangesHead, DumpHead
from generator.cost.estimate import Cost
from generator.markets.quarantine import QuarantinedRow
from generator.models import replaced
from generator.search.generation import Generation
from generator.tree import generations
from generator.tree.manifest import Current
from generator.tree.stored import StoredModel


class Withdrawal(StoredModel):
    """A market (id) that the build of `as_of` withdrew."""

    id: str
    as_of: str


class MarketCounts(StoredModel):
    """The markets of the database, by what became of them."""

    published: int
    hidden: int
    quarantined: int


class ListCounts(StoredModel):
    """One list: its items, its generation, and how many objects and bytes that has, first pages included."""

    count: int
    generation: str
    objects: int
    generation_bytes: int

    @classmethod
    def of(cls, name: str, current: Current) -> "ListCounts":
        """Count the current generation of the list with this name."""
        objects = generations.object_count(name, current) + len(generations.first_pages(name, current.generation))
        return cls(count=current.count, generation=current.generation, objects=objects, generation_bytes=current.bytes)


class SearchCounts(StoredModel):
    """The search index: its words, categories aside, its objects and their bytes, and those of the largest one."""

    words: int
    generation: str
    objects: int
    bytes: int
    largest_bytes: int

    @classmethod
    def of(cls, index: Generation) -> "SearchCounts":
        """Count an index."""
        weight = index.weight()
        largest = max(len(body) for _, body in (*index.objects(), *index.first_pages()))
        return cls(
            words=index.words,
            generation=index.name,
            objects=weight.objects,
            bytes=weight.bytes,
            largest_bytes=largest,
        )


class DownloadCounts(StoredModel):
    """Dump and change feed: the markets of the dump, the bytes of its files, and the retained steps.

    `history_files` and `history_bytes` are those of histories and fills. Without a change feed, `session` is empty.
    """

    as_of: str = ""
    markets: int = 0
    ndjson_bytes: int = 0
    parquet_bytes: int = 0
    history_files: int = 0
    history_bytes: int = 0
    session: str = ""
    serial: int = 0
    steps: int = 0
    steps_bytes: int = 0

    @classmethod
    def of(cls, head: DumpHead, feed: ChangesHead | None) -> "DownloadCounts":
        """Count a dump, and its change feed, if it has one."""
        histories = head.tables()
        counts = cls(
            as_of=head.as_of,
            markets=head.count,
            ndjson_bytes=head.ndjson.size,
            parquet_bytes=head.parquet.size if head.parquet else 0,
            history_files=len(histories),
            history_bytes=sum(file.size for file in histories),
        )
        return counts.followed_by(feed) if feed else counts

    def followed_by(self, feed: ChangesHead) -> Self:
        """The same with this change feed."""
        size = sum(step.size for step in feed.steps)
        changes = {"session": feed.session, "serial": feed.serial, "steps": len(feed.steps), "steps_bytes": size}
        return replaced(self, **changes)


class RunReport(StoredModel):
    """What the run did to the folder, and to which markets (ids); the only part that varies over the same data.

    `step_lines` are those of the step of the change feed that the run made.
    """

    written: int
    written_bytes: int
    unchanged: int
    deleted: int
    new_lists: list[str]
    step_lines: int
    since: str
    added: list[str]
    changed: list[str]
    withdrawn: list[str]
    withdrawn_earlier: list[Withdrawal]
    details: Mapping[str, int]
    seconds: Mapping[str, float]


class ReportFile(StoredModel):
    """The content of report.json. `quarantined_unnamed` counts the rows that `quarantined` does not list."""

    as_of: str
    generator: str
    source: str
    markets: MarketCounts
    taken_down: list[str]
    lists: Mapping[str, ListCounts]
    search: SearchCounts | None
    downloads: DownloadCounts | None
    retained_generations: int
    quarantined: list[QuarantinedRow]
    quarantined_unnamed: int
    remarks: list[str]
    cost: Cost | None
    run: RunReport

    def content(self) -> dict[str, Any]:
        """The content as JSON values."""
        return self.model_dump(mode="json", by_alias=True)

    def encoded(self) -> bytes:
        """The file's bytes."""
        return json.dumps(self.content(), indent=1).encode() + b"\n"


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
