"""A build publishes the prices of open listed markets, changes that object when they do, and leaves out a large one."""

import json
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.api import keys, prices
from generator.builder.notices import Topic
from generator.config.settings import Config
from tests.support.sites.builds import AS_OF, NOW, build_now, make_config
from tests.support.sites.rows import insert_fx_member, insert_market, market_id

LATER = AS_OF + timedelta(hours=1)


@pytest.fixture
def settings(tmp_path: Path, database: sqlite3.Connection) -> Config:
    for number in range(1, 6):
        insert_market(database, number)
    database.execute("UPDATE markets SET status = 'closed' WHERE id = ?", [market_id(2)])
    database.execute("UPDATE markets SET is_listed = 0 WHERE id = ?", [market_id(3)])
    insert_fx_member(database, market_id=market_id(4))
    return make_config(tmp_path, layout="chunks", dumps__ndjson=False)


def shown(settings: Config) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((settings.output / keys.PRICES).read_bytes())
    return found


def test_it_has_open_listed_markets_of_no_fx_family_and_an_idle_build_leaves_it_as_it_is(
    settings: Config, database: sqlite3.Connection
) -> None:
    build_now(settings)
    assert [market["id"] for market in shown(settings)["markets"]] == [market_id(1), market_id(5)]
    before = (settings.output / keys.PRICES).stat().st_mtime_ns
    database.execute("UPDATE markets SET question = 'Another?'")
    build_now(settings, LATER)
    assert (settings.output / keys.PRICES).stat().st_mtime_ns == before, "it shows no question"
    assert shown(settings)["asOf"] == NOW
    database.execute("UPDATE markets SET prob = 0.75 WHERE id = ?", [market_id(5)])
    report = build_now(settings, LATER)
    assert not [remark for remark in report.remarks if remark.topic == Topic.NO_PRICES]
    assert shown(settings)["asOf"] != NOW
    assert [market["prob"] for market in shown(settings)["markets"]] == [0.5, 0.75]


def test_one_that_is_too_large_goes_with_a_remark(settings: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    build_now(settings)
    monkeypatch.setattr(prices, "MOST_BYTES", len((settings.output / keys.PRICES).read_bytes()) - 1)
    report = build_now(settings)
    assert not (settings.output / keys.PRICES).exists()
    (remark,) = (remark for remark in report.remarks if remark.topic == Topic.NO_PRICES)
    assert remark.key == keys.PRICES
    assert "prices_file" in remark.remedy
