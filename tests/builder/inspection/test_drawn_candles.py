"""The inspection page draws daily candles of popular markets where Parquet is published."""

import json
import re
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, expect

from generator.builder.inspection import excerpts
from generator.config.settings import Config
from generator.tree import files
from tests.builder.inspection.full_sites import built
from tests.support.readers.browser import window
from tests.support.sites.builds import AS_OF
from tests.support.sites.rows import insert_fill, insert_market, insert_point, market_id

NARROW: Final = (500, 900)
#: Time, probability.
POINTS: Final = (
    ("2026-01-27 10:00", 0.5), ("2026-01-28 09:00", 0.75), ("2026-01-28 12:00", 0.25), ("2026-01-30 09:00", 0.375),
    ("2026-01-31 09:00", 0.9),
)  # fmt: skip
DRAWN: Final = [
    "2026-01-27", *(0, 500, 500, 500, 500, 0.0, 0), *(1, 500, 750, 250, 250, 12.5, 2), *(3, 250, 375, 250, 375, 0.0, 0),
]  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, database: sqlite3.Connection) -> Config:
    """A market with candles of three days, and one without."""
    insert_market(database, 1, question="Which way?", trader_count=9)
    insert_market(database, 2, question="Nothing yet?", trader_count=1)
    for time, prob in POINTS:
        insert_point(database, f"{time}:00.000000", prob)
    for number, amount in ((1, 10.0), (2, 2.5)):
        insert_fill(database, number, amount=amount, created_at=f"2026-01-28 0{number}:00:00.000000")
    return built(tmp_path)


def shown(site: Config) -> dict[str, Any]:
    """The excerpts of the page, by id."""
    page = (site.output / files.INSPECTION).read_text("utf-8")
    found = re.search(r'id="data"[^>]*>(.*?)</script>', page)
    assert found
    return {one["id"]: one for one in json.loads(found[1])["excerpts"]}


def test_excerpts_have_the_candles_of_days_that_are_over(site: Config) -> None:
    assert shown(site)[market_id(1)]["candles"] == DRAWN
    assert "candles" not in shown(site)[market_id(2)]


def test_popular_markets_have_candles_of_no_more_than_sixty_days() -> None:
    prices = dict.fromkeys(("open", "high", "low", "close"), 0.5)
    rows = [{"start": f"{AS_OF + timedelta(days=day):%F}", **prices, "volume": 1.0, "trades": 1} for day in range(70)]
    first, *candles = excerpts.short_candles(rows)
    assert (first, candles[:2], len(candles)) == (rows[10]["start"], [0, 500], 60 * 7)


def test_candles_are_drawn_and_read_by_keys(site: Config, browser: Browser) -> None:
    with window(browser, size=NARROW, scheme="dark") as opened:
        watched = opened.open(f"{(site.output / files.INSPECTION).as_uri()}#market={market_id(1)}")
        chart = watched.page.locator(".chart").nth(1)
        expect(chart.locator(".wick")).to_have_count(3)
        assert (chart.locator(".rose").count(), chart.locator(".fell").count()) == (2, 1)
        label = "Daily candles from 2026-01-27 to 2026-01-30: from 50.0% to 37.5%, lowest 25.0%, highest 75.0%."
        assert chart.get_attribute("aria-label") == label
        chart.focus()
        watched.page.keyboard.press("Home")
        watched.page.keyboard.press("ArrowRight")
        readout = watched.page.locator(".readout").nth(1)
        text = "2026-01-28: open 50.0%, high 75.0%, low 25.0%, close 25.0%; volume 12.50 in 2 trades"
        assert readout.inner_text() == text
        assert watched.overflow() <= 0
        assert watched.violations() == []
        assert (watched.complaints, watched.foreign) == ([], [])
