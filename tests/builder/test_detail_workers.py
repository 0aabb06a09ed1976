"""Several processes read details if all see one instant, otherwise one does; the result is the same."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from generator.builder.detail_staging import DetailCounts, Reuse, StagedRange, Stager
from generator.builder.detail_workers import Details
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.last_details import LastDetails, Sample
from generator.config.settings import Config
from generator.markets.quarantine import Quarantine
from generator.source.queries import Range
from generator.source.reader import open_reader
from generator.tree.folder import locked
from tests.support.builds import AS_OF, NOW, build_now, files, make_config
from tests.support.rows import (
    fill_id,
    insert_fill,
    insert_market,
    insert_order,
    insert_point,
    market_id,  # fmt: skip
)

MARKETS = 130


@pytest.fixture
def site(database: sqlite3.Connection, tmp_path: Path) -> Path:
    for number in range(MARKETS):
        insert_market(database, number)
        insert_order(database, market_id=market_id(number))
        insert_fill(database, number, market_id=market_id(number))
        insert_point(database, "2026-01-15 00:00:00.000000", market_id=market_id(number))
    insert_fill(database, 1_000, market_id=market_id(3), amount=-1.0)
    insert_fill(database, 1_001, market_id=market_id(120), amount=-1.0)
    insert_market(database, 5_000, is_listed=0)
    database.commit()
    return tmp_path


def staged(config: Config, use: Callable[[Details], list[StagedRange | Range]]) -> list[StagedRange | Range]:
    quarantine = Quarantine()
    with locked(config.output) as folder, open_reader(config, quarantine) as reader:
        catalog = reader.catalog(AS_OF)
        stager = Stager(
            config, folder, Excerpts(catalog), Reuse(LastDetails(folder, ""), Sample(0, 0), DetailCounts()), NOW
        )
        return use(Details(config, catalog, reader, stager))


def test_ranges_hold_every_market_once(site: Path) -> None:
    def use(details: Details) -> list[StagedRange | Range]:
        assert len(details.ranges()) == details.count() == 3
        return [*details.stage_rest(())]

    keys = [key for result in staged(make_config(site), use) for key in result.staged.objects]  # type: ignore[union-attr]
    assert sorted(keys) == sorted(f"v1/public/markets/detail/00/{market_id(number)}.json" for number in range(MARKETS))


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "wal"])
def test_workers_read_the_database_only_while_nobody_can_write(
    site: Path, database: sqlite3.Connection, mode: str
) -> None:
    database.execute(f"PRAGMA journal_mode = {mode}")

    def use(details: Details) -> list[StagedRange | Range]:
        assert bool(details.ranges()) == (mode != "wal")
        return []

    staged(make_config(site), use)


@pytest.mark.campaign(short=0)
def test_a_build_in_one_process_and_one_in_several_are_the_same(site: Path, database: sqlite3.Connection) -> None:
    build_now(make_config(site, output=site / "several"))
    database.execute("PRAGMA journal_mode = wal")
    report = build_now(make_config(site, output=site / "one"))
    assert files(site / "one") == files(site / "several")
    one, several = ((site / name / "index.html").read_bytes().partition(b'"excerpts":') for name in ("one", "several"))
    assert one[2].partition(b"]}")[0] == several[2].partition(b"]}")[0] != b""
    assert [row.key for row, _ in report.quarantine] == [fill_id(1_000), fill_id(1_001)]


def test_a_few_markets_are_not_worth_a_process(database: sqlite3.Connection, tmp_path: Path) -> None:
    insert_market(database)
    database.commit()

    def use(details: Details) -> list[StagedRange | Range]:
        assert (details.ranges(), details.count()) == ([], 1)
        return []

    staged(make_config(tmp_path), use)


def test_ranges_that_workers_cannot_read_are_read_by_the_parent(site: Path) -> None:
    def use(details: Details) -> list[StagedRange | Range]:
        first = details.ranges()[0]
        (site / "markets.db").rename(site / "gone.db")
        assert details.stage_in_worker(first) == first
        return [*details.stage_rest(())]

    assert len(staged(make_config(site), use)) == 3


def test_workers_do_not_read_a_file_that_replaced_the_database(site: Path, database: sqlite3.Connection) -> None:
    def use(details: Details) -> list[StagedRange | Range]:
        (site / "markets.db").rename(site / "old.db")
        shutil.copy(site / "old.db", site / "markets.db")
        with closing(sqlite3.connect(site / "markets.db")) as later:
            later.execute("UPDATE markets SET question = 'later'")
            later.commit()
        assert [details.stage_in_worker(within) for within in details.ranges()] == details.ranges()
        return []

    staged(make_config(site), use)
