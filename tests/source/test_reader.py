"""Reading: SQLite and PostgreSQL alike, one instant, public rows only, in bounded memory, one bad row at a time."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from generator.builder.guards import BuildOverrides
from generator.builder.report import Report
from generator.builder.run import Clock, build
from generator.config.settings import Config
from generator.demo.database import seed
from generator.source.relations import RELATIONS
from tests.support.builds import AS_OF, EXTENDED, ROOT, Silent, build_now, files, make_config
from tests.support.postgres import Server
from tests.support.rows import (
    create_database,
    fill_id,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_order,
    insert_point,
    market_id,
    market_row,
)

ENUMS: Final = {
    "status": ("open", "closed", "resolved", "cancelled"),
    "approval": ("approved", "pending", "rejected"),
    "resolution": ("YES", "NO", "CANCEL"),
    "side": ("bid", "ask"),
    "direction": ("gte", "lte"),
}
NATIVE: Final = {"id": "uuid", "text": "text", "integer": "integer", "boolean": "boolean", "date": "date"}


HEBREW: Final = "\u200f\u05e2\u05d1\u05e8\u05d9\u05ea, "
AWKWARD: Final = "\u2028 and a tab\t and \\ and NULL \\N"


class Postgres:
    """A database on the tests' server with the six relations in native types."""

    def __init__(self, server: Server, *, timestamp: str = "timestamptz", number: str = "numeric") -> None:
        self.types: dict[tuple[str, str], str] = {}
        self.name = server.create_database()
        self.url = server.url(self.name)
        self.connection = server.connect(self.name)
        self.connection.execute("SET TIME ZONE 'UTC'")
        for name, values in ENUMS.items():
            self.connection.execute(f"CREATE TYPE {name}_type AS ENUM {values}")
        types = NATIVE | {"timestamp": timestamp, "number": number}
        for relation, columns in RELATIONS.items():
            for name, kind in columns.items():
                self.types[relation, name] = f"{name}_type" if name in ENUMS else types[kind]
            typed = (f"{name} {self.types[relation, name]}, private_{name} text" for name in columns)
            self.connection.execute(f"CREATE TABLE {relation} ({', '.join(typed)})")

    def copy(self, sqlite: Path) -> None:
        """Fill the relations with what an SQLite database holds."""
        with closing(sqlite3.connect(sqlite)) as source, self.connection.cursor() as cursor:
            for relation, columns in RELATIONS.items():
                truths = [number for number, kind in enumerate(columns.values()) if kind == "boolean"]
                with cursor.copy(f"COPY {relation} ({', '.join(columns)}) FROM STDIN") as copy:
                    for row in source.execute(f"SELECT {', '.join(columns)} FROM {relation}"):
                        copy.write_row([bool(v) if number in truths else v for number, v in enumerate(row)])

    def insert(self, relation: str, **columns: Any) -> None:
        marks = ", ".join(["%s"] * len(columns))
        self.connection.execute(f"INSERT INTO {relation} ({', '.join(columns)}) VALUES ({marks})", [*columns.values()])

    def insert_market(self, number: int = 1, **columns: Any) -> None:
        self.insert("markets", **market_row(number, **{"is_listed": True, **columns}))


@pytest.fixture
def make_postgres(postgres: Server) -> Iterator[Callable[..., Postgres]]:
    made: list[Postgres] = []

    def make(**types: str) -> Postgres:
        made.append(Postgres(postgres, **types))
        return made[-1]

    yield make
    for one in made:
        one.connection.close()


def detail(output: Path, number: int) -> Any:
    key = market_id(number)
    return json.loads((output / f"v1/public/markets/detail/{key[:2]}/{key}.json").read_bytes())


def reasons(report: Report) -> dict[tuple[str, str], str]:
    return {(row.relation, row.key): row.reason for row, _ in report.quarantine}


def assert_same_files(one: Path, other: Path) -> None:
    left, right = files(one), files(other)
    assert len(left) > 3_000
    assert list(left) == list(right)
    assert [key for key in left if left[key] != right[key]] == []


# ── both databases, one result ────────────────────────────────────────────────────────────────────────────────────


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
    build_now(make_config(folder))
    return folder


