"""A text that cannot be decoded costs its row, in whatever column it is and whichever database holds it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from generator.api import contract
from generator.source.relations import OPTIONAL, RELATIONS
from tests.source.native import detail
from tests.support.postgres import Server
from tests.support.sites.builds import EXTENDED, build_now, make_config
from tests.support.sites.rows import FX_MEMBER, fill_id, market_id, market_row

#: A byte that is no UTF-8, nor a letter in some encodings of one byte.
BAD: Final = b"\x81"
TYPES: Final = {"number": "double precision", "integer": "integer", "boolean": "boolean"}
#: What costs no row: a name by which the market is not found, or a version that is not published.
HARMLESS: Final = {"slug", "key", "detail_version", "market_version"}
#: Each column that holds texts, and may be undecodable in a row that is read; SQLite's times and ids are texts.
TEXTS: Final = [
    (relation, column)
    for relation, columns in RELATIONS.items()
    for column, kind in (*columns.items(), *dict.fromkeys(OPTIONAL.get(relation, ()), "text").items())
    if kind in {"id", "text", "timestamp", "date"} and column not in {"approval", "market_id"}
]

Put = Callable[[str], Any]


def create(put: Put, *, is_native: bool) -> None:
    types = {**TYPES, "timestamp": "timestamptz", "date": "date"} if is_native else TYPES
    for relation, columns in RELATIONS.items():
        typed = [f"{name} {types.get(kind, 'text')}" for name, kind in columns.items()]
        put(
            f"CREATE TABLE {relation} ({', '.join([*typed, *(f'{name} text' for name in OPTIONAL.get(relation, ()))])})"
        )


def literal(value: object) -> str:
    if value is None or isinstance(value, bool | int | float):
        return "NULL" if value is None else str(value)
    return "'" + str(value).replace("'", "''") + "'"


def insert(put: Put, relation: str, **row: object) -> None:
    put(f"INSERT INTO {relation} ({', '.join(row)}) VALUES ({', '.join(map(literal, row.values()))})")


def insert_market(put: Put, number: int) -> None:
    """A market with a row of each relation, so that any column can be spoilt."""
    own, when = {"market_id": market_id(number)}, "2026-01-15 00:00:00"
    versions = {"key": f"k{number}", "detail_version": "1", "market_version": "1"}
    settled = {"status": "resolved", "resolution": "YES", "resolved_at": when}
    insert(put, "markets", **market_row(number, is_listed=True, slug=f"m-{number}", **settled) | versions)
    insert(put, "market_categories", **own, category="Weather", position=0)
    insert(put, "fx_members", **own, **FX_MEMBER, is_public=True)
    insert(put, "orders", **own, side="bid", price=0.4, amount=5.0, is_public=True)
    insert(put, "fills", **own, id=fill_id(number), amount=1.0, shares=2.0, price=0.5, created_at=when)
    insert(put, "probabilities", **own, recorded_at=when, prob=0.5)


def spoil(put: Put, bad: str, *, kinds: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Spoil each column of a text in a row of another market; what was spoilt, with its market."""
    spoilt = []
    for number, (relation, column) in enumerate(TEXTS, start=1):
        insert_market(put, number)
        if RELATIONS[relation].get(column, "text") in kinds:
            key = "id" if relation == "markets" else "market_id"
            put(f"UPDATE {relation} SET {column} = {bad} WHERE {key} = '{market_id(number)}'")
            spoilt.append((relation, column, market_id(number)))
    return spoilt


def assert_each_costs_its_row(spoilt: list[tuple[str, str, str]], url: str, folder: Path) -> None:
    report = build_now(make_config(folder, source__url=url, **EXTENDED), invalid=True)
    named = {(row.relation, row.key): row.reason for row in report.quarantine}
    for relation, column, key in spoilt:
        owner, name = ("markets", f"fx_members.{column}") if relation == "fx_members" else (relation, column)
        if column in {"slug", "key"}:
            assert [remark for remark in report.remarks if (remark.key, remark.text[:4]) == (key, f"{column} "[:4])]
        elif column not in HARMLESS:
            reasons = [
                reason
                for (table, row), reason in named.items()
                if table == owner and (row == key or owner == "fills" or column == "id") and reason.startswith(name)
            ]
            assert reasons, (relation, column)
    lost = {key for relation, column, key in spoilt if relation in {"markets", "fx_members"} and column not in HARMLESS}
    assert report.built == len(TEXTS) - len(lost)
    assert report.quarantine.total() == len(spoilt) - len(HARMLESS)


def test_sqlite(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as database:
        create(database.execute, is_native=False)
        spoilt = spoil(database.execute, f"CAST(x'{BAD.hex()}' AS TEXT)", kinds=("id", "text", "timestamp", "date"))
    assert len(spoilt) == len(TEXTS) > 20
    assert_each_costs_its_row(spoilt, f"sqlite:///{tmp_path / 'markets.db'}", tmp_path)


@pytest.fixture(params=["SQL_ASCII", "WIN1252"])
def encoding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def database_in(postgres: Server, encoding: str) -> Iterator[tuple[Put, str]]:
    name = postgres.create_database(encoding)
    with psycopg.connect(postgres.url(name), autocommit=True, client_encoding=encoding) as connection:
        create(connection.execute, is_native=True)
        yield connection.execute, postgres.url(name)


def test_postgresql(postgres: Server, encoding: str, tmp_path: Path) -> None:
    with database_in(postgres, encoding) as (put, url):
        spoilt = spoil(put, "E'\\201'", kinds=("id", "text"))
        assert len(spoilt) > 15
        assert_each_costs_its_row(spoilt, url, tmp_path)


def test_what_can_be_decoded_is_published_as_it_is_meant(postgres: Server, encoding: str, tmp_path: Path) -> None:
    question = "é" * contract.QUESTION_LENGTH
    with database_in(postgres, encoding) as (put, url):
        insert_market(put, 1)
        insert_market(put, 2)
        escaped = "".join(f"\\{byte:o}" for byte in question.encode("cp1252" if encoding == "WIN1252" else "utf-8"))
        put(f"UPDATE markets SET question = E'{escaped}' WHERE id = '{market_id(1)}'")
        put(f"UPDATE markets SET question = E'{escaped}' || E'{escaped}' WHERE id = '{market_id(2)}'")
        report = build_now(make_config(tmp_path, source__url=url), invalid=True)
    assert detail(tmp_path / "output", 1)["market"]["question"] == question
    assert [(row.key, row.reason[:9]) for row in report.quarantine] == [(market_id(2), "question:")]
