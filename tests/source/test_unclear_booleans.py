"""A row is published only if its boolean is true. One that is neither true, false nor NULL is named, and not read."""

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.source.relations import RELATIONS
from tests.source.native import Postgres, detail
from tests.support.commands import run
from tests.support.sites.builds import AS_OF, build_now, files, make_config
from tests.support.sites.rows import insert_fx_member, insert_market, insert_order, market_id, tell_row_versions

#: What SQLite keeps as it is in a column of no type.
TRUE: Final = (1, True, 1.0)
FALSE: Final = (0, False, 0.0, None)
UNCLEAR: Final = ("t", "f", "true", "false", "1", "0", "", " 1", b"1", b"", 2, -1, 1.5, float("inf"), "é\udcff" * 50)
PRIVATE: Final = "never to be seen"
BOOLEANS: Final = [(name, key) for name, columns in RELATIONS.items() for key in columns if columns[key] == "boolean"]
FAULT: Final = "neither true (1), false (0) nor NULL"


def put(database: sqlite3.Connection, relation: str, column: str, value: Any, number: int) -> None:
    """Set a boolean of the rows of a market, to an invalid text, too."""
    key = "id" if relation == "markets" else "market_id"
    given = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    cast = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
    database.execute(f"UPDATE {relation} SET {column} = {cast} WHERE {key} = ?", [given, market_id(number)])


def untyped(database: sqlite3.Connection) -> None:
    """Make tables whose columns keep what they are given."""
    for relation, columns in RELATIONS.items():
        database.execute(f"DROP TABLE {relation}")
        database.execute(f"CREATE TABLE {relation} ({', '.join(columns)})")


def fill(database: sqlite3.Connection, relation: str, column: str) -> tuple[list[int], list[int], list[int]]:
    """A market for each value, with an order and, where they are meant, a family; those of true, false and neither."""
    numbers = iter(range(1, 100))
    found = tuple([next(numbers) for _ in values] for values in (TRUE, FALSE, UNCLEAR))
    for number, value in zip((n for group in found for n in group), (*TRUE, *FALSE, *UNCLEAR), strict=True):
        insert_market(database, number, question=PRIVATE if relation == "markets" else f"Question {number}?")
        insert_order(database, market_id=market_id(number))
        if relation == "fx_members":
            insert_fx_member(database, market_id=market_id(number), title=PRIVATE)
        put(database, relation, column, value, number)
    return found  # type: ignore[return-value]


def test_a_market_that_may_be_listed_or_not_is_named_and_not_read(tmp_path: Path, database: sqlite3.Connection) -> None:
    untyped(database)
    listed, hidden, unclear = fill(database, "markets", "is_listed")
    database.execute("UPDATE markets SET approval = 'pending' WHERE id = ?", [market_id(unclear[0])])
    database.execute("UPDATE markets SET question = 'Fine?' WHERE is_listed = 1")
    report = build_now(make_config(tmp_path), invalid=True)
    assert (report.built, report.hidden) == (len(listed), len(hidden) + 1)
    named = {row.key: (row.title, row.reason) for row in report.quarantine}
    assert [*named] == [market_id(number) for number in unclear[1:]]
    assert named[market_id(unclear[1])] == ("", f"is_listed: {FAULT} (f)")
    assert PRIVATE.encode() not in b"".join(files(tmp_path / "output", below="").values())


def test_a_market_with_a_row_that_may_be_listed_is_not_published_by_another_row(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1)
    insert_market(database, 2)
    insert_market(database, 2, is_listed="t")
    report = build_now(make_config(tmp_path), invalid=True)
    assert (report.built, report.quarantine.total("markets")) == (1, 2)