@pytest.mark.parametrize(("timestamp", "number"), [("timestamp", "numeric"), ("timestamptz", "double precision")])
def test_the_same_rows_give_the_same_bytes_whatever_the_server_is_set_to(
    lifelike: Path, tmp_path: Path, make_postgres: Callable[..., Postgres], timestamp: str, number: str
) -> None:
    database = make_postgres(timestamp=timestamp, number=number)
    database.copy(lifelike / "markets.db")
    for setting in (
        *("TimeZone = 'America/St_Johns'", "DateStyle = 'German, DMY'", "client_encoding = 'LATIN1'"),
        *(
            "extra_float_digits = -3",
            "default_transaction_isolation = 'read committed'",
            "standard_conforming_strings = off",
        ),
    ):
        database.connection.execute(f"ALTER DATABASE {database.name} SET {setting}")
    build_now(make_config(tmp_path, source__url=database.url))
    assert_same_files(tmp_path / "output", lifelike / "output")


def test_the_extended_variant_is_the_same_from_both_databases(
    lifelike: Path, tmp_path: Path, make_postgres: Callable[..., Postgres]
) -> None:
    database = make_postgres()
    database.copy(lifelike / "markets.db")
    made = []
    for name, url in (("sqlite", f"sqlite:///{lifelike / 'markets.db'}"), ("postgresql", database.url)):
        settings = make_config(tmp_path, source__url=url, output=tmp_path / name, **EXTENDED)
        made.append(build_now(settings).remarks)
    assert made[0] == made[1]
    assert len(made[0]) == 2, "two of the demo's markets share a slug"
    assert_same_files(tmp_path / "postgresql", tmp_path / "sqlite")


def test_indexes_change_nothing_but_the_time(lifelike: Path, tmp_path: Path) -> None:
    (tmp_path / "markets.db").write_bytes((lifelike / "markets.db").read_bytes())
    with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")]
        assert len(names) == 6
        for name in names:
            connection.execute(f"DROP INDEX {name}")
    build_now(make_config(tmp_path))
    assert_same_files(tmp_path / "output", lifelike / "output")


# ── one instant ───────────────────────────────────────────────────────────────────────────────────────────────────

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
    """Writes to the database when the catalog was read and no detail was: a build then reports its number of steps."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self.written = False

    def start(self, steps: int) -> None:  # noqa: ARG002 - as the protocol has it
        self._write()
        self.written = True


def insert_three_markets(into: sqlite3.Connection) -> None:
    for number in (1, 2, 3):
        insert_market(into, number)
        insert_order(into, market_id=market_id(number))
        insert_fill(into, number, market_id=market_id(number))
        insert_point(into, "2026-01-15 00:00:00.000000", market_id=market_id(number))
    insert_market(into, 4)
    insert_fx_member(into, market_id=market_id(4))


def insert_many_markets(into: sqlite3.Connection) -> None:
    """Three, and so many more that their details are shared out among processes."""
    insert_three_markets(into)
    for number in range(100, 250):
        insert_market(into, number)


def assert_unseen_until_the_next_build(settings: Config, meddler: Silent) -> None:
    """Build undisturbed, then while the meddler writes, then after it."""
    build_now(settings)
    before = files(settings.output)
    build(settings, Clock(AS_OF, is_set=True), overrides=BuildOverrides(), progress=meddler)
    assert files(settings.output) == before
    build_now(settings, shrink=True)
    assert detail(settings.output, 1)["market"]["question"] == "Meddled?"
    assert not (settings.output / f"v1/public/markets/detail/00/{market_id(2)}.json").exists()
    after = detail(settings.output, 3)
    assert after["market"]["fxFamilyMember"]
    assert (after["market"]["fills24h"], after["recentFills"][0]["amount"]) == (1, 77)
    assert (after["orderBook"]["bids"][0]["amount"], after["probHistory"]) == (77, [])


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

    meddler = Meddler(write)
    assert_unseen_until_the_next_build(make_config(tmp_path, source__url=served.url), meddler)
    assert meddler.written


def test_processes_share_an_instant_of_postgresql_and_a_server_that_lets_in_only_one_is_read_by_one(
    tmp_path: Path, make_postgres: Callable[..., Postgres], database: sqlite3.Connection
) -> None:
    insert_many_markets(database)
    served = make_postgres()
    served.copy(tmp_path / "markets.db")
    served.connection.execute("CREATE ROLE lonely LOGIN PASSWORD 'alone' CONNECTION LIMIT 1")
    served.connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO lonely")
    seen = Onlooker(served)
    settings = make_config(tmp_path, source__url=served.url)
    build(settings, Clock(AS_OF, is_set=True), overrides=BuildOverrides(), progress=seen)
    lonely = served.url.replace(served.url.split("//")[1].split("@")[0], "lonely:alone")
    build_now(make_config(tmp_path, source__url=lonely, output=tmp_path / "alone"))
    assert_same_files(settings.output, tmp_path / "alone")
    assert seen.most > 1


class Onlooker(Silent):
    """Counts the connections of a build while it goes on."""

    def __init__(self, served: Postgres) -> None:
        self._served = served
        self.most = 0

    def advance(self) -> None:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'public-markets'"
        self.most = max(self.most, self._served.connection.execute(count).fetchone()[0])


def test_sqlite_with_a_write_ahead_log_shows_a_build_one_instant(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_many_markets(database)
    assert database.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)

    def write() -> None:
        database.executescript("BEGIN;" + ";".join(MEDDLING) + ";COMMIT")

    meddler = Meddler(write)
    assert_unseen_until_the_next_build(make_config(tmp_path), meddler)
    assert meddler.written


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
    """Has another process write, which must wait for the build's read to end."""

    def __init__(self, database: Path) -> None:
        self._command = [sys.executable, "-c", WAITING_WRITER, str(database), *MEDDLING]
        self.steps_with_a_writer_waiting = 0

    def start(self, steps: int) -> None:  # noqa: ARG002 - as the protocol has it
        self.writer = subprocess.Popen(self._command, stdout=subprocess.PIPE)
        assert self.writer.stdout
        assert self.writer.stdout.readline() == b"about to commit\n"

    def advance(self) -> None:
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
    build(settings, Clock(AS_OF, is_set=True), overrides=BuildOverrides(), progress=meddler)
    meddler.wait()
    assert meddler.steps_with_a_writer_waiting == 34, "four details and thirty lists"
    assert files(settings.output) == before
    assert database.execute("SELECT question FROM markets ORDER BY id").fetchone() == ("Meddled?",)


