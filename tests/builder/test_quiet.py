"""Runs in a row, by the command line: stderr has only what the last build had not told, and each line of it is true."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import forms, keys
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.news import News
from generator.builder.notices import Topic
from generator.builder.report import Report
from generator.builder.run import build
from generator.errors import BUILD_GUARDS
from generator.findings import Finding
from generator.markets.quarantine import Quarantine
from generator.metrics import sample
from generator.progress import SILENT
from generator.tree import files
from generator.tree.told import Told
from tests.support.commands import run
from tests.support.deaths import dying
from tests.support.sites.builds import AS_OF, CHUNKED, build_now, make_config
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.question_tables import create_questions, insert_question, question_id
from tests.support.sites.rows import (
    create_database,
    fill_id,
    insert_category,
    insert_fill,
    insert_market,
    insert_point,
    market_id,
    tell_row_versions,
)

AMOUNT: Final = "amount: input should be greater than or equal to 0"
PROB: Final = "prob: input should be less than or equal to 1"
CORRECT: Final = "; correct it"
TO_SHARE: Final = "; correct it, or convert it in a view (0.45 rather than 45)"
EMPTY: Final = "question is empty"
WRITE: Final = "; it is published as it stands: write the question, or hide the market"
SETTINGS: Final = """\
source: {url: "sqlite:///markets.db"}
layout: chunks
guards: {max_invalid: 1, max_shrink: 1}
"""
NAMES_EACH: Final = f"output/{files.REPORT} names each"


@dataclass
class Site:
    """A site whose every hour has a run of the real command; `clock` is the hour of the next one."""

    folder: Path
    database: sqlite3.Connection
    clock: int = 0

    def hours(self, number: int, *arguments: str) -> list[list[str]]:
        """The lines on stderr of the next runs."""
        return [self.hour(*arguments) for _ in range(number)]

    def hour(self, *arguments: str, code: int = 0) -> list[str]:
        """The lines on stderr of the next run, which must end with this code."""
        result = run("build", "--as-of", self.time(self.clock), *arguments, cwd=self.folder)
        self.clock += 1
        assert result.returncode == code, result.stderr
        assert code or "built " in result.stdout
        return result.stderr.splitlines()

    def time(self, clock: int) -> str:
        return forms.instant(AS_OF + timedelta(hours=clock))

    def report(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "output" / files.REPORT).read_bytes())
        return content

    def edit(self, statement: str, *values: object) -> None:
        assert self.database.execute(statement, values).rowcount


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site without anything to tell of, but for what a first build says of relations without rows."""
    database = create_database(tmp_path / "markets.db")
    for number in range(1, 8):
        insert_market(database, number)
    (tmp_path / "config.yaml").write_text(SETTINGS)
    made = Site(tmp_path, database)
    (line,) = made.hour()
    assert line.startswith("fx_members, orders, fills, probabilities: this folder's first build finds no row")
    return made


def with_versions(site: Site) -> None:
    """From the next build on, builds read only what changed, and those that find nothing end early."""
    site.database.execute("ALTER TABLE markets ADD COLUMN detail_version TEXT")
    site.database.execute("UPDATE markets SET detail_version = '1'")
    tell_row_versions(site.database)
    assert site.hours(2) == [[], []]


def with_all_read(site: Site) -> None:
    """Every build reads everything, as without versions."""
    assert site.hour() == []


@pytest.mark.parametrize("reading", [with_versions, with_all_read])
def test_what_is_new_is_told_in_full_once_and_what_went_is_told_once(
    site: Site, reading: Callable[[Site], None]
) -> None:
    reading(site)
    for number in range(20):
        insert_fill(site.database, number, market_id=market_id(1), amount=-1.0)
    site.edit("UPDATE markets SET question = '' WHERE id IN (?, ?)", market_id(2), market_id(3))
    changed = "UPDATE markets SET detail_version = coalesce(detail_version, '') || '.' WHERE id = ?"
    if reading is with_versions:
        site.edit(changed, market_id(1))
    assert site.hours(3) == [
        [
            f"WARNING: fills: 20 rows quarantined: {AMOUNT} (such as {fill_id(0)}: -1.0){CORRECT}",
            f"WARNING: markets: 2 remarks: {EMPTY} (such as {market_id(2)}){WRITE}",
            NAMES_EACH,
        ],
        [],
        [],
    ]
    insert_fill(site.database, 90, market_id=market_id(1), amount=-2.0)
    site.edit("UPDATE markets SET question = ' ' WHERE id = ?", market_id(5))
    if reading is with_versions:
        site.edit(changed, market_id(1))
    assert site.hours(2) == [
        [
            f"WARNING: new: fills: 1 row quarantined, 21 in all: {AMOUNT} ({fill_id(90)}: -2.0){CORRECT}",
            f"WARNING: new: markets: 1 remark, 3 in all: {EMPTY} ({market_id(5)}){WRITE}",
        ],
        [],
    ]
    site.edit("UPDATE fills SET amount = 1 WHERE id IN (?, ?)", fill_id(3), fill_id(90))
    site.edit("UPDATE markets SET question = 'Why?' WHERE id <= ?", market_id(5))
    if reading is with_versions:
        site.edit(changed, market_id(1))
    told = [f"gone: fills: 2 rows quarantined: {AMOUNT}", f"gone: markets: 3 remarks: {EMPTY}"]
    assert site.hours(2) == [told, []]


