"""A view that fails while it is read: `check` names its column and a market, `build` its relation."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.builder import executors
from generator.errors import SourceError
from tests.source.native import Postgres
from tests.support.commands import run
from tests.support.sites.builds import build_now, make_config
from tests.support.sites.rows import fill_id, insert_fill, insert_market, insert_order, market_id

SOURCE = "PUBLIC_MARKETS_SOURCE__URL"
#: What SQLite fails to compute: its division by zero is NULL.
OVERFLOW = "abs(-9223372036854775808)"
CORRECT = "correct it in the view, for example with CASE, NULLIF or bounds (greatest, least)"


def errors(folder: Path, url: str) -> list[str]:
    (folder / "config.yaml").touch()
    done = run("check", cwd=folder, **{SOURCE: url})
    assert done.returncode == 1
    return [line for line in done.stdout.splitlines() if line.startswith("error: ")]


@pytest.fixture
def database_url(database: sqlite3.Connection, tmp_path: Path) -> str:
    for number in range(1, 8):
        insert_market(database, number)
        insert_fill(database, number, market_id=market_id(number))
        insert_order(database, market_id=market_id(number))
    return f"sqlite:///{tmp_path / 'markets.db'}"


def replace_by_view(database: sqlite3.Connection, relation: str, column: str, expression: str, end: str = "") -> None:
    columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({relation})")]
    selected = ", ".join(f"{expression} AS {name}" if name == column else name for name in columns)
    database.execute(f"ALTER TABLE {relation} RENAME TO old_{relation}")
    database.execute(f"CREATE VIEW {relation} AS SELECT {selected} FROM old_{relation} {end}")


def test_check_names_every_column_that_cannot_be_computed_and_a_market(
    database_url: str, database: sqlite3.Connection, tmp_path: Path
) -> None:
    replace_by_view(database, "fills", "price", f"CASE WHEN id = '{fill_id(5)}' THEN {OVERFLOW} ELSE price END")
    replace_by_view(database, "markets", "volume", OVERFLOW)
    every, one = errors(tmp_path, database_url)
    assert every.startswith("error: column markets.volume cannot be read: integer overflow")
    assert [one] == [f"error: column fills.price cannot be read: integer overflow (market {market_id(5)}); {CORRECT}"]


def test_a_view_over_what_is_not_there_is_named_by_check_and_build(
    database_url: str, database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("ALTER TABLE fills RENAME TO old")
    database.execute(
        "CREATE VIEW fills AS SELECT no_such(id) AS id, market_id, amount, shares, price, created_at FROM old"
    )
    failed = "relation fills cannot be read: no such function: no_such"
    assert [error.partition(";")[0] for error in errors(tmp_path, database_url)] == [f"error: {failed}"]
    with pytest.raises(SourceError) as caught:
        build_now(make_config(tmp_path))
    assert str(caught.value).startswith(f"{database_url}: {failed}; ")


def test_markets_alone_are_named_where_what_is_joined_with_them_cannot_be_known(
    database_url: str, database: sqlite3.Connection, tmp_path: Path
) -> None:
    replace_by_view(
        database, "markets", "id", "id", f"WHERE CASE WHEN id = '{market_id(5)}' THEN {OVERFLOW} ELSE 1 END > 0"
    )
    assert errors(tmp_path, database_url) == [
        "error: relation markets cannot be read: integer overflow; correct the joins and conditions of the view"
    ]
    with pytest.raises(SourceError, match="relation markets cannot be read"):
        build_now(make_config(tmp_path, source__url=database_url))


def test_a_build_names_the_relation(database_url: str, database: sqlite3.Connection, tmp_path: Path) -> None:
    for number in range(100, 100 + executors.LEAST):
        insert_market(database, number)  # for a second part, so that the message comes from a worker
    replace_by_view(database, "orders", "price", OVERFLOW)
    with pytest.raises(SourceError) as caught:
        build_now(make_config(tmp_path))
    failed, _, remedy = str(caught.value).partition("; ")
    assert failed == f"{database_url}: relation orders cannot be read: integer overflow"
    assert remedy == "run `public-markets check`, which looks for the column"


def test_a_division_by_zero_is_found_in_its_column_and_market(
    tmp_path: Path, make_postgres: Callable[..., Postgres]
) -> None:
    database = make_postgres()
    for number in range(1, 6):
        database.insert_market(number, volume=number - 4, is_listed=number > 1)  # the hidden one would fail as well
        database.insert("probabilities", market_id=market_id(number), recorded_at="2026-01-31", prob=0.5)
    database.connection.execute(
        """
        ALTER TABLE probabilities RENAME TO points;
        CREATE VIEW probabilities AS SELECT p.market_id, recorded_at, 1 / (m.volume * (m.volume + 3)) AS prob
        FROM points p JOIN markets m ON m.id = p.market_id
        """
    )
    assert errors(tmp_path, database.url) == [
        f"error: column probabilities.prob cannot be read: division by zero (market {market_id(4)}); {CORRECT}"
    ]