# ── public rows and known columns only ────────────────────────────────────────────────────────────────────────────

#: Whether a row of `markets` is public.
VISIBLE: Final = "approval = 'approved' AND is_listed"
#: What WHERE, JOIN and ORDER BY need of hidden rows, too.
HARMLESS: Final = {"id", "market_id", "approval", "is_listed", "is_public", "created_at"}


def mined(relation: str, boom: Callable[[str, str], str]) -> str:
    """A view of a table that fails when a hidden row's value, or a column that is not ours, is read of it."""
    key = "id" if relation == "markets" else "market_id"
    is_public = VISIBLE if relation == "markets" else f"{key} IN (SELECT id FROM markets_table WHERE {VISIBLE})"
    if "is_public" in RELATIONS[relation]:
        is_public += " AND is_public"
    columns = [
        name if name in HARMLESS else f"CASE WHEN {is_public} THEN {name} ELSE {boom(name, key)} END AS {name}"
        for name in RELATIONS[relation]
    ]
    return f"CREATE VIEW {relation} AS SELECT {', '.join(columns)}, {boom(key, key)} AS secret FROM {relation}_table"


def hide_some(connection: sqlite3.Connection) -> None:
    insert_three_markets(connection)
    insert_order(connection, amount=77, is_public=0)
    insert_fx_member(connection, is_public=0)
    hidden: list[dict[str, Any]] = [{"approval": "pending"}, {"approval": "rejected"}, {"is_listed": 0}]
    for number, columns in enumerate(hidden, start=10):
        insert_market(connection, number, **columns)
        insert_order(connection, market_id=market_id(number))
        insert_fx_member(connection, market_id=market_id(number))
        insert_fill(connection, number, market_id=market_id(number))
        insert_point(connection, "2026-01-15 00:00:00.000000", market_id=market_id(number))


MINES: Final = (("markets", "question"), ("orders", "amount"), ("probabilities", "prob"), ("fills", "secret"))