def test_a_row_whose_value_or_fault_changes_is_new_and_not_gone(site: Site) -> None:
    insert_market(site.database, 20, status="odd")
    (first,) = site.hour()
    assert first.startswith("WARNING: markets: 1 row quarantined: status: ")
    site.edit("UPDATE markets SET status = 'strange' WHERE status = 'odd'")
    assert site.hours(2) == [[first.replace(f"{market_id(20)}: odd", f"{market_id(20)}: strange")], []]
    (row,) = site.report()["quarantined"]
    assert row["since"] == site.time(1), "whatever the value was"
    site.edit("UPDATE markets SET volume = -1 WHERE status = 'strange'")
    volume = f"volume: input should be greater than or equal to 0 ({market_id(20)}: -1.0); correct it"
    assert site.hours(2) == [[f"WARNING: markets: 1 row quarantined: {volume}"], []]
    (row,) = site.report()["quarantined"]
    assert (row["since"], site.clock) == (site.time(1), 6), "since it had the first"


def test_a_bad_value_that_every_trade_moves_is_told_once(site: Site) -> None:
    """A view gives the probability in percent."""
    insert_market(site.database, 20, prob=45)
    told = list[list[str]]()
    for percent in (46, 47, 48):
        told.append(site.hour())
        site.edit("UPDATE markets SET prob = ? WHERE prob > 1", percent)
    assert [len(lines) for lines in told] == [1, 0, 0]
    (row,) = site.report()["quarantined"]
    assert (row["since"], "47" in row["reason"]) == (site.time(1), True)


def test_of_rows_without_ids_of_their_own_more_are_new_and_fewer_are_gone(site: Site) -> None:
    for second in range(3):
        insert_point(site.database, f"2026-01-02 00:00:0{second}", market_id=market_id(1), prob=7)
    example = f"{PROB} ({market_id(1)}: 7.0){TO_SHARE}"
    many = example.replace("(", "(such as ", 1)
    assert site.hours(2) == [[f"WARNING: probabilities: 3 rows quarantined: {many}", NAMES_EACH], []]
    insert_point(site.database, "2026-01-02 00:00:09", market_id=market_id(1), prob=7)
    assert site.hours(2) == [[f"WARNING: new: probabilities: 1 row quarantined, 4 in all: {example}"], []]
    site.edit("DELETE FROM probabilities WHERE recorded_at >= '2026-01-02 00:00:02'")
    assert site.hours(2) == [[f"gone: probabilities: 2 rows quarantined: {PROB}"], []]


def test_what_moves_as_time_passes_is_told_once(site: Site) -> None:
    """Another market is overdue every hour, another one has the long category, and trades are dated tomorrow."""
    (site.folder / "config.yaml").write_text(f"{SETTINGS}variant: extended\n")
    assert site.hour() == []
    for number in (1, 2):
        insert_category(site.database, "n" * 100, market_id=market_id(number))
    site.edit("UPDATE markets SET close_time = ? WHERE id = ?", site.time(0), market_id(1))
    told = list[list[str]]()
    for number in range(3, 7):
        site.edit("UPDATE markets SET close_time = ? WHERE id = ?", site.time(number - 3), market_id(number))
        insert_category(site.database, "n" * 100, market_id=market_id(number))
        insert_fill(site.database, number, market_id=market_id(7), created_at=f"2026-02-0{number} 00:00:00")
        told.append(site.hour())
    assert [line.split(" (")[0] for line in told[0]] == [
        "WARNING: categories: 1 remark: has 100 characters, the most that a name may have, as if a view had cut it",
        "WARNING: markets: 1 remark: fills.created_at is in the future",
        "WARNING: markets: 1 remark: is open past its close_time",
    ]
    assert told[1:] == [[], [], []]
    (overdue,) = (remark for remark in site.report()["remarks"] if "past its" in remark)
    assert f"({site.time(0)}, and 4 others)" in overdue
    assert {*site.report()["remarksSince"]} == {site.time(2)}


