"""`v1/history.json` is what the database says, whatever was built before; nothing in it is of a withdrawn market."""

import json
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from generator.api import keys
from generator.api.downloads import CLOSES
from generator.cli.main import main
from generator.config.settings import Config
from tests.support.sites.builds import AS_OF, block, build_now, dump_head, files, make_config
from tests.support.sites.rows import insert_fx_member, insert_market, insert_point, market_id, tell_row_versions

#: A probability that only one market had, and no sum or difference makes.
CANARY: Final = 0.12345678901234
SETTINGS: Final = {"dumps__parquet": True, "history__public": True, "layout": "chunks"}
LATER: Final = AS_OF + timedelta(hours=5)


def resolved(database: sqlite3.Connection, number: int, outcome: str, week: float, day: float, **columns: Any) -> None:
    """A market that closed on 20 January, with its probabilities a week and a day before."""
    ended = {"status": "resolved", "resolution": outcome, "close_time": "2026-01-20 12:00:00.000000"}
    insert_market(database, number, **{**ended, "resolved_at": "2026-01-21 12:00:00.000000", **columns})
    for time, prob in (("13", week), ("19", day)):
        insert_point(database, f"2026-01-{time} 12:00:00.000000", prob, market_id=market_id(number))


@pytest.fixture
def site(tmp_path: Path, database: sqlite3.Connection) -> Config:
    """Markets 1 to 3 count; the others have no outcome yet, are not listed, bad, or closed on the day that runs."""
    resolved(database, 1, "YES", 0.75, 0.5)
    resolved(database, 2, "NO", 0.75, 0.25)
    resolved(database, 3, "NO", CANARY, 0.0)
    resolved(database, 4, "NO", 0.5, 0.5)
    insert_fx_member(database, market_id=market_id(4))
    resolved(database, 5, "CANCEL", 0.5, 0.5, status="cancelled")
    resolved(database, 6, "YES", 0.5, 0.5, approval="pending")
    resolved(database, 7, "YES", 0.5, 0.5, question=None)
    today = {"close_time": "2026-02-20 12:00:00.000000", "resolved_at": "2026-01-31 01:00:00.000000"}
    resolved(database, 8, "YES", 0.5, 0.5, **today)
    resolved(database, 9, "YES", 0.375, 0.375, status="closed", resolution=None, resolved_at=None)
    insert_market(database, 10)
    config = make_config(tmp_path, **SETTINGS, guards__max_invalid=0.5)
    build_now(config)
    return config


def record(site: Config) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site.output / keys.HISTORY).read_bytes())
    return found


def ranges(site: Config, horizon: int = 0) -> dict[float, tuple[Any, ...]]:
    """Count, mean and YES of the ranges that have markets."""
    calibration = record(site)["horizons"][horizon]["calibration"]
    return {one["low"]: (one["markets"], one["meanProb"], one["resolvedYes"]) for one in calibration if one["markets"]}


def takedown(site: Config, number: int) -> None:
    config = site.output.parent / "config.yaml"
    options = (f"--config={config}", f"--set=output={site.output}", "--yes")
    ran = CliRunner().invoke(main, ["takedown", market_id(number), *options])
    assert ran.exit_code == 0, ran.output


def test_exactly_the_listed_markets_that_resolved_and_closed_before_today_count(site: Config) -> None:
    found = record(site)
    assert (found["asOf"], found["resolvedYes"], found["resolvedNo"]) == ("2026-01-31T00:00:00.000Z", 1, 2)
    assert ranges(site) == {0.1: (1, CANARY, 0), 0.7: (2, 0.75, 1)}
    assert ranges(site, 1) == {0.0: (1, 0.0, 0), 0.2: (1, 0.25, 0), 0.5: (1, 0.5, 1)}
    squares = (0.25**2 + 0.75**2 + CANARY**2, 0.5**2 + 0.25**2)
    for horizon, total in zip(found["horizons"], squares, strict=True):
        assert (horizon["markets"], horizon["brierScore"]) == (3, pytest.approx(total / 3, rel=1e-15))


def test_without_the_setting_there_is_none(site: Config) -> None:
    build_now(make_config(site.output.parent, dumps__parquet=True, layout="chunks"), LATER, invalid=True)
    assert not (site.output / keys.HISTORY).exists()
    named = {key for key, body in files(site.output).items() if b"history.json" in body}
    assert named == {keys.CHANGELOG}


# ── the same, whatever was built before ───────────────────────────────────────────────────────────────────────────

