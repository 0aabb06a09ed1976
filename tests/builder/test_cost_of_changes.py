"""What builds to come cost: what a dry run foresees is what they write then."""

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.cost import prices
from generator.tree.layouts import LAYOUTS
from tests.support.sites.builds import AS_OF, EXTENDED, build_now, dry_run_of, make_config
from tests.support.sites.question_tables import create_questions, insert_question
from tests.support.sites.rows import insert_category, insert_fill, insert_market, market_id

#: How many objects fewer may change: the snapshot does not show all markets, nor the prices all that changes.
SPARED = 3
DAY = timedelta(days=1)


@pytest.fixture
def rows(database: sqlite3.Connection) -> sqlite3.Connection:
    """Open markets, of which two have a fill that is nearly a day old, and one closes soon."""
    for number in range(12):
        insert_market(database, number, question=f"Will number{number} win?", slug=f"market-{number}")
        insert_category(database, "politics", market_id=market_id(number))
    for number, minutes in enumerate((10, 50)):
        insert_fill(database, number, market_id=market_id(number), created_at=str(AS_OF - DAY + _minutes(minutes))[:19])
    database.execute("UPDATE markets SET close_time = ? WHERE id = ?", [str(AS_OF + _minutes(20))[:19], market_id(5)])
    database.commit()
    return database


def _minutes(number: int) -> timedelta:
    return timedelta(minutes=number)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("settings", [{}, EXTENDED], ids=["core", "extended"])
def test_one_changed_market_costs_what_was_foreseen(
    tmp_path: Path, rows: sqlite3.Connection, layout: str, settings: dict[str, Any]
) -> None:
    config = make_config(tmp_path, layout=layout, **settings)
    build_now(config)
    found = dry_run_of(config).of_one_market(prices.load())
    assert found is not None
    sentence, cost = found
    insert_fill(rows, 99, market_id=market_id(7))
    rows.execute("UPDATE markets SET volume = 4321, trader_count = 99 WHERE id = ?", [market_id(7)])
    report = build_now(config, AS_OF + _minutes(5))
    assert cost.objects - SPARED <= report.written <= cost.objects
    assert cost.bytes == pytest.approx(report.written_bytes, rel=0.2)
    assert f"{cost.objects:,} objects of some {cost.bytes:,} bytes" in sentence
    s3, r2 = cost.usd.values()
    assert r2 < s3 == pytest.approx((cost.objects + 3) * 5e-6), "a publish writes the record three times"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "settings", [{}, EXTENDED, {**EXTENDED, "questions__lists": False}], ids=["core", "lists", "none"]
)
def test_one_changed_market_of_a_question_costs_what_was_foreseen(
    tmp_path: Path, rows: sqlite3.Connection, layout: str, settings: dict[str, Any]
) -> None:
    create_questions(rows)
    insert_question(rows, 1, *range(12), slug="first")  # whichever market is the dearest
    config = make_config(tmp_path, layout=layout, **settings)
    build_now(config)
    found = dry_run_of(config).of_one_market(prices.load())
    assert found is not None
    insert_fill(rows, 99, market_id=market_id(7))
    rows.execute("UPDATE markets SET volume = 4321, trader_count = 99 WHERE id = ?", [market_id(7)])
    report = build_now(config, AS_OF + _minutes(5))
    assert found[1].objects - SPARED <= report.written <= found[1].objects
    assert found[1].bytes == pytest.approx(report.written_bytes, rel=0.25)


def test_where_nothing_is_traded_nothing_is_foreseen(tmp_path: Path, rows: sqlite3.Connection) -> None:
    config = make_config(tmp_path, layout="chunks")
    rows.execute("DELETE FROM fills")
    rows.execute("UPDATE markets SET status = 'cancelled'")
    assert dry_run_of(config).of_one_market(prices.load()) is None
