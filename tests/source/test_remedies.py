"""Errors of the database are told in its own words, with what to do about them."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from generator.errors import ReadError, SourceError
from generator.markets.quarantine import Quarantine
from generator.source import remedies
from generator.source.reader import Reader, open_reader
from tests.source.native import Postgres
from tests.support.commands import run
from tests.support.postgres import PASSWORD, Server
from tests.support.sites.builds import make_config
from tests.support.sites.rows import insert_market, market_id

IPV6 = 'connection to server at "2001:db8::1", port 5432 failed: Network is unreachable'


@pytest.mark.parametrize(
    ("state", "message", "begin"),
    [
        ("57014", "canceling statement due to statement timeout", "raise the limit of the role that reads: ALTER ROLE"),
        ("57014", "canceling statement due to user request", "run again"),
        ("57014", "storniere Anfrage wegen Zeitüberschreitung der Anfrage", "raise the limit of the role"),
        ("25P04", "terminating connection due to transaction timeout", "raise the limit of the role"),
        ("40001", "canceling statement due to conflict with recovery", "a standby ends queries"),
        ("57P01", "terminating connection due to conflict with recovery", "a standby ends queries"),
        ("57P01", "terminating connection due to administrator command", None),
        ("57P03", "the database system is in recovery mode", None),
        (None, "FATAL:  sorry, too many clients already", "the server has no"),
        ("08P01", "query_wait_timeout", "the pool has no connection left"),
        (None, "FATAL:  no more connections allowed (max_client_conn)", "the pooler has no room"),
        (
            None,
            "remaining connection slots are reserved for roles with the SUPERUSER attribute",
            "the server has no",
        ),
        (None, 'FATAL:  too many connections for role "reader"', "the server has no room"),
        (None, "FATAL:  Tenant or user not found", "a pooler that serves many projects wants the user as ROLE.PROJECT"),
        (None, IPV6, "this host may have an IPv6 address only"),
        (None, "[Errno -5] No address associated with hostname", "this host may have an IPv6 address only"),
        (None, 'connection to server at "10.0.0.1", port 6543 failed: Connection refused', "port 6543 is a pooler's"),
        (None, 'connection to server at "10.0.0.1", port 6543 failed: FATAL:  password authentication failed', None),
        (None, f'{IPV6}\nconnection to server at "10.0.0.1", port 5432 failed: Connection refused', None),
        (None, "FATAL:  (ENOIDENTIFIER) no tenant identifier provided", "a pooler that serves many projects wants"),
        (None, "FATAL:  (EMAXCONNSESSION) max clients reached in session mode", "the pool has no connection left"),
        (None, "SSL error: certificate has expired", "renew the server's certificate"),
        (None, "SSL error: certificate verify failed", "name the file of its authority"),
    ],
)
def test_what_is_known_of_an_error_has_a_remedy(state: str | None, message: str, begin: str | None) -> None:
    remedy = remedies.remedy(state, message)
    assert (remedy or "").startswith(begin) if begin else remedy is None


def test_options_in_the_url_reach_the_driver(postgres: Server, tmp_path: Path) -> None:
    encrypted = f"{postgres.url('postgres')}?sslmode=require"
    for url, told in (
        (encrypted, "server does not support SSL, but SSL was required.*; check source.url, and that this user can"),
        ("postgresql://user@127.0.0.1:1/site?connect_timeout=soon", "bad value for connect_timeout: 'soon'"),
    ):
        with pytest.raises(SourceError, match=told), open_reader(make_config(tmp_path, source__url=url), Quarantine()):
            pass


def test_a_statement_that_takes_too_long_names_the_limit_and_not_a_column(
    make_postgres: Callable[..., Postgres], tmp_path: Path
) -> None:
    served = make_postgres()
    served.insert_market(1)
    served.connection.execute(
        f"""
        ALTER TABLE markets RENAME TO all_markets;
        CREATE VIEW markets AS SELECT m.* FROM all_markets AS m, pg_sleep(0.2) AS slept;
        CREATE ROLE hasty LOGIN PASSWORD '{PASSWORD}';
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO hasty;
        ALTER ROLE hasty SET statement_timeout = '100ms'
        """
    )
    url = served.url.replace("//admin:", "//hasty:")
    (tmp_path / "config.yaml").touch()
    for command in ("check", "build"):
        done = run(command, cwd=tmp_path, PUBLIC_MARKETS_SOURCE__URL=url)
        (sentence,) = [line for line in (done.stdout + done.stderr).splitlines() if "statement timeout" in line]
        assert sentence.endswith("raise the limit of the role that reads: ALTER ROLE … SET statement_timeout = '10min'")
        assert done.returncode == 1
    served.connection.execute("DROP OWNED BY hasty; DROP ROLE hasty")


def test_a_connection_that_ends_is_told_in_the_servers_words_wherever_it_ends(
    make_postgres: Callable[..., Postgres], tmp_path: Path
) -> None:
    served = make_postgres()
    served.insert_market(1)
    config = make_config(tmp_path, source__url=served.url)
    end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database()"
    for step in (Reader.survey, Reader.excess, Reader.schema_problems, Reader.failures, Reader.row_counts):

        def read() -> None:
            with open_reader(config, Quarantine()) as reader:
                served.connection.execute(f"{end} AND pid <> pg_backend_pid()")
                step(reader)  # noqa: B023 - it is called at once

        with pytest.raises(
            SourceError, match=r"terminating connection due to administrator command; run again$"
        ) as told:
            read()
        assert not isinstance(told.value, ReadError)


DYING = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 5")
database.execute("BEGIN")
database.execute("UPDATE markets SET description = hex(randomblob(3000))")
os._exit(9)
"""