def test_a_log_of_everything_counts_what_the_last_build_had(site: Site) -> None:
    insert_market(site.database, 20, prob=7)
    site.edit("UPDATE markets SET question = '' WHERE id IN (?, ?)", market_id(2), market_id(3))
    assert len(site.hour()) == 3
    line = "INFO: as in the last build: 1 quarantined row, 2 remarks"
    assert [said for said in site.hour("-v") if not said.startswith("INFO: stage over")] == [line]
    assert site.report()["run"]["known"] == {"quarantined": 1, "remarks": 2}
    json_lines = [json.loads(said) for said in site.hour("--log-format", "json")]
    assert [said["message"] for said in json_lines if "stage" not in said] == [line.removeprefix("INFO: ")]


def test_a_refused_or_failed_build_neither_loses_what_it_did_not_tell_nor_forgets(site: Site) -> None:
    insert_market(site.database, 20, prob=7)
    first = site.hour()
    assert len(first) == 1
    insert_market(site.database, 21, prob=9)
    (refusal, *_) = site.hour("--set", "guards.max_invalid=0", code=3)
    assert refusal.startswith("error: 2 of 9 markets break the contract")
    assert site.hour("--set", "source.url=sqlite:///nowhere.db", code=1)[0].startswith("error: ")
    second = f"WARNING: new: markets: 1 row quarantined, 2 in all: {PROB} ({market_id(21)}: 9.0){TO_SHARE}"
    assert site.hours(2) == [[second], []]


def test_a_dry_run_tells_what_a_run_would_and_forgets_nothing(site: Site) -> None:
    target = ("--set", "publish.target=./store")
    assert run("rebuild", "--as-of", site.time(1), *target, cwd=site.folder).returncode == 0
    insert_market(site.database, 20, prob=7)
    line = f"WARNING: markets: 1 row quarantined: {PROB} ({market_id(20)}: 7.0){TO_SHARE}\n"
    for options, told in ((("--dry-run",), line), (("--dry-run",), line), ((), line), ((), ""), (("--dry-run",), "")):
        result = run("rebuild", "--as-of", site.time(2), *options, *target, cwd=site.folder)
        assert (result.returncode, result.stderr) == (0, told)


def test_a_setting_without_effect_at_the_target_is_for_check_and_not_for_every_hour(site: Site) -> None:
    options = ("--set", "publish.target=./store", "--set", "publish.endpoint_url=http://127.0.0.1:1")
    insert_market(site.database, 20, prob=7)
    assert run("rebuild", "--as-of", site.time(1), *options, cwd=site.folder).stderr.count("\n") == 1
    for command in (("rebuild", "--as-of", site.time(2)), ("publish",), ("rebuild", "--as-of", site.time(3))):
        result = run(*command, *options, cwd=site.folder)
        assert (result.returncode, result.stderr) == (0, "")
    line = "publish.endpoint_url: has no effect, because publish.target is the directory "
    assert f"INFO: {line}" in run("publish", "-v", *options, cwd=site.folder).stderr
    assert f"warning: {line}" in run("check", *options, cwd=site.folder).stdout


@pytest.mark.parametrize("report", [None, b"", b"{}", b"[]", b'{"told": {"faults": 1}}', "former"])
def test_without_the_last_report_all_is_told_again(site: Site, report: bytes | str | None) -> None:
    insert_market(site.database, 20, prob=7)
    first = site.hour()
    assert len(first) == 1
    assert site.hour() == []
    place = site.folder / "output" / files.REPORT
    if report is None:
        place.unlink()
    elif isinstance(report, str):
        place.write_text(json.dumps({name: value for name, value in site.report().items() if name != "told"}))
    else:
        place.write_bytes(report)
    assert site.hours(2) == [first, []]


