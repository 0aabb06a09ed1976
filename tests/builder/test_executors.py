"""Several processes read parts if all see one instant, otherwise one does; the result is the same."""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from generator.api import keys
from generator.builder import executors
from generator.builder.last_details import LastDetails, Sample
from generator.builder.part_staging import PartWork, StagedPart
from generator.config.settings import Config
from generator.findings import Finding
from generator.markets.quarantine import Quarantine
from generator.progress import SILENT, Silent
from generator.source.reader import Reader, open_reader
from generator.tree.folder import locked
from tests.support.sites.builds import AS_OF, NOW, make_config
from tests.support.sites.rows import insert_fill, insert_market, insert_whole_market, market_id

MARKETS = 130


@pytest.fixture
def markets_folder(database: sqlite3.Connection, tmp_path: Path) -> Path:
    for number in range(MARKETS):
        insert_whole_market(database, number)
    insert_fill(database, 1_000, market_id=market_id(3), amount=-1.0)
    insert_fill(database, 1_001, market_id=market_id(120), amount=-1.0)
    insert_market(database, 5_000, is_listed=0)
    database.commit()
    return tmp_path


@contextmanager
def working(config: Config) -> Iterator[tuple[PartWork, Reader]]:
    with locked(config.output) as folder, open_reader(config, Quarantine()) as reader:
        last = LastDetails(folder, "")
        yield PartWork(config, folder, reader.survey(), last, Sample(0, 0), frozenset(), AS_OF, NOW), reader


def all_keys(parts: Iterable[StagedPart]) -> list[str]:
    return sorted(key for part in parts for key in part.staged.objects)


class Told(Silent):
    """Keeps what is said of workers, which is nothing without any."""

    def __init__(self) -> None:
        self.sentences = list[str]()

    def describe(self, doing: str) -> None:
        self.sentences.append(doing)


def no_remark(remark: Finding) -> None:
    pytest.fail(str(remark))


KEYS = sorted(keys.detail(market_id(number)) for number in range(MARKETS))


def test_ids_that_are_no_uuids_are_divided_too(database: sqlite3.Connection, tmp_path: Path) -> None:
    for number in range(20):
        insert_market(database, number, id=f"market {number:02}")
    with working(make_config(tmp_path)) as (work, reader):
        parts = work.survey.parts(5)
        assert len(parts) == 4, "a million of them at once would not fit into memory"
        staged = [*executors.alone(work, parts, reader)]
        assert [part.rendered.quarantine.total("markets") for part in staged] == [5, 5, 5, 5]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "wal"])
def test_workers_read_the_database_only_while_nobody_can_write(
    markets_folder: Path, database: sqlite3.Connection, mode: str
) -> None:
    database.execute(f"PRAGMA journal_mode = {mode}")
    told = Told()
    with working(make_config(markets_folder)) as (work, reader):
        assert all_keys(executors.staged(work, reader, told, no_remark)) == KEYS
    assert bool(told.sentences) == (mode != "wal")


def test_parts_that_workers_cannot_read_are_read_by_the_parent(markets_folder: Path) -> None:
    with working(make_config(markets_folder)) as (work, reader):
        (markets_folder / "markets.db").rename(markets_folder / "gone.db")
        assert all_keys(executors.staged(work, reader, SILENT, no_remark)) == KEYS


def test_workers_do_not_read_a_file_that_replaced_the_database(markets_folder: Path) -> None:
    with working(make_config(markets_folder)) as (work, reader):
        parts = [*work.survey.parts(50)]
        (markets_folder / "markets.db").rename(markets_folder / "old.db")
        shutil.copy(markets_folder / "old.db", markets_folder / "markets.db")
        with closing(sqlite3.connect(markets_folder / "markets.db")) as later:
            later.execute("UPDATE markets SET question = 'later'")
            later.commit()
        staged = [*executors.forked(work, parts, reader, reader.instant() or "", no_remark)]
        shown = {market.item.question for part in staged for market in part.rendered.markets.markets({})}
    assert shown == {f"Question {number}?" for number in range(MARKETS)}
