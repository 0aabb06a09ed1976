"""A value that only one database can hold costs one row."""

import sqlite3
from collections.abc import Callable
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any, Final

import pytest

from generator.builder.report import Report
from generator.markets import row_validation
from generator.markets.quarantine import Quarantine
from generator.source.queries import EVERYTHING
from generator.source.reader import open_reader
from tests.source.native import Postgres, detail
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.support.sites.rows import FX_MEMBER, fill_id, insert_fill, insert_fx_member, insert_market, market_id


def reasons(report: Report) -> dict[tuple[str, str], str]:
    return {(row.relation, row.key): row.reason for row in report.quarantine}


NO_TIME: Final = "not a time such as 2026-01-31T12:00:00Z"
INFINITE: Final = "input should be a finite number"
#: What PostgreSQL can hold and JSON or the calendar cannot.
UNSPEAKABLE: Final[list[tuple[dict[str, Any], str]]] = [
    ({"close_time": "infinity"}, f"close_time: {NO_TIME} (infinity)"),
    ({"created_at": "-infinity"}, f"created_at: {NO_TIME} (-infinity)"),
    ({"status": "resolved", "resolved_at": "0044-03-15 12:00:00 BC"}, "resolved_at: not a time"),
    ({"last_activity_at": "10000-01-01 00:00:00"}, f"last_activity_at: {NO_TIME} (10000-01-01 00:00:00"),
    ({"prob": "NaN"}, f"prob: {INFINITE}"),
    ({"volume": "Infinity"}, f"volume: {INFINITE}"),
    ({"pool_yes": "-Infinity"}, f"pool_yes: {INFINITE}"),
]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("timestamp", "number"), [("timestamp", "numeric"), ("timestamptz", "double precision")])
def test_what_postgresql_alone_can_hold_costs_one_row(
    tmp_path: Path, make_postgres: Callable[..., Postgres], timestamp: str, number: str
) -> None:
    database = make_postgres(timestamp=timestamp, number=number)
    good: dict[str, Any] = {"close_time": "9999-12-31 23:59:59.999999", "created_at": "0001-01-01 00:00:00"}
    database.insert_market(**good)
    for row, (columns, _) in enumerate(UNSPEAKABLE, start=10):
        database.insert_market(row, **columns)
    key = market_id(1)
    for at in ("infinity", "0044-03-15 12:00:00 BC", "2026-01-31 11:00:00"):
        database.insert("probabilities", market_id=key, recorded_at=at, prob=0.5)
        database.insert("fills", id=fill_id(len(at)), market_id=key, amount=1, shares=1, price=0.5, created_at=at)
    database.insert("probabilities", market_id=key, recorded_at="2026-01-31 11:30:00", prob="NaN")
    database.insert("fills", id=fill_id(1), market_id=key, amount="NaN", shares=1, created_at="2026-01-31 11:00:00")
    database.insert(
        "fills", id=fill_id(2), market_id=key, amount=1, shares=1, price="NaN", created_at="2026-01-31 11:00Z"
    )
    for price, amount in (("NaN", "1"), ("0.5", "NaN"), ("0.5", "Infinity"), ("0.5", "2")):
        database.insert("orders", market_id=key, side="ask", price=price, amount=amount, is_public=True)
    database.insert_market(2)
    family = {**FX_MEMBER, "week_start": "infinity", "is_public": True}
    database.insert("fx_members", market_id=market_id(2), **family)

    report = build_now(make_config(tmp_path, source__url=database.url), invalid=True)
    shown = detail(tmp_path / "output", 1)
    assert (report.built, shown["market"]["fills24h"]) == (1, 1)
    assert shown["market"]["closeTime"] == "9999-12-31T23:59:59.999Z"
    assert shown["market"]["createdAt"] == "0001-01-01T00:00:00.000Z"
    assert shown["probHistory"] == [{"timestamp": "2026-01-31T11:00:00.000Z", "prob": 0.5}]
    assert [fill["timestamp"] for fill in shown["recentFills"]] == ["2026-01-31T11:00:00.000Z"]
    assert shown["orderBook"] == {"bids": [], "asks": [{"price": 0.5, "amount": 2.0}]}
    found = reasons(report)
    for row, (_, reason) in enumerate(UNSPEAKABLE, start=10):
        assert found["markets", market_id(row)].startswith(reason)
    assert found["markets", market_id(2)].startswith("fx_members.week_start: not a date")
    counts = {name: report.quarantine.total(name) for name in ("markets", "fills", "orders", "probabilities")}
    assert counts == {"markets": len(UNSPEAKABLE) + 1, "fills": 4, "orders": 3, "probabilities": 3}


def test_a_member_of_a_public_family_stays_out_of_lists_in_whatever_case_its_id_is_spelled(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 10)
    insert_fx_member(database, market_id=market_id(10).upper())
    settings = make_config(tmp_path)
    report = build_now(settings)
    assert report.built == 1
    assert {current["count"] for current in report.lists.values()} == {0}


def test_fills_of_24_hours_are_counted_in_whatever_form_sqlite_holds_their_times(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    edge = AS_OF - timedelta(days=1)
    moments = [
        limit + timedelta(milliseconds=step)
        for limit in (edge, AS_OF)
        for size in (0, 1, 1000, 60_000, 3_600_000, 86_400_000, 90_000_000)
        for step in (size, -size)
    ]
    zones = [timezone(timedelta(minutes=minutes)) for minutes in (0, 330, -720, 840, 1439, -1439)]
    forms = ["%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dt%H:%M:%Sz", "%Y-%m-%d %H:%M"]
    times = [moment.strftime(form) for moment in moments for form in forms]
    times += [moment.astimezone(zone).isoformat(letter) for moment in moments for zone in zones for letter in " T"]
    insert_market(database)
    for number, time in enumerate(times):
        insert_fill(database, number, created_at=time)
    with open_reader(make_config(tmp_path), Quarantine()) as reader:
        ((_, market),) = reader.read(EVERYTHING, reader.survey().facts, AS_OF).public()
    wire = [row_validation.timestamp(time) for time in times]
    first, last = (row_validation.timestamp(moment.isoformat()) for moment in (edge, AS_OF))
    assert market.item.fills24h == sum(first < time <= last for time in wire) > 100
