"""What remains of a report after a takedown: nothing that tells of the markets, but that they are taken down. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from generator.builder import notices
from generator.builder.report_file import DownloadCounts, ListCounts, ReportFile, RunReport, SearchCounts
from generator.cost.estimate import Cost
from generator.models import replaced
from generator.site.catalog import Catalog
from generator.tree.blocklist import BlockedList
from generator.tree.manifest import Current

#: How remarks about a market or a category begin.
_MARKET, _CATEGORY = "market ", "category "


@dataclass(frozen=True)
class Remains:
    """What is published now. `categories` are those of the settings; `objects` counts all current ones."""

    catalog: Catalog
    categories: Collection[str]
    lists: Mapping[str, Current]
    objects: int
    retained: int
    search: SearchCounts | None
    downloads: DownloadCounts | None
    cost: Cost


def tells_of(report: ReportFile, ids: Collection[str]) -> bool:
    """Whether a report tells more of one of these markets than that it is gone."""
    run = report.run
    keys = (*run.added, *run.changed, *(row.key.lower() for row in report.quarantined), *map(_market, report.remarks))
    return not frozenset(ids).isdisjoint(keys)


def without(report: ReportFile, blocked: BlockedList, now: Remains) -> ReportFile:
    """The report of a build, as it is true of what remains of it."""
    kept = [row for row in report.quarantined if row.key.lower() not in blocked.ids()]
    dropped = sum(row.rows for row in report.quarantined if row not in kept and row.relation == "markets")
    counts = replaced(
        report.markets, published=len(now.catalog.markets), quarantined=report.markets.quarantined - dropped
    )
    return replaced(
        report,
        markets=counts,
        taken_down=_taken_down(report, blocked),
        lists={name: ListCounts.of(name, current) for name, current in now.lists.items()},
        search=now.search,
        downloads=now.downloads,
        retained_generations=now.retained,
        quarantined=kept,
        remarks=[*_remarks(report, now)],
        cost=now.cost,
        run=_run(report, now),
    )


def _taken_down(report: ReportFile, blocked: BlockedList) -> list[str]:
    """The blocked markets that the build left out, and those blocked since."""
    since = {market_id for market_id in blocked.ids() if blocked.markets[market_id].latest > report.as_of}
    return sorted(blocked.ids() & {*report.taken_down, *since})


def _remarks(report: ReportFile, now: Remains) -> Iterator[str]:
    """Those about markets that are published, and about nothing.

    Those about spellings of categories are left out: nobody knows any more whether only the markets had them.
    """
    ids = now.catalog.ids()
    for remark in report.remarks:
        if not remark.startswith(_CATEGORY) and (not remark.startswith(_MARKET) or _market(remark) in ids):
            yield remark
    for finding in notices.of_empty_categories(now.catalog.categories(), now.categories):
        yield finding.sentence()


def _market(remark: str) -> str:
    """The id of the market that a remark is about; empty if it is about anything else."""
    return remark.removeprefix(_MARKET).partition(":")[0] if remark.startswith(_MARKET) else ""


def _run(report: ReportFile, now: Remains) -> RunReport:
    """What the build did for that of it which is left."""
    run, ids = report.run, now.catalog.ids()
    written = min(run.written, now.objects)
    is_same_session = report.downloads and now.downloads and report.downloads.session == now.downloads.session
    return replaced(
        run,
        written=written,
        unchanged=now.objects - written,
        new_lists=[name for name in run.new_lists if name in now.lists],
        step_lines=run.step_lines if is_same_session else 0,
        added=[market_id for market_id in run.added if market_id in ids],
        changed=[market_id for market_id in run.changed if market_id in ids],
    )