def test_sqlite_is_never_asked_for_a_hidden_value(tmp_path: Path, database: sqlite3.Connection) -> None:
    hide_some(database)
    plain = build_now(make_config(tmp_path))
    for relation in RELATIONS:
        database.execute(f"ALTER TABLE {relation} RENAME TO {relation}_table")
    for relation in RELATIONS:  # the smallest number has no absolute value; a constant one would not wait to be read
        database.execute(mined(relation, lambda _, key: f"abs(-9223372036854775807 - length({key}) / length({key}))"))
    for relation, column in MINES:
        with pytest.raises(sqlite3.OperationalError, match="integer overflow"):
            database.execute(f"SELECT {column} FROM {relation}").fetchall()
    careful = build_now(make_config(tmp_path, output=tmp_path / "mined"))
    assert (plain.built, plain.hidden) == (careful.built, careful.hidden) == (4, 3)
    assert_same_files(tmp_path / "output", tmp_path / "mined")


def test_postgresql_is_never_asked_for_a_hidden_value(
    tmp_path: Path, make_postgres: Callable[..., Postgres], database: sqlite3.Connection
) -> None:
    hide_some(database)
    build_now(make_config(tmp_path))
    served = make_postgres()
    served.copy(tmp_path / "markets.db")
    for relation in RELATIONS:
        served.connection.execute(f"ALTER TABLE {relation} RENAME TO {relation}_table")
    for relation in RELATIONS:
        served.connection.execute(
            mined(
                relation,
                lambda name, key, relation=relation: (  # type: ignore[misc]
                    f"(1 / (length({key}::text) - 36))::text::{served.types[relation, name]}"
                ),
            )
        )
    for relation, column in MINES:
        with pytest.raises(psycopg.errors.DivisionByZero):
            served.connection.execute(f"SELECT {column} FROM {relation}")
    careful = build_now(make_config(tmp_path, source__url=served.url, output=tmp_path / "mined"))
    assert (careful.built, careful.hidden) == (4, 3)
    assert_same_files(tmp_path / "output", tmp_path / "mined")


# ── one bad row at a time ─────────────────────────────────────────────────────────────────────────────────────────

NO_TIME: Final = "not a time such as 2026-01-31T12:00:00Z"
INFINITE: Final = "input should be a finite number"
#: What PostgreSQL can hold and JSON or the calendar cannot.
UNSPEAKABLE: Final[list[tuple[dict[str, Any], str]]] = [
    ({"close_time": "infinity"}, f"close_time: {NO_TIME} (infinity)"),
    ({"created_at": "-infinity"}, f"created_at: {NO_TIME} (-infinity)"),
    ({"resolved_at": "0044-03-15 12:00:00 BC"}, "resolved_at: not a time"),
    ({"last_activity_at": "10000-01-01 00:00:00"}, f"last_activity_at: {NO_TIME} (10000-01-01 00:00:00"),
    ({"prob": "NaN"}, f"prob: {INFINITE}"),
    ({"volume": "Infinity"}, f"volume: {INFINITE}"),
    ({"pool_yes": "-Infinity"}, f"pool_yes: {INFINITE}"),
]


