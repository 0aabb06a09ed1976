"""A build sees one instant of the database, whatever is written meanwhile."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from generator.config.settings import Config
from generator.progress import Silent
from tests.source.native import Postgres, detail, insert_three_markets
from tests.support.sites.builds import build_now, files, make_config
from tests.support.sites.rows import fill_id, insert_market, market_id

pytestmark = pytest.mark.usefixtures("few_limits")

MEDDLING: Final = [
    statement.format(one=market_id(1), two=market_id(2), three=market_id(3), fill=fill_id(9))
    for statement in (
        "UPDATE markets SET question = 'Meddled?', prob = 0.9, status = 'closed' WHERE id = '{one}'",
        "DELETE FROM markets WHERE id = '{two}'",
        "DELETE FROM probabilities WHERE market_id = '{three}'",
        "UPDATE orders SET amount = 77 WHERE market_id = '{three}'",
        "UPDATE fills SET id = '{fill}', amount = 77, created_at = '2026-01-31 11:00:00' WHERE market_id = '{three}'",
        "UPDATE fx_members SET market_id = '{three}'",
    )
]


class Meddler(Silent):
    """Writes to the database between catalog and details: a build then reports its number of steps."""

    def __init__(self, write: Callable[[], object]) -> None:
        self._write = write
        self.written = False

    def start(self, steps: int) -> None:  # noqa: ARG002 - as the protocol has it
        self._write()
        self.written = True


def insert_many_markets(into: sqlite3.Connection) -> None:
    """Three, and enough more that several processes share their details."""
    insert_three_markets(into)
    for number in range(100, 250):
        insert_market(into, number)


def assert_unseen_until_the_next_build(settings: Config, write: Callable[[], object]) -> None:
    """Build undisturbed, then while a meddler writes, then after it."""
    meddler = Meddler(write)
    build_now(settings)
    before = files(settings.output)
    build_now(settings, progress=meddler)
    assert meddler.written
    assert files(settings.output) == before
    build_now(settings, shrink=True)
    assert detail(settings.output, 1)["market"]["question"] == "Meddled?"
    assert not (settings.output / f"v1/public/markets/detail/00/{market_id(2)}.json").exists()
    after = detail(settings.output, 3)
    assert after["market"]["fxFamilyMember"]
    assert (after["market"]["fills24h"], after["recentFills"][0]["amount"]) == (1, 77)
    assert (after["orderBook"]["bids"][0]["amount"], after["probHistory"]) == (77, [])


@pytest.mark.campaign(short=0)
def test_postgresql_shows_a_build_one_instant(
    tmp_path: Path, make_postgres: Callable[..., Postgres], database: sqlite3.Connection
) -> None:
    insert_many_markets(database)
    served = make_postgres()
    served.copy(tmp_path / "markets.db")

    def write() -> None:
        with served.connection.transaction():
            for statement in MEDDLING:
                served.connection.execute(statement)

    assert_unseen_until_the_next_build(make_config(tmp_path, source__url=served.url), write)


def test_sqlite_with_a_write_ahead_log_shows_a_build_one_instant(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_many_markets(database)
    assert database.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    script = f"BEGIN; {';'.join(MEDDLING)}; COMMIT"
    assert_unseen_until_the_next_build(make_config(tmp_path), lambda: database.executescript(script))


WAITING_WRITER: Final = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute("BEGIN IMMEDIATE")
for statement in sys.argv[2:]:
    connection.execute(statement)
print("about to commit", flush=True)
connection.execute("COMMIT")
connection.close()
"""


class PatientMeddler(Silent):
    """Starts a process that writes, and must wait until the build has read."""

    def __init__(self, database: Path) -> None:
        self._command = [sys.executable, "-c", WAITING_WRITER, str(database), *MEDDLING]
        self.steps_with_a_writer_waiting = 0
        self.is_reading = True

    def start(self, steps: int) -> None:  # noqa: ARG002 - as the protocol has it
        self.writer = subprocess.Popen(self._command, stdout=subprocess.PIPE)
        assert self.writer.stdout
        assert self.writer.stdout.readline() == b"about to commit\n"

    def expect(self, steps: int) -> None:  # noqa: ARG002 - as the protocol has it
        self.is_reading = False  # the steps that follow need no database

    def advance(self) -> None:
        if self.is_reading:
            assert self.writer.poll() is None
            self.steps_with_a_writer_waiting += 1

    def wait(self) -> None:
        self.writer.communicate(timeout=60)
        assert self.writer.returncode == 0


def test_sqlite_with_a_rollback_journal_lets_writers_wait_until_the_build_has_read(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_many_markets(database)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    settings = make_config(tmp_path)
    build_now(settings)
    before = files(settings.output)
    meddler = PatientMeddler(tmp_path / "markets.db")
    build_now(settings, progress=meddler)
    meddler.wait()
    assert meddler.steps_with_a_writer_waiting == 4, "one for each part"
    assert files(settings.output) == before
    assert database.execute("SELECT question FROM markets ORDER BY id").fetchone() == ("Meddled?",)