_OF_3: Final = f"market_id = '{market_id(3)}'"
_LATE: Final = (
    f"INSERT INTO probabilities (market_id, recorded_at, prob) VALUES ('{market_id(3)}', '2026-01-{{}}', 0.9)"
)
_RESOLVED: Final = "status = 'resolved', resolution = 'YES', resolved_at = '2026-01-{} 13:00:00.000000'"
#: What may change on a day on which the files of histories were brought up to date already, and whether that changes
#: the record at once; None: once these files are brought up to date again, as they have the prices before closes.
CHANGES: Final = {
    "it resolves": (9, _RESOLVED.format(31), "", True),
    "it resolves, and closes by that": (10, _RESOLVED.format(31), "", False),
    "it resolved days ago, says its row now": (10, _RESOLVED.format(16), "", True),
    "another outcome": (3, "resolution = 'YES'", "", True),
    "no outcome": (3, "status = 'closed', resolution = NULL, resolved_at = NULL", "", True),
    "it closed at another time": (3, "close_time = '2026-01-17 12:00:00.000000'", "", None),
    "it closed today": (
        3, "close_time = '2026-01-31 12:30:00.000000', resolved_at = '2026-01-31 12:30:00.000000'", "", True,
    ),
    "it is hidden": (3, "approval = 'pending'", "", True),
    "it is shown": (6, "approval = 'approved'", "", None),
    "a point came late": (3, "volume = volume", _LATE.format("13 11:59:59.000000"), False),
    "a point came late and counts": (3, "volume = volume", _LATE.format("13 12:00:00.000000"), None),
    "a point came late, for the day before": (3, "volume = volume", _LATE.format("15 12:00:00.000000"), False),
    "its points went": (3, "volume = volume", f"DELETE FROM probabilities WHERE {_OF_3}", None),
    "its points were edited": (3, "volume = volume", f"UPDATE probabilities SET prob = 0.3 WHERE {_OF_3}", None),
    "it is a member of a family": (3, "volume = volume", "", True),
}  # fmt: skip


@pytest.mark.campaign(short=6)
@pytest.mark.parametrize("versions", [False, True], ids=["all is read", "versions"])
@pytest.mark.parametrize("name", CHANGES)
def test_builds_make_the_record_that_a_fresh_folder_gets_of_prices_that_were_there_or_of_a_new_day(
    site: Config, database: sqlite3.Connection, name: str, *, versions: bool
) -> None:
    number, assignments, statement, changes = CHANGES[name]
    if versions:
        database.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
        tell_row_versions(database)
    build_now(site, AS_OF + timedelta(minutes=1))
    before = record(site)
    database.execute(f"UPDATE markets SET {assignments} WHERE id = ?", [market_id(number)])
    database.execute(statement or "SELECT 1")
    if versions and statement:
        database.execute("UPDATE markets SET detail_version = 2 WHERE id = ?", [market_id(number)])
    if "member" in name:
        insert_fx_member(database, market_id=market_id(number))
    build_now(site, LATER, outcomes=True, shrink=True)
    if changes is not None:
        assert record(site) == fresh(site, LATER)
        assert (record(site) != before) == changes
    build_now(site, LATER + timedelta(days=1))
    assert record(site) == fresh(site, LATER + timedelta(days=1))


def fresh(site: Config, as_of: datetime) -> dict[str, Any]:
    """The record of a build into a new folder."""
    output = site.output.parent / f"{as_of:%d}"
    other = make_config(site.output.parent, **SETTINGS, guards__max_invalid=0.5, output=output)
    build_now(other, as_of)
    return record(other)


def test_the_next_day_counts_what_closed_on_the_last_although_nothing_else_changed(site: Config) -> None:
    build_now(site, AS_OF + timedelta(days=1))
    assert ranges(site) == {0.1: (1, CANARY, 0), 0.5: (1, 0.5, 1), 0.7: (2, 0.75, 1)}


def test_an_idle_build_leaves_its_bytes(site: Config) -> None:
    before = (site.output / keys.HISTORY).stat().st_mtime_ns
    assert keys.HISTORY not in build_now(site, LATER).new_lists
    assert (site.output / keys.HISTORY).stat().st_mtime_ns == before


# ── withdrawals, and damage ───────────────────────────────────────────────────────────────────────────────────────


def test_a_market_that_is_taken_down_leaves_the_figures_at_once(site: Config) -> None:
    canary = str(CANARY).encode()
    assert canary in (site.output / keys.HISTORY).read_bytes()
    takedown(site, 3)
    assert ranges(site) == {0.7: (2, 0.75, 1)}
    assert record(site)["resolvedNo"] == 1
    assert canary not in (site.output / keys.HISTORY).read_bytes()
    after = record(site)
    build_now(site, LATER, shrink=True)
    assert record(site) == after


def test_no_market_counts_that_was_blocked_before_the_build(site: Config) -> None:
    block(site.output, market_id(3))
    build_now(site, LATER, shrink=True)
    assert ranges(site) == {0.7: (2, 0.75, 1)}


def damaged(site: Config) -> None:
    (file,) = dump_head(site.output).table(CLOSES)
    path = site.output / file.key
    path.write_bytes(bytes(path.stat().st_size))


def test_a_damaged_file_of_closes_makes_a_build_a_full_one(site: Config, database: sqlite3.Connection) -> None:
    before = record(site)
    damaged(site)
    database.execute("UPDATE markets SET question = 'Renamed?' WHERE id = ?", [market_id(1)])
    build_now(site, LATER)
    assert record(site) == before


@pytest.mark.parametrize("number", [3, 10], ids=["with a row in it", "without"])
def test_a_takedown_beside_a_damaged_file_of_closes_leaves_no_record_and_the_next_build_makes_it(
    site: Config, number: int
) -> None:
    damaged(site)
    takedown(site, number)
    assert not (site.output / keys.HISTORY).exists()
    build_now(site, LATER, shrink=True)
    assert ranges(site)[0.7] == (2, 0.75, 1)
    assert (0.1 in ranges(site)) == (number != 3)


def test_the_record_of_a_run_that_was_killed_is_made_by_the_next(site: Config) -> None:
    before = record(site)
    (site.output / keys.HISTORY).unlink()
    build_now(site, LATER, full=True)
    assert record(site) == before
