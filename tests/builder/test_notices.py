"""Remarks about what is published differently than the rows say."""

import json
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from generator.api import forms, keys
from generator.builder.notices import CLOCK_SKEW, OF_QUESTIONS, OVERDUE_AFTER, Topic
from generator.builder.preflight import BuildCheck
from generator.progress import SILENT
from tests.support.readers.pages import PAGES
from tests.support.sites.builds import AS_OF, CHUNKED, build_now, files, make_config
from tests.support.sites.question_tables import create_questions, insert_question
from tests.support.sites.rows import (
    insert_category,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_point,
    market_id,
)

#: When the markets of these tests were settled; no other time.
SETTLED_AT = "2026-01-30T01:02:03.456Z"


def test_an_outcome_before_its_time_is_in_no_byte_and_in_a_remark_that_does_not_tell_it(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1, status="open", resolution="YES", resolved_at=SETTLED_AT)
    insert_market(database, 2, status="closed", resolution="NO")
    insert_market(database, 3, status="closed", resolved_at=SETTLED_AT)
    insert_market(database, 4)
    insert_market(database, 5, status="cancelled", resolution="CANCEL", resolved_at="2026-01-29T00:00:00Z")
    report = build_now(make_config(tmp_path))
    effect = "both are published as null until its status is resolved or cancelled"
    assert [remark.sentence() for remark in report.remarks] == [
        f"market {market_id(number)}: has a resolution or a resolved_at before its time ({status}); {effect}"
        for number, status in ((1, "open"), (2, "closed"), (3, "closed"))
    ]
    assert report.built == 5
    for key, body in files(tmp_path / "output").items():
        assert SETTLED_AT.encode() not in body, key
        assert key == keys.OPENAPI or not {b'"YES"', b'"NO"'} & {*body.replace(b":", b",").split(b",")}, key


def test_a_resolved_market_without_a_resolution_stays_published_with_a_remark(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1, status="resolved", resolved_at=SETTLED_AT)
    insert_market(database, 2, status="resolved", resolution="CANCEL", resolved_at=SETTLED_AT)
    report = build_now(make_config(tmp_path))
    assert [remark.sentence() for remark in report.remarks] == [
        f"market {market_id(1)}: is resolved but has no resolution; it is published as it stands: set its resolution"
    ]
    shown = json.loads((tmp_path / "output" / keys.detail(market_id(1))).read_bytes())["market"]
    assert (shown["status"], shown["resolution"], shown["resolvedAt"]) == ("resolved", None, SETTLED_AT)