def told_by(folder: Path, told: list[Report], later: int) -> None:
    """Build in this process, as killed ones can; what is told is kept."""
    overrides = BuildOverrides(accepted=frozenset(BUILD_GUARDS))
    clock = Clock(AS_OF + timedelta(hours=later), is_set=True)
    build(make_config(folder, **CHUNKED), clock, overrides=overrides, progress=SILENT, tell=told.append)


@pytest.mark.parametrize("place", [files.MANIFEST, files.REPORT, files.INSPECTION])
def test_what_a_build_found_that_was_killed_is_told_by_it_or_by_the_next_one(
    tmp_path: Path, database: sqlite3.Connection, place: str
) -> None:
    insert_market(database, 1)
    told = list[Report]()
    told_by(tmp_path, told, 0)
    insert_market(database, 20, prob=7)
    insert_market(database, 2)
    told.clear()
    with dying(lambda name, path: name == "replace" and path.name == place):
        told_by(tmp_path, told, 1)
    told_by(tmp_path, told, 2)
    told_by(tmp_path, told, 3)
    lines = [len(report.findings()) for report in told]
    assert lines == {files.MANIFEST: [1, 0], files.REPORT: [1, 1, 0], files.INSPECTION: [1, 0, 0]}[place]


def test_a_takedown_leaves_no_text_in_the_report_and_nothing_else_is_told_again(published_site: PublishedSite) -> None:
    published_site.edit(1, question="")
    published_site.edit(2, question="", slug="also-odd")
    assert "2 remarks: question is empty" in published_site.done("rebuild", "--as-of", hour(1)).stderr
    published_site.done("takedown", market_id(1))
    assert market_id(2) not in (published_site.folder / "output" / files.REPORT).read_text()
    lines = published_site.run("status").stdout.splitlines()
    assert "remarks: 2 remarks" in lines, "as the last build found, nobody knows since when"
    assert published_site.done("rebuild", "--as-of", hour(2)).stderr == "", "nothing was kept of who is gone"
    report = json.loads((published_site.folder / "output" / files.REPORT).read_bytes())
    assert dict(zip(report["remarks"], report["remarksSince"], strict=True)) == {
        f"market {market_id(2)}: {EMPTY}{WRITE}": f"{hour(1)[:-1]}.000Z"
    }


def test_a_withdrawn_market_is_shown_with_its_question(site: Site) -> None:
    site.edit("UPDATE markets SET question = ?, is_listed = 0 WHERE id = ?", "changed as it was hidden", market_id(2))
    line = f'WARNING: withdrawn: market {market_id(2)} is no longer public: "Question 2?"'
    assert site.hours(2) == [[line], []]
    site.edit("UPDATE markets SET is_listed = 0 WHERE id IN (?, ?)", market_id(5), market_id(4))
    line = f'WARNING: withdrawn: 2 markets are no longer public (such as {market_id(4)}: "Question 4?")'
    assert site.hours(2) == [[line, NAMES_EACH], []]
    (site.folder / "output" / keys.detail(market_id(6))).unlink()
    site.edit("DELETE FROM markets WHERE id = ?", market_id(6))
    assert site.hour() == [f"WARNING: withdrawn: market {market_id(6)} is no longer public"]


def test_a_key_that_several_markets_or_questions_have_is_told_with_their_ids(site: Site) -> None:
    site.database.execute("ALTER TABLE markets ADD COLUMN key TEXT")
    site.edit("UPDATE markets SET key = 'same' WHERE id IN (?, ?)", market_id(2), market_id(3))
    create_questions(site.database)
    for number in (1, 2):
        insert_question(site.database, number, number, key="k")
    same = "2 remarks: key cannot be used: another"
    assert [line.partition(";")[0] for line in site.hour()] == [
        f"WARNING: markets: {same} market has the same (such as {market_id(2)}: same, as has {market_id(3)})",
        f"WARNING: questions: {same} question has the same (such as {question_id(1)}: k, as has {question_id(2)})",
        "WARNING: databases: 1 remark: has questions now, and the last build had none (questions)",
        NAMES_EACH,
    ]
    assert site.hour() == []
    site.edit("UPDATE markets SET key = 'same' WHERE id = ?", market_id(5))
    insert_question(site.database, 3, 3, key="k")
    assert [line.partition(":")[2].partition(": key")[0] for line in site.hour()] == [
        " new: markets: 1 remark, 3 in all", " new: questions: 1 remark, 3 in all",
    ], "of those that had it, nothing is new but with whom"  # fmt: skip
    assert site.hour() == []


