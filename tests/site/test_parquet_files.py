"""A build's Parquet files: the markets of its dump with each build, and tables once a day."""

import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from generator import program
from generator.api import keys
from generator.api.downloads import DumpHead
from generator.builder.preflight import BuildCheck
from generator.config.settings import Config
from generator.downloads import side_file
from generator.errors import ConfigError
from generator.findings import Severity
from generator.models import replaced
from generator.progress import SILENT
from generator.tree import files as names
from tests.support.readers import parquet
from tests.support.sites.builds import AS_OF, build_now, dump_head, files, make_config
from tests.support.sites.rows import insert_fill, insert_market, insert_point, market_id

MORNING = datetime(2026, 2, 1, 6, tzinfo=UTC)
NOON = MORNING + timedelta(hours=6)
TOMORROW = MORNING + timedelta(days=1)
#: Markets by number: two that have ended, in different months, and two open ones.
ENDED = {1: "2025-12", 2: "2026-01"}
OPEN = (3, 4)


@pytest.fixture
def settings(tmp_path: Path, database: sqlite3.Connection) -> Config:
    for number, month in ENDED.items():
        insert_market(database, number, status="resolved", resolution="YES", resolved_at=f"{month}-20 00:00:00.000000")
    for number in OPEN:
        insert_market(database, number)
    for number in (*ENDED, *OPEN):
        point(database, number)
        point(database, number, 0.75)
        insert_fill(database, number, market_id=market_id(number))
    return make_config(tmp_path, dumps__parquet=True, layout="chunks")


def point(database: sqlite3.Connection, number: int, prob: float = 0.25) -> None:
    insert_point(database, f"2025-12-{round(prob * 20):02} 12:00:00.000000", prob, market_id=market_id(number))


def built(settings: Config, as_of: datetime = MORNING) -> DumpHead:
    build_now(settings, as_of, shrink=True)
    head = dump_head(settings.output)
    for file in head.files():
        content = body(settings, keys.chunk(keys.DUMPS, file.name))
        assert (sha256(content).hexdigest(), len(content)) == (file.sha256, file.size)
        assert file.url == f"{settings.base_url}/{keys.chunk(keys.DUMPS, file.name)}"
    return head


def body(settings: Config, key: str) -> bytes:
    return (settings.output / key).read_bytes()


def rows(settings: Config, name: str) -> list[dict[str, Any]]:
    return parquet.rows(body(settings, keys.chunk(keys.DUMPS, name)))


def points_of(settings: Config, head: DumpHead) -> list[dict[str, Any]]:
    return [row for file in head.history or () for row in rows(settings, file.name)]


def test_nothing_changes_when_nothing_changed(settings: Config) -> None:
    built(settings)
    before = files(settings.output, "v1/dumps")
    built(settings, NOON)
    built(settings, TOMORROW)
    assert files(settings.output, "v1/dumps") == before


def test_markets_follow_with_each_build_and_tables_once_a_day(settings: Config, database: sqlite3.Connection) -> None:
    morning = built(settings)
    point(database, 3, 0.5)
    database.execute("UPDATE markets SET volume = 4711 WHERE id = ?", [market_id(3)])
    noon = built(settings, NOON)
    assert rows(settings, noon.markets[1].name)[2]["volume"] == 4711
    assert noon.tables() == morning.tables()
    assert noon.history_as_of == morning.history_as_of
    tomorrow = built(settings, TOMORROW)
    assert (tomorrow.markets, tomorrow.as_of) == (noon.markets, noon.as_of)
    assert tomorrow.history_as_of == "2026-02-02T06:00:00.000Z"
    assert sum(row["marketId"] == market_id(3) for row in points_of(settings, tomorrow)) == 3


def test_a_market_that_is_no_longer_listed_leaves_its_files_at_once(
    settings: Config, database: sqlite3.Connection
) -> None:
    before = built(settings)
    database.execute("UPDATE markets SET approval = 'rejected' WHERE id IN (?, ?)", [market_id(1), market_id(3)])
    after = built(settings, NOON)
    for file in after.files()[1:]:
        assert {market_id(1), market_id(3)}.isdisjoint(parquet.owners(body(settings, file.key)))
    assert after.history_as_of == before.history_as_of
    assert {row["marketId"] for row in points_of(settings, after)} == {market_id(2), market_id(4)}


LOSSES: Final = ("file", "damaged", "side file")


def lose(output: Path, file: Path, lost: str) -> None:
    """Lose or damage a file, or what says of what the files are made."""
    if lost == "damaged":
        file.write_bytes(bytes(file.stat().st_size))
    else:
        (output / names.DUMP_PARTS if lost == "side file" else file).unlink()


def test_without_parquet_there_is_none(settings: Config) -> None:
    built(settings)
    head = built(replaced(settings, dumps=replaced(settings.dumps, parquet=False)), NOON)
    assert [file.format for file in head.markets] == ["ndjson"]
    assert (head.history, head.fills, head.history_as_of) == (None, None, None)


def test_an_empty_site_has_an_empty_file(tmp_path: Path, database: sqlite3.Connection) -> None:
    settings = make_config(tmp_path, dumps__parquet=True, layout="chunks")
    head = built(settings)
    assert rows(settings, head.markets[1].name) == []
    assert (head.history, head.fills, head.closes) == ([], None, [])


def test_a_setting_that_is_gone_is_named_by_each_build_once(settings: Config) -> None:
    told = replaced(settings, dumps=replaced(settings.dumps, histories="full"))
    for as_of in (MORNING, NOON):
        (remark,) = build_now(told, as_of).remarks
        assert "points are whole now, and trades need dumps.fills: true" in remark.sentence()
    assert build_now(settings, TOMORROW).remarks == []


@pytest.mark.parametrize("library", ["arro3", "numpy"])
def test_without_the_extra_check_and_build_say_how_to_install_it(
    settings: Config, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    remedy = "pip install 'public-markets[parquet]'"
    findings = BuildCheck(settings, MORNING, SILENT).settings()
    assert [finding.severity for finding in findings if remedy in finding.text] == [Severity.ERROR]
    with pytest.raises(ConfigError, match="parquet"):
        build_now(settings, MORNING)
    assert not (settings.output / "v1").exists()


# ── files that another program made ─────────────────────────────────────────────────────────────────────────────────


DUMPS: Final = "v1/dumps/"


def test_a_build_after_an_upgrade_makes_what_an_older_program_had_made(settings: Config) -> None:
    build_now(settings)
    fresh = files(settings.output)
    # An older program made other files of the same rows: these have other names, and their parts say the same.
    parquet = [key for key in fresh if key.startswith(DUMPS) and key.endswith(".parquet")]
    assert len(parquet) > 2
    place = settings.output / names.DUMP_PARTS
    found = side_file.decoded(place.read_bytes())
    assert found.maker == program.maker()
    place.write_bytes(replaced(found, maker="another").encoded())
    for key in parquet:
        (settings.output / key).write_bytes(b"made by another program".ljust(len(fresh[key])))
    build_now(settings, AS_OF + timedelta(minutes=1))
    assert {key: files(settings.output)[key] for key in parquet} == {key: fresh[key] for key in parquet}
    idle = build_now(settings, AS_OF + timedelta(minutes=2))
    assert idle.written == 1, "build.json alone"
