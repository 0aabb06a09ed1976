"""PostgreSQL with the six relations in native types, and what several tests of the reader need."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from generator.source.relations import QUESTION_RELATIONS, RELATIONS, Kind
from tests.support.postgres import Server
from tests.support.sites.builds import files
from tests.support.sites.rows import (
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


class Postgres:
    """A database on the tests' server with the six relations in native types; or a new schema of one that is there."""

    def __init__(
        self,
        server: Server,
        *,
        timestamp: str = "timestamptz",
        number: str = "numeric",
        database: str | None = None,
        schema: str = "public",
    ) -> None:
        self.types: dict[tuple[str, str], str] = {}
        self.name = database or server.create_database()
        self.url = server.url(self.name)
        self.connection = server.connect(self.name)
        self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}; SET search_path = {schema}")
        self.connection.execute("SET TIME ZONE 'UTC'")
        for name, values in ENUMS.items():
            self.connection.execute(f"CREATE TYPE {name}_type AS ENUM {values}")
        self._native = NATIVE | {"timestamp": timestamp, "number": number}
        self._create(RELATIONS)

    def _create(self, relations: Mapping[str, Mapping[str, Kind]]) -> None:
        for relation, columns in relations.items():
            for name, kind in columns.items():
                self.types[relation, name] = f"{name}_type" if name in ENUMS else self._native[kind]
            typed = (f"{name} {self.types[relation, name]}, private_{name} text" for name in columns)
            self.connection.execute(f"CREATE TABLE {relation} ({', '.join(typed)})")

    def create_questions(self) -> None:
        """Add the relations of questions."""
        self._create(QUESTION_RELATIONS)

    def copy(self, sqlite: Path) -> None:
        """Copy the rows of an SQLite database."""
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


def detail(output: Path, number: int) -> Any:
    key = market_id(number)
    return json.loads((output / f"v1/public/markets/detail/{key[:2]}/{key}.json").read_bytes())


def assert_same_files(one: Path, other: Path) -> None:
    left, right = files(one), files(other)
    assert len(left) > 100
    assert list(left) == list(right)
    assert [key for key in left if left[key] != right[key]] == []


def insert_three_markets(into: sqlite3.Connection) -> None:
    for number in (1, 2, 3):
        insert_market(into, number)
        insert_order(into, market_id=market_id(number))
        insert_fill(into, number, market_id=market_id(number))
        insert_point(into, "2026-01-15 00:00:00.000000", market_id=market_id(number))
    insert_market(into, 4)
    insert_fx_member(into, market_id=market_id(4))
