"""SQLite and PostgreSQL give the same build, whatever the types and settings of the database."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from generator.demo.database import seed
from generator.source.relations import RELATIONS
from tests.source.native import Postgres, assert_same_files
from tests.support.sites.builds import AS_OF, EXTENDED, build_now, make_config
from tests.support.sites.rows import insert_fill, insert_market, insert_order, insert_point

HEBREW: Final = "\u200f\u05e2\u05d1\u05e8\u05d9\u05ea, "
#: With every column, point and fill, and what builds remark then.
FULL: Final[dict[str, Any]] = {**EXTENDED, "layout": "chunks", "dumps__parquet": True, "dumps__fills": True}
REMARKS: Final = ["overdue", "unusable_slug", "unusable_slug"]
SETTINGS: Final = (
    *("TimeZone = 'America/St_Johns'", "DateStyle = 'German, DMY'", "client_encoding = 'LATIN1'"),
    *("extra_float_digits = -3", "standard_conforming_strings = off"),
    "default_transaction_isolation = 'read committed'",
)
AWKWARD: Final = "\u2028 and a tab\t and \\ and NULL \\N"


@pytest.fixture(scope="module")
def lifelike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a demo database of sixty markets and one of awkward numbers, built."""
    folder = tmp_path_factory.mktemp("lifelike")
    seed(folder / "markets.db", as_of=AS_OF, markets=60)
    with closing(sqlite3.connect(folder / "markets.db", isolation_level=None)) as connection:
        insert_market(connection, prob=0.1 + 0.2, volume=1e-7, pool_yes=12345678.000000001, pool_no=1e300)
        insert_market(connection, 2, question=HEBREW + "Łódź, 東京, 🙂", description=AWKWARD)
        insert_order(connection, price=0.1 + 0.2, amount=1 / 3)
        insert_order(connection, price=0.1 + 0.2, amount=1e-3)
        insert_fill(connection, price=2 / 3, amount=1 / 7, created_at="2026-01-31 11:59:59.999999")
        insert_point(connection, "2026-01-31 11:59:59.999999", 1 / 3)
    remarks = build_now(make_config(folder, **FULL)).remarks
    assert [remark.topic for remark in remarks] == REMARKS
    return folder


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("timestamp", "number"), [("timestamp", "numeric"), ("timestamptz", "double precision")])
def test_the_same_rows_give_the_same_bytes_whatever_the_server_is_set_to(
    lifelike: Path, tmp_path: Path, make_postgres: Callable[..., Postgres], timestamp: str, number: str
) -> None:
    database = make_postgres(timestamp=timestamp, number=number)
    database.copy(lifelike / "markets.db")
    for setting in SETTINGS:
        database.connection.execute(f"ALTER DATABASE {database.name} SET {setting}")
    remarks = build_now(make_config(tmp_path, source__url=database.url, **FULL)).remarks
    assert [remark.topic for remark in remarks] == REMARKS
    assert_same_files(tmp_path / "output", lifelike / "output")


def test_types_that_sqlite_does_not_know_are_as_good_as_its_own(lifelike: Path, tmp_path: Path) -> None:
    (tmp_path / "markets.db").write_bytes((lifelike / "markets.db").read_bytes())
    declared = {"id": "UUID", "text": "STRING", "timestamp": "TIMESTAMPTZ", "boolean": "BOOL", "number": "DECIMAL(9,6)"}
    with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as connection:
        for relation, columns in RELATIONS.items():
            typed = ", ".join(f"{name} {declared.get(kind, kind)}" for name, kind in columns.items())
            connection.execute(f"ALTER TABLE {relation} RENAME TO old")
            connection.execute(f"CREATE TABLE {relation} ({typed})")
            connection.execute(f"INSERT INTO {relation} SELECT {', '.join(columns)} FROM old")
            connection.execute("DROP TABLE old")
    build_now(make_config(tmp_path, **FULL))
    assert_same_files(tmp_path / "output", lifelike / "output")


def test_domains_of_postgresql_are_what_they_are_made_of(
    tmp_path: Path, make_postgres: Callable[..., Postgres]
) -> None:
    database = make_postgres()
    database.insert_market()
    database.connection.execute("CREATE DOMAIN share AS numeric CHECK (VALUE BETWEEN 0 AND 1)")
    database.connection.execute("CREATE DOMAIN one_line AS text CHECK (VALUE !~ E'\\n')")
    database.connection.execute(
        "ALTER TABLE markets ALTER prob TYPE share, ALTER question TYPE one_line USING question::one_line"
    )
    assert build_now(make_config(tmp_path, source__url=database.url)).built == 1