@pytest.mark.parametrize(("timestamp", "number"), [("timestamp", "numeric"), ("timestamptz", "double precision")])
def test_what_postgresql_alone_can_hold_costs_one_row(
    tmp_path: Path, make_postgres: Callable[..., Postgres], timestamp: str, number: str
) -> None:
    database = make_postgres(timestamp=timestamp, number=number)
    good: dict[str, Any] = {"close_time": "9999-12-31 23:59:59.999999", "created_at": "0001-01-01 00:00:00"}
    database.insert_market(**good)
    for row, (columns, _) in enumerate(UNSPEAKABLE, start=10):
        database.insert_market(row, **columns)
    key = market_id(1)
    for at in ("infinity", "0044-03-15 12:00:00 BC", "2026-01-31 11:00:00"):
        database.insert("probabilities", market_id=key, recorded_at=at, prob=0.5)
        database.insert("fills", id=fill_id(len(at)), market_id=key, amount=1, shares=1, price=0.5, created_at=at)
    database.insert("probabilities", market_id=key, recorded_at="2026-01-31 11:30:00", prob="NaN")
    database.insert("fills", id=fill_id(1), market_id=key, amount="NaN", shares=1, created_at="2026-01-31 11:00:00")
    database.insert(
        "fills", id=fill_id(2), market_id=key, amount=1, shares=1, price="NaN", created_at="2026-01-31 11:00Z"
    )
    for price, amount in (("NaN", "1"), ("0.5", "NaN"), ("0.5", "Infinity"), ("0.5", "2")):
        database.insert("orders", market_id=key, side="ask", price=price, amount=amount, is_public=True)
    database.insert_market(2)
    family = {
        "title": "t",
        "instrument": "i",
        "source": "s",
        "threshold_value": 1,
        "direction": "gte",
        "is_public": True,
    }
    database.insert("fx_members", market_id=market_id(2), week_start="infinity", week_end="2026-01-30", **family)

    report = build_now(make_config(tmp_path, source__url=database.url), invalid=True)
    shown = detail(tmp_path / "output", 1)
    assert (report.built, shown["market"]["fills24h"]) == (1, 1)
    assert shown["market"]["closeTime"] == "9999-12-31T23:59:59.999Z"
    assert shown["market"]["createdAt"] == "0001-01-01T00:00:00.000Z"
    assert shown["probHistory"] == [{"timestamp": "2026-01-31T11:00:00.000Z", "prob": 0.5}]
    assert [fill["timestamp"] for fill in shown["recentFills"]] == ["2026-01-31T11:00:00.000Z"]
    assert shown["orderBook"] == {"bids": [], "asks": [{"price": 0.5, "amount": 2.0}]}
    found = reasons(report)
    for row, (_, reason) in enumerate(UNSPEAKABLE, start=10):
        assert found["markets", market_id(row)].startswith(reason)
    assert found["markets", market_id(2)].startswith("fx_family_member.week_start: not a date")
    counts = {name: report.quarantine.total(name) for name in ("markets", "fills", "orders", "probabilities")}
    assert counts == {"markets": len(UNSPEAKABLE) + 1, "fills": 4, "orders": 3, "probabilities": 3}


