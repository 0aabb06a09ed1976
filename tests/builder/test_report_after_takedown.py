"""A report after a takedown tells nothing of the markets but that they are taken down."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pytest

from generator.builder import notices, report_after_takedown
from generator.builder.report import MarketChanges, Report
from generator.builder.report_after_takedown import Remains, tells_of
from generator.builder.report_file import ReportFile
from generator.cost.estimate import Basis, Cost
from generator.findings import Finding
from generator.markets.quarantine import Quarantine
from generator.site.catalog import Catalog
from generator.tree.blocklist import BlockedList
from tests.support.sites.builds import NOW
from tests.support.sites.rows import market_id, public_market

LATER: Final = "2026-01-31T13:00:00.000Z"
EARLIER: Final = "2026-01-31T11:00:00.000Z"
GONE, LEFT, OLD, UNKNOWN = map(market_id, (1, 2, 3, 4))


def report(**fields: object) -> ReportFile:
    """The report of a build with one market that goes and one that stays."""
    return replace(Report(as_of=NOW, built=2, written=8, unchanged=2), **fields).file()  # type: ignore[arg-type]


def remaining(left: ReportFile, *gone: str, categories: Iterable[str] = ()) -> ReportFile:
    """The report after these markets were taken down, after an earlier takedown of another."""
    blocked = BlockedList().decided([OLD, UNKNOWN], is_blocked=True, now=EARLIER)
    cost = Cost(prices_as_of="2026-01-01", schedule=5, basis=Basis(), layouts={})
    catalog = Catalog([public_market(2)], as_of=NOW, hidden=0)
    now = Remains(
        catalog, [*categories], lists={}, objects=7, retained=0, search=None, downloads=None, cost=cost
    )  # fmt: skip
    return report_after_takedown.without(left, blocked.decided(gone, is_blocked=True, now=LATER), now)


def test_blocked_markets_that_the_build_left_out_and_those_blocked_since_are_taken_down() -> None:
    assert remaining(report(taken_down=[OLD]), GONE).taken_down == [GONE, OLD]


def test_what_the_build_did_is_told_of_what_is_left() -> None:
    changes = MarketChanges(since=EARLIER, added=[GONE], changed=[LEFT])
    run = remaining(report(markets=changes, new_lists=["open.ended-category/new"], step_lines=3), GONE).run
    assert (run.added, run.changed, run.new_lists, run.step_lines) == ([], [LEFT], [], 0)
    assert (run.written, run.unchanged) == (7, 0)
    assert run.since == EARLIER


def test_quarantined_rows_of_the_market_are_left_out() -> None:
    quarantine = Quarantine()
    for relation, key in (("markets", GONE.upper()), ("probabilities", GONE), ("markets", OLD), ("orders", LEFT)):
        quarantine.reject(relation, key, Finding(text="is wrong"), title="Secret?")
    before = report(quarantine=quarantine)
    found = remaining(before, GONE)
    assert [(row.relation, row.key) for row in found.quarantined] == [("orders", LEFT)]
    assert (before.markets.quarantined, found.markets.quarantined) == (2, 0)


def test_remarks_are_those_about_markets_that_are_left() -> None:
    """A spelling may be the market's own, so the next build tells of spellings again."""
    remarks = [
        notices.false_version(LEFT), notices.false_version(GONE), notices.new_session("dumps.json"),
        Finding(subject="category", key="Secret ", text="is published in another spelling", value="secret"),
    ]  # fmt: skip
    found = remaining(report(remarks=remarks), GONE, categories=["Politics"]).remarks
    assert [remark.partition(":")[0] for remark in found] == [
        f"market {LEFT}", "file dumps.json", "category Politics",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"markets": MarketChanges(added=[GONE])},
        {"markets": MarketChanges(changed=[GONE])},
        {"remarks": [notices.false_version(GONE)]},
    ],
)
def test_a_report_tells_of_a_market_that_was_published(fields: dict[str, object]) -> None:
    assert tells_of(report(**fields), [GONE])
    assert not tells_of(report(**fields), [LEFT])
    assert not tells_of(remaining(report(**fields), GONE), [GONE])


def test_a_report_may_say_that_a_market_is_gone() -> None:
    assert not tells_of(report(taken_down=[GONE], markets=MarketChanges(withdrawn=[GONE])), [GONE])
