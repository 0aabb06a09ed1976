"""Hidden markets, private rows and unknown columns are never read."""

import sqlite3
from collections.abc import Callable
from functools import partial
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


def lay_mines(execute: Callable[[str], Any], boom: Callable[[str, str, str], str]) -> None:
    """Replace the tables by views; `boom` is of a relation, a column and the relation's key."""
    for column in ("detail_version integer DEFAULT 1", "market_version integer DEFAULT 1", "key text"):
        execute(f"ALTER TABLE markets ADD COLUMN {column}")
    for relation in RELATIONS:
        execute(f"ALTER TABLE {relation} RENAME TO {relation}_table")
    for relation in RELATIONS:
        execute(mined(relation, partial(boom, relation)))


def check(folder: Path, url: str) -> None:
    """A build of the views gives the files of the one before."""
    careful = build_now(make_config(folder, source__url=url, output=folder / "mined"))
    assert (careful.built, careful.hidden) == (4, 3)
    assert_same_files(folder / "output", folder / "mined")
    assert (folder / "mined" / "details.json").exists(), "the version was read"


def test_sqlite_is_never_asked_for_a_hidden_value(tmp_path: Path, database: sqlite3.Connection) -> None:
    hide_some(database)
    build_now(make_config(tmp_path))
    # The smallest number has no absolute value; a constant one would not wait to be read.
    lay_mines(database.execute, lambda *names: "abs(-9223372036854775807 - length({0}) / length({0}))".format(names[2]))
    for relation, column in MINES:
        with pytest.raises(sqlite3.OperationalError, match="integer overflow"):
            database.execute(f"SELECT {column} FROM {relation}").fetchall()
    check(tmp_path, f"sqlite:///{tmp_path / 'markets.db'}")


def test_postgresql_is_never_asked_for_a_hidden_value(
    tmp_path: Path, make_postgres: Callable[..., Postgres], database: sqlite3.Connection
) -> None:
    hide_some(database)
    build_now(make_config(tmp_path))
    served = make_postgres()
    served.copy(tmp_path / "markets.db")
    types = {**served.types, **{("markets", name): "integer" for name in ("detail_version", "market_version")}}

    def boom(relation: str, name: str, key: str) -> str:
        return f"(1 / (length({key}::text) - 36))::text::{types.get((relation, name), 'text')}"

    lay_mines(served.connection.execute, boom)
    for relation, column in MINES:
        with pytest.raises(psycopg.errors.DivisionByZero):
            served.connection.execute(f"SELECT {column} FROM {relation}")
    check(tmp_path, served.url)