def test_open_markets_past_their_closing_time_are_one_remark_that_names_the_recipe(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    still = forms.instant(AS_OF - OVERDUE_AFTER)
    insert_market(database, 1, close_time=still)
    insert_market(database, 2, status="closed", close_time="2026-01-01 00:00:00")
    assert build_now(make_config(tmp_path)).remarks == []
    effect = (
        "it is in the lists of open markets, and accepts no bets: publish it as closed, as docs/recipes.md says "
        "under “No status closed”"
    )
    insert_market(database, 3, close_time="2026-01-31 10:59:59.999")
    assert build_now(make_config(tmp_path)).findings() == [
        f"markets: 1 remark: is open past its close_time ({market_id(3)}: 2026-01-31T10:59:59.999Z); {effect}"
    ]
    insert_fx_member(database, market_id=insert_market(database, 4, close_time="2026-01-30 00:00:00"))
    insert_market(database, 5, close_time="2026-01-30 00:00:00")
    report = build_now(make_config(tmp_path))
    (remark,) = report.remarks
    assert (remark.key, remark.value) == (market_id(4), "2026-01-30T00:00:00.000Z, and 2 others")
    assert report.findings() == [], "told already"
    assert "\n## No status closed\n" in PAGES["docs/recipes.md"]


def insert_future(database: sqlite3.Connection) -> None:
    """Markets whose rows are dated after as-of, and one whose rows are not."""
    insert_market(database, 1, created_at="2031-01-01 00:00:00.000000")
    for number in (2, 3):
        insert_market(database, number, last_activity_at=f"2027-01-0{number} 00:00:00.000000")
    insert_market(database, 4, status="cancelled", resolved_at="2028-01-01 00:00:00.000000")
    insert_market(database, 5)
    for number in range(70):
        insert_fill(database, number, market_id=market_id(5), created_at="2029-01-01 00:00:00.000000")
        insert_point(database, f"2030-01-01 00:00:{number % 60:02}.000000", market_id=market_id(5))
    insert_market(database, 6, close_time="2040-01-01 00:00:00.000000")
    insert_fill(database, 99, market_id=market_id(6))
    insert_point(database, "2026-01-31 12:00:00.000000", market_id=market_id(6))


LOCAL = "correct it, or convert local time to UTC in a view"


def test_times_in_the_future_are_published_as_they_stand_with_a_line_for_each_column(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_future(database)
    report = build_now(make_config(tmp_path))
    assert (report.built, report.quarantine.total()) == (6, 0)
    assert report.findings() == [
        f"markets: {column} is in the future ({example}.000Z); {f'it leads the sort `{sort}`: ' if sort else ''}{LOCAL}"
        for column, example, sort in (
            (
                "2 remarks: last_activity_at",
                f"such as {market_id(2)}: 2027-01-02T00:00:00",
                "activity",
            ),
            ("1 remark: created_at", f"{market_id(1)}: 2031-01-01T00:00:00", "new"),
            ("1 remark: fills.created_at", f"{market_id(5)}: 2029-01-01T00:00:00", ""),
            ("1 remark: probabilities.recorded_at", f"{market_id(5)}: 2030-01-01T00:00:59", ""),
            ("1 remark: resolved_at", f"{market_id(4)}: 2028-01-01T00:00:00", "ended"),
        )
    ]
    listed = json.loads((tmp_path / "output" / keys.first_page("all/activity", 1)).read_bytes())["items"]
    assert listed[0]["id"] == market_id(3)
    told = json.loads((tmp_path / "output" / "report.json").read_bytes())["remarks"]
    assert told == [remark.sentence() for remark in report.remarks]
    assert len(told) == 6


def test_check_makes_the_remarks_that_a_build_makes(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_future(database)
    settings = make_config(tmp_path)
    check = BuildCheck(settings, AS_OF, SILENT)
    found = [finding.text for finding in check.database() if finding.severity == "warning"]
    assert check.measured
    assert check.measured.remarks == (report := build_now(settings)).remarks
    assert report.empty == ["fx_members", "orders"]
    assert found == [
        *report.findings(),
        "rows: 0 quarantined in all, 6 remarks; `public-markets check --all` names each",
    ]


@pytest.mark.parametrize(("late", "remarks"), [(timedelta(0), 0), (timedelta(milliseconds=1), 5)])
def test_clocks_may_differ_a_little(
    tmp_path: Path, database: sqlite3.Connection, late: timedelta, remarks: int
) -> None:
    time = forms.instant(AS_OF + CLOCK_SKEW + late)
    insert_market(database, status="cancelled", created_at=time, last_activity_at=time, resolved_at=time)
    insert_fill(database, created_at=time)
    insert_point(database, time)
    assert len(build_now(make_config(tmp_path)).remarks) == remarks


def test_a_fill_in_an_unusual_form_is_in_the_future_like_one_in_the_usual_form(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    usual, unusual = "2027-01-01 00:00:00.000000", "2027-01-01T02:00+02:00"
    for number, time in enumerate((usual, unusual), start=1):
        insert_market(database, number)
        insert_fill(database, number, market_id=market_id(number), created_at=time)
        insert_point(database, time, market_id=market_id(number))
    remarks = build_now(make_config(tmp_path)).remarks
    assert {(remark.what(), remark.value) for remark in remarks if remark.key == market_id(1)} == {
        (remark.what(), remark.value) for remark in remarks if remark.key == market_id(2)
    }
    assert len(remarks) == 4


def test_a_question_that_shows_nothing_is_published_with_a_remark(tmp_path: Path, database: sqlite3.Connection) -> None:
    empty = ["", "  ", "\u200b", "\n\t\u3000", "\u2028"]
    for number, question in enumerate([*empty, "?", "☃", "قبل"], start=1):
        insert_market(database, number, question=question)
    report = build_now(make_config(tmp_path))
    assert (report.built, report.quarantine.total()) == (8, 0)
    assert [remark.key for remark in report.remarks] == [market_id(number) for number in range(1, 6)]
    effect = "it is published as it stands: write the question, or hide the market"
    assert report.findings() == [f"markets: 5 remarks: question is empty (such as {market_id(1)}); {effect}"]


def test_a_category_as_long_as_a_name_may_be_is_a_remark_if_several_markets_have_it(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    """A view that cuts the questions of two groups to 100 characters makes one category of them."""
    for number, name in enumerate(["shared " + "n" * 93] * 2 + ["alone " + "n" * 94, "n" * 99, "n" * 99], start=1):
        insert_market(database, number)
        insert_category(database, name, market_id=market_id(number))
    report = build_now(make_config(tmp_path, variant="extended", **CHUNKED))
    (line,) = report.findings()
    assert line == (
        "categories: 1 remark: has 100 characters, the most that a name may have, as if a view had cut it "
        f"({'shared ' + 'n' * 72}…: 2 markets); of longer names, those that begin alike may have become one category: "
        "give each a shorter name of its own"
    )


def test_remarks_are_counted_by_topic_in_metrics(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_future(database)
    insert_market(database, 7, question="")
    samples = build_now(make_config(tmp_path)).samples()
    found = {key.labels[0][1]: count for key, count in samples.items() if key.name == "remarks"}
    assert {topic: count for topic, count in found.items() if count} == {"future_time": 6, "empty_question": 1}
    assert found.keys() == {*Topic} - OF_QUESTIONS
    create_questions(database)
    insert_question(database, 1, 7)
    database.execute("UPDATE question_members SET label = '', payout = 1")
    samples = build_now(make_config(tmp_path)).samples()
    found = {key.labels[0][1]: count for key, count in samples.items() if key.name == "remarks"}
    assert found.keys() == {*Topic}
    assert {topic for topic in OF_QUESTIONS if found[topic]} == {"blank_label", "early_payout", "new_questions"}