def test_untyped_columns_of_sqlite_cost_one_row_for_each_odd_value(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    database.execute("DROP TABLE markets")
    database.execute(f"CREATE TABLE markets ({', '.join(RELATIONS['markets'])})")  # SQLite then keeps what it is given
    insert_market(database, 1, prob=1, volume=5)
    odd: list[tuple[dict[str, Any], str]] = [
        ({"question": 5}, "question: not a text (5)"),
        ({"question": b"bytes"}, "question: not a text (b'bytes')"),
        ({"id": 5}, "id: not a UUID (5)"),
        ({"id": market_id(3).encode()}, "id: not a UUID"),
        ({"close_time": 1_769_860_800}, f"close_time: {NO_TIME} (1769860800)"),
        ({"created_at": b"2026-01-31 12:00:00"}, f"created_at: {NO_TIME}"),
        ({"prob": "0.5"}, "prob: not a number (0.5)"),
        ({"prob": b"0.5"}, "prob: not a number"),
        ({"trader_count": "many"}, "trader_count: not a whole number (many)"),
        ({"description": 0.5}, "description: not a text (0.5)"),
    ]
    for row, (columns, _) in enumerate(odd, start=10):
        insert_market(database, row, **columns)
    insert_market(database, 30)
    database.execute("UPDATE markets SET question = CAST(x'66fc66' AS TEXT) WHERE id = ?", [market_id(30)])
    for row, approval in enumerate((b"approved", "Approved", "approved ", 1, None), start=40):
        insert_market(database, row, approval=approval)
    for row, is_listed in enumerate((None, 2, "true"), start=50):
        insert_market(database, row, is_listed=is_listed)
    report = build_now(make_config(tmp_path), invalid=True)
    assert (report.built, report.hidden) == (1, 8)
    market = detail(tmp_path / "output", 1)["market"]
    assert (market["prob"], market["volume"]) == (1.0, 5.0)
    found = [reason for (relation, _), reason in reasons(report).items() if relation == "markets"]
    assert len(found) == len(odd) + 1
    for _, reason in odd:
        assert [one for one in found if one.startswith(reason)], reason
    assert reasons(report)["markets", market_id(30)].startswith("question: not valid Unicode")


def test_a_member_of_a_public_family_stays_out_of_lists_in_whatever_case_its_id_is_spelled(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 10)
    insert_fx_member(database, market_id=market_id(10).upper())
    settings = make_config(tmp_path)
    report = build_now(settings)
    assert report.built == 1
    assert {current.count for current in report.lists.values()} == {0}


def test_types_that_sqlite_does_not_know_are_as_good_as_its_own(lifelike: Path, tmp_path: Path) -> None:
    (tmp_path / "markets.db").write_bytes((lifelike / "markets.db").read_bytes())
    declared = {
        "id": "UUID",
        "text": "STRING",
        "timestamp": "TIMESTAMPTZ",
        "boolean": "BOOL",
        "number": "DECIMAL(20,6)",
    }
    with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as connection:
        for relation, columns in RELATIONS.items():
            typed = ", ".join(f"{name} {declared.get(kind, kind)}" for name, kind in columns.items())
            connection.execute(f"ALTER TABLE {relation} RENAME TO old")
            connection.execute(f"CREATE TABLE {relation} ({typed})")
            connection.execute(f"INSERT INTO {relation} SELECT {', '.join(columns)} FROM old")
            connection.execute("DROP TABLE old")
    build_now(make_config(tmp_path))
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


# ── bounded memory ────────────────────────────────────────────────────────────────────────────────────────────────

#: Runs the command line and says how much memory its process held at most, in kB. Not ru_maxrss: that starts with what
#: the parent of a fork held.
MEASURED: Final = """
import sys
from generator.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def peak(folder: Path, url: str) -> float:
    """The most memory a build held, in MB."""
    (folder / "config.yaml").touch()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "build", "--as-of", AS_OF.isoformat()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PUBLIC_MARKETS_SOURCE__URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout.splitlines()[-1]) / 1024


FEW, MANY = 30_000, 300_000
#: Rows of one market, from a series of numbers `i`, in turn: history, a fill, an order.
LONG_PAST: Final = (
    """
    INSERT INTO probabilities (market_id, recorded_at, prob)
    SELECT '{id}', {time}, (i % 1000) / 1000.0 FROM {series} WHERE i % 3 = 0
    """,
    """
    INSERT INTO fills (id, market_id, amount, shares, price, created_at)
    SELECT {uuid}, '{id}', 1.5, 2.5, 0.5, {time} FROM {series} WHERE i % 3 = 1
    """,
    """
    INSERT INTO orders (market_id, side, price, amount, is_public)
    SELECT '{id}', 'bid', (i % 99 + 1) / 100.0, i, {true} FROM {series} WHERE i % 3 = 2
    """,
)
SQLITE_SERIES: Final = {
    "series": "(WITH RECURSIVE s (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < {rows} - 1) SELECT i FROM s)",
    "time": "strftime('%Y-%m-%d %H:%M:%f000', '2025-01-01', '+' || (i * 60) || ' seconds')",
    "uuid": "printf('%08x-0000-4000-9000-000000000000', i)",
    "true": "1",
}
POSTGRES_SERIES: Final = {
    "series": "generate_series(0, {rows} - 1) AS i",
    "time": "'2025-01-01Z'::timestamptz + i * interval '60 seconds'",
    "uuid": "(lpad(to_hex(i), 8, '0') || '-0000-4000-9000-000000000000')::uuid",
    "true": "true",
}


def long_past(series: dict[str, str], rows: int) -> Iterator[str]:
    for statement in LONG_PAST:
        yield statement.format(**{**series, "series": series["series"].format(rows=rows)}, id=market_id(1))


def test_memory_does_not_grow_with_the_past_on_sqlite(tmp_path: Path) -> None:
    peaks = []
    for rows in (FEW, MANY):
        folder = tmp_path / str(rows)
        folder.mkdir()
        with closing(create_database(folder / "markets.db")) as connection:
            insert_market(connection)
            connection.execute("BEGIN")
            for statement in long_past(SQLITE_SERIES, rows):
                connection.execute(statement)
            connection.execute("COMMIT")
        peaks.append(peak(folder, f"sqlite:///{folder / 'markets.db'}"))
        assert len(detail(folder / "output", 1)["probHistory"]) == 500
    assert peaks[1] - peaks[0] < 15, peaks


def test_memory_does_not_grow_with_the_past_on_postgresql(
    tmp_path: Path, make_postgres: Callable[..., Postgres]
) -> None:
    peaks = []
    for rows in (FEW, MANY):
        folder = tmp_path / str(rows)
        folder.mkdir()
        database = make_postgres(number="double precision")
        database.insert_market()
        for statement in long_past(POSTGRES_SERIES, rows):
            database.connection.execute(statement)
        peaks.append(peak(folder, database.url))
        assert len(detail(folder / "output", 1)["probHistory"]) == 500
    assert peaks[1] - peaks[0] < 15, peaks