def test_a_family_that_may_be_public_takes_its_market_along(tmp_path: Path, database: sqlite3.Connection) -> None:
    untyped(database)
    public, private, unclear = fill(database, "fx_members", "is_public")
    insert_fx_member(database, market_id=market_id(unclear[-1]).upper())  # public, too
    report = build_now(make_config(tmp_path), invalid=True)
    assert report.built == len(public) + len(private)
    assert report.lists[keys.list_name("open", "new")]["count"] == len(private)
    assert {row.key for row in report.quarantine.named("markets")} == {market_id(number) for number in unclear}
    (line,) = report.quarantine.lines()
    assert line.startswith(f"markets: {len(unclear)} rows quarantined: fx_members.is_public: {FAULT} (such as ")
    assert line.endswith("; make it 1 or 0 in a view")
    for number in public:
        assert detail(tmp_path / "output", number)["market"]["fxFamilyMember"]["title"] == PRIVATE


def test_an_order_that_may_be_public_is_left_out(tmp_path: Path, database: sqlite3.Connection) -> None:
    untyped(database)
    public, _, unclear = fill(database, "orders", "is_public")
    report = build_now(make_config(tmp_path))
    shown = [
        number for number in range(1, report.built + 1) if detail(tmp_path / "output", number)["orderBook"]["bids"]
    ]
    assert shown == public
    assert {row.key for row in report.quarantine.named("orders")} == {market_id(number) for number in unclear}
    assert report.quarantine.total() == len(unclear)
    hidden = build_now(make_config(tmp_path, detail__order_book=False, output=tmp_path / "other"))
    assert hidden.quarantine.total() == 0, "nobody would see them anyway"


def test_a_text_is_no_boolean_though_a_view_compares_it_as_a_number(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    untyped(database)
    insert_market(database, 1)
    shown = (f"CAST({name} AS TEXT) AS {name}" if name == "is_listed" else name for name in RELATIONS["markets"])
    database.execute("ALTER TABLE markets RENAME TO all_markets")
    database.execute(f"CREATE VIEW markets AS SELECT {', '.join(shown)} FROM all_markets")
    report = build_now(make_config(tmp_path), invalid=True)
    assert (report.built, report.quarantine.total("markets")) == (0, 1)


def test_what_is_unclear_is_named_by_every_build_until_it_is_corrected(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    """Also where versions say that nothing changed."""
    database.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
    tell_row_versions(database)
    for number in range(1, 6):
        insert_market(database, number)
        insert_fx_member(database, market_id=market_id(number), is_public=number % 2)
        insert_order(database, market_id=market_id(number))
    config, totals, built = make_config(tmp_path, source__audit=0), list[int](), list[int]()

    def build(minute: int) -> None:
        report = build_now(config, AS_OF + timedelta(minutes=minute), shrink=True, invalid=True)
        totals.append(report.quarantine.total())
        built.append(report.built)

    build(0)
    for number, (relation, column) in enumerate(BOOLEANS, start=1):
        put(database, relation, column, "t", number)
    database.execute("UPDATE markets SET detail_version = 2 WHERE id = ?", [market_id(3)])
    build(1)
    build(2)
    for number, (relation, column) in enumerate(BOOLEANS, start=1):
        put(database, relation, column, 1, number)
    database.execute("UPDATE markets SET detail_version = 3 WHERE id = ?", [market_id(3)])
    build(3)
    assert (totals, built) == ([0, 3, 3, 0], [5, 3, 3, 5])


@pytest.mark.parametrize("held", ["integer", "text", "boolean"])
def test_postgresql_takes_booleans_only(tmp_path: Path, make_postgres: Callable[..., Postgres], held: str) -> None:
    made = make_postgres()
    made.insert_market(1)
    for relation, column in BOOLEANS:
        made.connection.execute(f"ALTER TABLE {relation} ALTER {column} TYPE {held} USING {column}::{held}")
    (tmp_path / "config.yaml").touch()
    done = run("check", cwd=tmp_path, PUBLIC_MARKETS_SOURCE__URL=made.url)
    refused = f"has type {held.upper()}, which holds no boolean; cast it in a view"
    assert done.stdout.count(refused) == (0 if held == "boolean" else 3)