def test_a_slug_that_several_markets_have_is_told_with_their_ids(site: Site) -> None:
    extended = ("--set", "variant=extended")
    site.hour(*extended)
    site.edit("UPDATE markets SET slug = 'same' WHERE id IN (?, ?)", market_id(2), market_id(3))
    same = "slug cannot be used: another market has the same, or the same in another case"
    first, names_each = site.hour(*extended)
    assert (first.partition(";")[0], names_each) == (
        f"WARNING: markets: 2 remarks: {same} (such as {market_id(2)}: same, as has {market_id(3)})", NAMES_EACH
    )  # fmt: skip
    site.edit("UPDATE markets SET slug = 'same' WHERE id = ?", market_id(5))
    (third,) = site.hour(*extended)
    assert third.startswith(f"WARNING: new: markets: 1 remark, 3 in all: {same} ({market_id(5)}: same, as has ")


def test_metrics_count_what_is_new_for_a_day(tmp_path: Path, database: sqlite3.Connection) -> None:
    """A first build does not know since when they are there."""
    insert_market(database, 1)
    insert_fill(database, 1, market_id=market_id(1), amount=-1.0)
    config = make_config(tmp_path, **CHUNKED)

    def counted(later: int) -> list[float]:
        samples = build_now(config, AS_OF + timedelta(hours=later), invalid=True).samples()
        of_rows = ["quarantined_rows", "quarantined_rows_new"]
        return [
            *(samples[sample(name, relation=relation)] for relation in ("markets", "fills") for name in of_rows),
            *(samples[sample(name, topic=Topic.EMPTY_QUESTION)] for name in ("remarks", "remarks_new")),
        ]

    assert counted(-2) == counted(-1) == [0, 0, 1, 0, 0, 0]
    insert_market(database, 2, prob=7)
    database.execute("UPDATE markets SET question = '' WHERE id = ?", [market_id(1)])
    assert counted(0) == counted(23) == [1, 1, 1, 0, 1, 1]
    assert counted(24) == counted(25) == [1, 0, 1, 0, 1, 0]
    insert_fill(database, 2, market_id=market_id(1), amount=-1.0)
    assert counted(26) == counted(49) == [1, 0, 2, 1, 1, 0]
    assert counted(50) == [1, 0, 2, 0, 1, 0]
    (tmp_path / "output" / files.REPORT).unlink()
    assert counted(52) == counted(53) == [1, 0, 2, 0, 1, 0]
    report = json.loads((tmp_path / "output" / files.REPORT).read_bytes())
    assert {row["since"] for row in report["quarantined"]} == {*report["remarksSince"]} == {None}


def quarantined(*numbers: int) -> Quarantine:
    found = Quarantine(named_at_most=3)
    for number in numbers:
        found.reject("fills", f"{number:03}", Finding(column="amount", text="bad", remedy="correct it", value="-1"))
    return found


def test_rows_that_only_a_number_stands_for_are_told_when_the_number_changes() -> None:
    last, told = Told(), list[list[str]]()
    since = list[set[str]]()
    runs = (range(10, 18), range(10, 18), [5, *range(10, 18)], range(10, 18), range(11, 18), range(11, 13))
    for as_of, numbers in enumerate(runs):
        news = News(last, quarantined(*numbers), [], f"{as_of}")
        told.append([*news.lines(), *news.gone()])
        since.append({row["since"] for row in news.named_rows()})
        last = news.told()
    assert since == [{"0"}, {"0"}, {"0", "2"}, {"0"}, {"0"}, {"0"}], "of those that got a name, too"
    assert told == [
        ["fills: 8 rows quarantined: amount: bad (such as 010: -1); correct it"],
        [],
        ["new: fills: 1 row quarantined, 9 in all: amount: bad (005: -1); correct it"],
        ["gone: fills: 1 row quarantined: amount: bad"],
        ["gone: fills: 1 row quarantined: amount: bad"],
        ["gone: fills: 5 rows quarantined: amount: bad"],
    ]


def test_what_came_while_the_clock_was_ahead_came_with_the_build_that_is_older() -> None:
    remark = Finding(topic=Topic.EMPTY_QUESTION, subject="market", text=EMPTY, remedy="write it", key="k")
    ahead = News(Told(), quarantined(1), [remark], "2027")
    right = News(ahead.told(), quarantined(1), [remark], "2026")
    assert {right.since_of(remark), *(row["since"] for row in right.named_rows())} == {"2026"}
    assert [*right.lines()] == []


