"""What keeps a database from being read, as sentences that say what to do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from generator import check
from generator.relations import RELATIONS, Kind
from tests.support import create_database, run

Offered = dict[str, dict[str, tuple[str, frozenset[Kind]]]]


def findings(offered: Offered, **refusals: str) -> list[str]:
    return check.findings(offered.get, refusals.get)


@pytest.fixture
def offered() -> Offered:
    """Exactly what is read, each column of a type that holds just its kind."""
    return {
        relation: {column: (f"{kind}-type", frozenset({kind})) for column, kind in columns.items()}
        for relation, columns in RELATIONS.items()
    }


def test_a_database_that_has_everything_gives_no_findings(offered: Offered) -> None:
    assert findings(offered) == []


def test_more_relations_and_columns_than_we_read_are_no_finding(offered: Offered) -> None:
    offered["users"] = {"password": ("TEXT", frozenset({"text"}))}
    offered["fills"]["user_id"] = ("TEXT", frozenset({"text"}))
    assert findings(offered) == []


def test_a_relation_that_is_missing_is_named_once(offered: Offered) -> None:
    del offered["orders"]
    assert findings(offered) == [
        "relation orders is missing; create a table or a view of that name, or set source.schema to where it is"
    ]


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_column_that_is_missing_is_named(offered: Offered, relation: str) -> None:
    columns = list(offered[relation])
    offered[relation] = {}
    assert findings(offered) == [
        f"column {relation}.{column} is missing; add it, or make {relation} a view that has it (NULL where optional)"
        for column in columns
    ]


def test_a_column_of_the_wrong_kind_is_named_with_its_type(offered: Offered) -> None:
    offered["markets"]["prob"] = ("TEXT", frozenset({"text", "id"}))
    assert findings(offered) == ["column markets.prob has type TEXT, which holds no number; cast it in a view"]


def test_a_relation_that_cannot_be_read_is_named_with_the_databases_reason(offered: Offered) -> None:
    assert findings(offered, fills="permission denied") == [
        "relation fills cannot be read: permission denied; let this user SELECT from it, or mend it"
    ]


def test_a_relation_that_is_unfit_anyway_is_not_tried(offered: Offered) -> None:
    del offered["fills"]["price"], offered["orders"]
    found = findings(offered, fills="no such column: price", orders="no such table: orders")
    assert [finding.split(";")[0] for finding in found] == [
        "relation orders is missing",
        "column fills.price is missing",
    ]


def test_everything_is_found_at_once(offered: Offered) -> None:
    del offered["fills"], offered["markets"]["question"]
    offered["orders"]["is_public"] = ("BLOB", frozenset())
    found = findings(offered)
    assert [finding.split()[1] for finding in found] == ["markets.question", "orders.is_public", "fills"]


def test_nothing_at_all_is_six_findings() -> None:
    assert len(findings({})) == 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    return tmp_path


def test_the_command_says_that_a_build_can_run(folder: Path, database: sqlite3.Connection) -> None:
    done = run("check", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "sqlite:///markets.db: all relations and columns are there; `public-markets build` can run\n"
    )
    assert not (folder / "output").exists()


def test_the_command_prints_every_finding_and_fails(folder: Path) -> None:
    with closing(create_database(folder / "markets.db")) as connection:
        connection.execute("DROP TABLE fx_members")
        connection.execute("ALTER TABLE markets RENAME COLUMN question TO title")
        connection.execute("ALTER TABLE markets DROP COLUMN volume")
        connection.execute("ALTER TABLE markets ADD COLUMN volume BLOB")
    done = run("check", cwd=folder)
    assert done.returncode == 1
    assert [line.split(";")[0] for line in done.stdout.splitlines()] == [
        "column markets.question is missing",
        "column markets.volume has type BLOB, which holds no number",
        "relation fx_members is missing",
    ]
    assert done.stderr == "error: sqlite:///markets.db: 3 findings; mend them, then check again\n"


def test_a_view_with_expressions_can_be_read(folder: Path) -> None:
    with closing(create_database(folder / "markets.db")) as connection:
        connection.execute("ALTER TABLE orders RENAME TO book")
        connection.execute(
            "CREATE VIEW orders AS SELECT market_id, lower(side) AS side, price / 1.0 AS price, amount,"
            " 1 AS is_public FROM book"
        )
    assert run("check", cwd=folder).returncode == 0
