"""Hidden markets, private rows and unknown columns are never read."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from generator.source.relations import OPTIONAL, RELATIONS
from tests.source.native import Postgres, assert_same_files, insert_three_markets
from tests.support.sites.builds import build_now, make_config
from tests.support.sites.rows import insert_fill, insert_fx_member, insert_market, insert_order, insert_point, market_id

#: Whether a row of `markets` is public.
VISIBLE: Final = "approval = 'approved' AND is_listed"
#: Columns of hidden rows that WHERE, JOIN and ORDER BY need.
HARMLESS: Final = {"id", "market_id", "approval", "is_listed", "is_public", "created_at"}


def mined(relation: str, boom: Callable[[str, str], str]) -> str:
    """A view that fails if a value of a hidden row, or of an unknown column, is read."""
    key = "id" if relation == "markets" else "market_id"
    is_public = VISIBLE if relation == "markets" else f"{key} IN (SELECT id FROM markets_table WHERE {VISIBLE})"
    if "is_public" in RELATIONS[relation]:
        is_public += " AND is_public"
    columns = [
        name if name in HARMLESS else f"CASE WHEN {is_public} THEN {name} ELSE {boom(name, key)} END AS {name}"
        for name in (*RELATIONS[relation], *OPTIONAL.get(relation, ()))
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


MINES: Final = (
    ("markets", "question"), ("markets", "detail_version"), ("markets", "market_version"), ("markets", "key"),
    ("orders", "amount"), ("probabilities", "prob"), ("fills", "secret"),
)  # fmt: skip


@pytest.mark.campaign(short=0)
def test_sqlite_is_never_asked_for_a_hidden_value(tmp_path: Path, database: sqlite3.Connection) -> None:
    hide_some(database)
    plain = build_now(make_config(tmp_path))
    for name in ("detail_version", "market_version"):
        database.execute(f"ALTER TABLE markets ADD COLUMN {name} INTEGER DEFAULT 1")
    database.execute("ALTER TABLE markets ADD COLUMN key TEXT")
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
    assert (tmp_path / "mined" / "details.json").exists(), "the version was read"


@pytest.mark.campaign(short=0)
def test_postgresql_is_never_asked_for_a_hidden_value(
    tmp_path: Path, make_postgres: Callable[..., Postgres], database: sqlite3.Connection
) -> None:
    hide_some(database)
    build_now(make_config(tmp_path))
    served = make_postgres()
    served.copy(tmp_path / "markets.db")
    for name in ("detail_version", "market_version"):
        served.connection.execute(f"ALTER TABLE markets ADD COLUMN {name} integer DEFAULT 1")
        served.types["markets", name] = "integer"
    served.connection.execute("ALTER TABLE markets ADD COLUMN key text")
    served.types["markets", "key"] = "text"
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
    assert (tmp_path / "mined" / "details.json").exists(), "the version was read"