def with_faults(*columns: str, key: str = "a") -> Quarantine:
    found = Quarantine()
    if columns:
        found.reject("markets", key, *(Finding(column=column, text="bad", remedy="correct it") for column in columns))
    return found


def test_a_bad_row_is_as_old_as_its_first_fault_and_gone_with_its_last() -> None:
    last, sinces, gone = Told(), list[str | None](), list[list[str]]()
    for as_of, columns in enumerate((["prob"], ["prob", "volume"], ["volume"], ["key"], ["key"], [])):
        news = News(last, with_faults(*columns), [], f"{as_of}")
        sinces += [row["since"] for row in news.named_rows()]
        gone.append([*news.gone()])
        last = news.told()
    assert sinces == ["0"] * 5
    assert gone == [
        [], [], ["gone: markets: 1 fault: prob: bad"], ["gone: markets: 1 fault: volume: bad"], [],
        ["gone: markets: 1 row quarantined: key: bad"],
    ]  # fmt: skip


def test_a_row_is_not_as_old_as_another() -> None:
    first = News(Told(), with_faults("prob", key="a"), [], "1")
    second = News(first.told(), with_faults("volume", key="b"), [], "2")
    assert [row["since"] for row in second.named_rows()] == ["2"]
    assert [*second.gone()] == ["gone: markets: 1 row quarantined: prob: bad"]


def test_what_names_each_comes_after_the_warnings_and_before_what_is_gone(site: Site) -> None:
    site.edit("UPDATE markets SET question = '' WHERE id = ?", market_id(2))
    site.hour()
    site.edit("UPDATE markets SET question = 'Why?' WHERE id = ?", market_id(2))
    for number in (1, 2):
        insert_fill(site.database, number, market_id=market_id(1), amount=-1.0)
    warning, *others = site.hour()
    assert warning.startswith("WARNING: fills: 2 rows quarantined")
    assert others == [NAMES_EACH, f"gone: markets: 1 remark: {EMPTY}"]


def test_overdue_markets_are_told_again_when_they_are_ten_times_as_many() -> None:
    """Not when they were that many already."""
    told, last = list[int](), Told()
    for others in ("", ", and 8 others", ", and 9 others", ", and 8 others", ", and 9 others", ", and 1,233 others"):
        value = f"2026-01-31T12:00:00.000Z{others}"
        remark = Finding(topic=Topic.OVERDUE, subject="market", text="is open", remedy="close it", key="k", value=value)
        news = News(last, Quarantine(), [remark], "2026")
        assert [*news.gone()] == []
        told.append(len([*news.lines()]))
        last = news.told()
    assert told == [1, 0, 1, 0, 0, 1]


def test_what_happened_in_a_build_is_new_each_time_and_never_gone() -> None:
    damage = Finding(topic=Topic.DAMAGE, subject="file", text="was altered", remedy="look at the disk", key="v1/x")
    first = News(Told(), Quarantine(), [damage], "1")
    again = News(first.told(), Quarantine(), [damage], "2")
    assert [*first.lines()] == [*again.lines()] != []
    assert again.since_of(damage) == "2"
    assert [*News(again.told(), Quarantine(), [], "3").gone()] == []


def test_of_who_is_taken_down_nothing_is_kept_that_was_told() -> None:
    fault = Finding(column="id", text="bad", remedy="correct it")
    rows = Quarantine()
    for key in ("AB", "AB", "cd"):
        rows.reject("markets", key, fault)
    told = News(Told(), rows, [fault._replace(subject="market", key="ab")], "1").told().without({"ab"})
    assert [(kind.count, len(kind.since), kind.rows) for kind in (*told.faults, *told.remarks)] == [
        (1, 1, {}), (0, 0, {})
    ]  # fmt: skip


def test_a_question_that_has_too_many_markets_is_told_once_however_many_they_are() -> None:
    fault = Finding(column="id", text="the question has more than 1,000 public members", remedy="divide it")
    told, last = list[list[str]](), Told()
    for count in ("1,001", "1,002"):
        found = Quarantine()
        found.reject("questions", "q", fault._replace(value=count))
        news = News(last, found, [], "")
        told.append([*news.lines(), *news.gone()])
        last = news.told()
    assert [len(lines) for lines in told] == [1, 0]