def test_a_writer_that_died_is_told_with_who_may_undo_it(database: sqlite3.Connection, tmp_path: Path) -> None:
    for number in range(100):
        insert_market(database, number)
    database.commit()
    subprocess.run([sys.executable, "-c", DYING, tmp_path / "markets.db"], check=False)
    died = r"readonly database; a program died in the midst of a transaction: open the file once"
    with pytest.raises(SourceError, match=died), open_reader(make_config(tmp_path), Quarantine()) as reader:
        reader.survey()
    with closing(sqlite3.connect(tmp_path / "markets.db")) as site:
        assert site.execute("SELECT count(*) FROM markets").fetchone() == (100,)
    with open_reader(make_config(tmp_path), Quarantine()) as reader:
        assert len(reader.survey().keys) == 100


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root may give a process a folder that is read-only")
def test_a_write_ahead_log_in_a_folder_that_is_read_only_is_told(database: sqlite3.Connection, tmp_path: Path) -> None:
    insert_market(database)
    database.commit()
    database.execute("PRAGMA journal_mode = WAL")
    database.close()
    (tmp_path / "config.yaml").touch()
    program = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path} && cd {tmp_path} && exec "
    url = f"sqlite:///{tmp_path}/markets.db"
    build = f"{sys.executable} -m generator build --set source.url={url} --set output=/nowhere"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", program + build],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert f"SQLite must write beside it: let this user write to {tmp_path} (in a systemd unit: " in done.stderr


def test_ids_without_hyphens_are_told_how_to_get_them(database: sqlite3.Connection, tmp_path: Path) -> None:
    insert_market(database, id=market_id(1).replace("-", ""))
    database.commit()
    (tmp_path / "config.yaml").touch()
    told = run("check", f"--set=source.url=sqlite:///{tmp_path}/markets.db", cwd=tmp_path).stdout
    assert "id: not a UUID: its hyphens are missing (00000001000040008000000000000000); put them in" in told


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root may run as somebody else")
def test_a_file_that_this_user_may_not_read_is_told(database: sqlite3.Connection, tmp_path: Path) -> None:
    insert_market(database)
    database.commit()
    (place := Path(tempfile.mkdtemp(dir="/tmp"))).chmod(0o755)
    shutil.copy(tmp_path / "markets.db", place / "site.db")
    config = make_config(tmp_path, source__url=f"sqlite:///{place}/site.db")
    for mode, path, told in (
        (0o600, place / "site.db", "unable to open database file; let this user read the file$"),
        (0o700, place, f"{place}/site.db: permission denied; let this user enter its folder$"),
    ):
        path.chmod(mode)
        os.seteuid(65534)
        try:
            with pytest.raises(SourceError, match=told), open_reader(config, Quarantine()) as reader:
                reader.survey()
        finally:
            os.seteuid(0)
    shutil.rmtree(place)
