"""Every problem of a schema is reported in a sentence with its remedy."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from generator.source import schema_check
from generator.source.relations import QUESTION_RELATIONS, RELATIONS, Kind
from generator.source.rights import MissingRights
from tests.support.commands import overrides, run
from tests.support.sites.rows import (
    create_database,
    fill_id,
    insert_fill,
    insert_market,
    insert_order,
    insert_point,
    market_id,  # fmt: skip
)

ABOVE_1: Final = "input should be less than or equal to 1"
BELOW_0: Final = "input should be greater than or equal to 0"
SCALE: Final = "correct it, or convert it in a view (0.45 rather than 45)"

Offered = dict[str, dict[str, tuple[str, frozenset[Kind]]]]


def findings(offered: Offered, **refusals: str) -> list[str]:
    return schema_check.problems(offered.get, refusals.get, MissingRights)


@pytest.fixture
def offered() -> Offered:
    """Exactly what is read, each column of a type that holds just its kind."""
    return {
        relation: {column: (f"{kind}-type", frozenset({kind})) for column, kind in columns.items()}
        for relation, columns in RELATIONS.items()
    }


def test_a_database_that_has_everything_and_more_gives_no_findings(offered: Offered) -> None:
    assert findings(offered) == []
    offered["users"] = {"password": ("TEXT", frozenset({"text"}))}
    offered["fills"]["user_id"] = ("TEXT", frozenset({"text"}))
    assert findings(offered) == []


def test_a_relation_that_is_missing_is_named_once(offered: Offered) -> None:
    del offered["orders"]
    assert findings(offered) == [
        "relation orders is missing; create a table or a view of that name, or set source.schema to where it is"
    ]


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_column_that_is_missing_is_named_many_in_one_line(offered: Offered, relation: str) -> None:
    columns, remedy = list(offered[relation]), f"make {relation} a view that has"
    offered[relation] = {}
    each = [f"column {relation}.{name} is missing; add it, or {remedy} it (NULL where optional)" for name in columns]
    together = f"columns of {relation} are missing: {', '.join(columns)}; {remedy} them (NULL where optional)"
    assert findings(offered) == (each if len(columns) <= 3 else [together])


def test_many_columns_of_the_wrong_kind_are_one_line_for_each_relation(offered: Offered) -> None:
    for name, columns in offered.items():
        offered[name] = dict.fromkeys(columns, ("BLOB", frozenset[Kind]()))
    found = findings(offered)
    assert len(found) == 2 + 2 * 3 + 2
    assert found[-4].startswith(
        "columns of fills have types that do not fit: id (BLOB, must hold id), market_id (BLOB, "
    )
    remedy = "cast them in a view and make ids UUIDs, such as keyed hashes"
    assert found[-4].endswith(f"created_at (BLOB, must hold timestamp); {remedy}")


def test_a_column_of_the_wrong_kind_is_named_with_its_type(offered: Offered) -> None:
    offered["markets"]["prob"] = ("TEXT", frozenset({"text", "id"}))
    offered["fills"]["id"] = ("BIGINT", frozenset({"number", "integer"}))
    assert findings(offered) == [
        "column markets.prob has type TEXT, which holds no number; cast it in a view",
        "column fills.id has type BIGINT, which holds no id; make it a UUID in a view, such as a keyed hash of the key",
    ]


def test_a_version_may_be_missing_and_otherwise_be_of_any_kind_that_has_many_values(offered: Offered) -> None:
    for kind in ("text", "number", "timestamp", "id"):
        offered["markets"]["detail_version"] = ("TYPE", frozenset({kind}))
        assert findings(offered) == []
    offered["markets"]["detail_version"] = ("BYTEA", frozenset())
    assert [finding.split(";")[0] for finding in findings(offered)] == [
        "column markets.detail_version has type BYTEA, which holds no text, number or time"
    ]


def test_a_column_that_holds_no_key_may_be_left_out(offered: Offered) -> None:
    offered["markets"]["key"] = ("TIMESTAMP", frozenset({"timestamp"}))
    (finding,) = findings(offered)
    assert finding.startswith("column markets.key has type TIMESTAMP, which holds no text or whole number; cast it to")
    assert finding.endswith(", or leave the column out")


def test_rights_that_the_user_lacks_are_one_finding_and_the_rest_is_told_as_well(offered: Offered) -> None:
    del offered["markets"]["prob"]
    rows = [(name, "api", "reader", True, name not in {"fills", "orders"}) for name in ("fills", "orders", "markets")]
    found = schema_check.problems(
        offered.get,
        {"fills": "denied", "orders": "denied", "probabilities": "no such column"}.get,
        lambda: MissingRights.of(rows),
    )
    assert [finding.split(";")[0] for finding in found] == [
        "the database user may not read orders, fills",
        "column markets.prob is missing",
        "relation probabilities cannot be read: no such column",
    ]


def with_questions(offered: Offered) -> Offered:
    return offered | {
        relation: {column: (f"{kind}-type", frozenset({kind})) for column, kind in columns.items()}
        for relation, columns in QUESTION_RELATIONS.items()
    }


@pytest.mark.parametrize("missing", QUESTION_RELATIONS)
def test_a_site_has_both_relations_of_questions_or_neither(offered: Offered, missing: str) -> None:
    offered = with_questions(offered)
    assert findings(offered) == []
    del offered[missing], offered["orders"]
    first, second = findings(offered)
    (there,) = QUESTION_RELATIONS.keys() - {missing}
    assert first.startswith("relation orders is missing")
    assert second.startswith(f"relation {missing} is missing, but {there} is there; ")
    assert second.endswith(f"create both or neither; if {there} is something else, set questions.enabled: false")
    offered[there] = {}
    assert findings(offered) == [first, second], "it may be anything"


def test_rights_that_the_user_lacks_on_questions_are_named(offered: Offered) -> None:
    rows = [(name, "api", "reader", True, False) for name in ("question_members", "questions", "markets")]
    found = schema_check.problems(
        with_questions(offered).get, {"questions": "denied"}.get, lambda: MissingRights.of(rows)
    )
    (sentence,) = found
    assert sentence.startswith("the database user may not read markets, questions, question_members; run `GRANT")


SCHEMAS = {"old": False, "api": True}


def test_a_relation_in_two_schemas_of_the_search_path_needs_the_rights_in_one(offered: Offered) -> None:
    del offered["orders"]
    rows = [(name, schema, "reader", is_api, is_api) for name in RELATIONS for schema, is_api in SCHEMAS.items()]
    found = schema_check.problems(offered.get, dict[str, str]().get, lambda: MissingRights.of(rows))
    assert [finding.split(";")[0] for finding in found] == ["relation orders is missing"]


def test_a_relation_that_is_unfit_anyway_is_not_tried(offered: Offered) -> None:
    del offered["fills"]["price"], offered["orders"]
    found = findings(offered, fills="no such column: price", orders="no such table: orders")
    assert [one.split(";")[0] for one in found] == ["relation orders is missing", "column fills.price is missing"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    return tmp_path


def test_the_command_tells_everything_in_the_order_of_mending_and_fails(folder: Path) -> None:
    with closing(create_database(folder / "markets.db")) as connection:
        connection.execute("DROP TABLE fx_members")
        connection.execute("ALTER TABLE markets RENAME COLUMN question TO title")
        connection.execute("ALTER TABLE markets DROP COLUMN volume")
        connection.execute("ALTER TABLE markets ADD COLUMN volume BLOB")
    (folder / "file").touch()
    settings = {"output": "file/output", "publish.target": "file/site"}
    done = run("check", *overrides(settings), cwd=folder)
    assert done.returncode == 1
    assert [line.split(";")[0] for line in done.stdout.splitlines()] == [
        "error: column markets.question is missing",
        "error: column markets.volume has type BLOB, which holds no number", "error: relation fx_members is missing",
        f"error: {folder / 'file'}: not a directory", "error: file: not a directory",
    ]  # fmt: skip
    assert done.stderr == ("error: fix these 5 errors, then run `check` again\n")


def test_rows_that_would_be_left_out_are_counted_by_reason_with_examples(
    folder: Path, database: sqlite3.Connection
) -> None:
    for number in range(1, 6):
        insert_market(database, number, prob=number - 0.5, volume=0, trader_count=0)
    insert_fill(database, 1, amount=-1.0)
    done = run("check", "--set", "guards.max_invalid=1", cwd=folder)
    assert done.returncode == 0
    kinds = [
        f"warning: markets: 4 rows quarantined: prob: {ABOVE_1} (such as {market_id(2)}: 1.5); {SCALE}",
        f"warning: fills: 1 row quarantined: amount: {BELOW_0} ({fill_id(1)}: -1.0); correct it",
    ]
    count = "warning: rows: 5 quarantined in all, 0 remarks; `public-markets check --all` names each"
    assert done.stdout.splitlines()[5:-2] == [*kinds, count]
    done = run("check", "--all", "--set", "guards.max_invalid=1", cwd=folder)
    assert done.stdout.splitlines()[5:-2] == [
        *kinds,
        f"warning: fills: {fill_id(1)}: amount: {BELOW_0} (-1.0)",
        *(f"warning: markets: {market_id(number)}: prob: {ABOVE_1} ({number - 0.5})" for number in range(2, 6)),
    ]


def warnings(folder: Path, *arguments: str) -> list[str]:
    done = run("check", *arguments, cwd=folder)
    return [line for line in done.stdout.splitlines() if line.startswith("warning: ")]


def test_a_database_without_public_markets_is_not_called_fine(folder: Path, database: sqlite3.Connection) -> None:
    none = "warning: rows: no market can be published"
    assert warnings(folder) == [f"{none}; the relation markets is empty"]
    insert_market(database, 1, approval="Approved")
    insert_market(database, 2, is_listed=0)
    words = "a market is public if its approval is exactly 'approved' and its is_listed is true"
    assert warnings(folder) == [f"{none}, 2 are hidden; {words}"]
    insert_market(database, 3, prob=7)
    assert warnings(folder)[0] == f"{none}, 2 are hidden; all others break the contract"
    insert_market(database, 4)
    assert none not in str(warnings(folder))


def test_rows_that_belong_to_no_public_market_are_told_and_none_of_them_is_named(
    folder: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1, id="abcdef00-0000-4000-8000-000000000000")
    insert_market(database, 2, is_listed=0)
    insert_fill(database, market_id="ABCDEF00-0000-4000-8000-000000000000")
    insert_point(database, "2026-01-31 12:00:00", market_id=market_id(2))
    insert_order(database, market_id=market_id(2), is_public=0)
    told = warnings(folder)
    assert [line.split(";")[0] for line in told] == [
        f"warning: {name}: has rows, but none belongs to a public market" for name in ("fills", "probabilities")
    ]
    assert market_id(2) not in str(told)
    assert warnings(folder, "--set", "detail.recent_fills=0", "--set", "detail.history_points=0") == []
    insert_fill(database, 2, market_id="abcdef00-0000-4000-8000-000000000000", amount=-1)
    assert "fills: has rows" not in str(warnings(folder))


def test_prices_that_are_all_published_as_null_are_told(folder: Path, database: sqlite3.Connection) -> None:
    insert_market(database, 1, volume=0, trader_count=0)
    assert warnings(folder) == []
    insert_fill(database, 8, price=None, shares=0)
    assert warnings(folder) == [], "a site without shares has no prices, either"
    for number, price in enumerate((45.0, None, 99.5)):
        insert_fill(database, number, price=price)
    (warning,) = warnings(folder)
    assert warning == (
        "warning: fills: no recent fill has a price from 0.01 to 0.99; others are published as null; "
        "if the prices are percentages, divide them by 100 in a view"
    )
    insert_fill(database, 9, price=0.45)
    assert warnings(folder) == []


def test_rows_are_counted_and_trading_without_fills_or_points_is_told(
    folder: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1, volume=0)
    told = run("check", cwd=folder).stdout.splitlines()
    assert "fine: rows: 1 markets, 0 market_categories, 0 fx_members, 0 orders, 0 fills, 0 probabilities" in told
    assert "fine: fills: none are read, so no trade explains a jump, and guards.max_jumps counts every one" in told
    assert [line.partition(", although")[0] for line in warnings(folder)] == [
        "warning: fills: has no row", "warning: probabilities: has no row"
    ]  # fmt: skip
    assert len(warnings(folder, "--set=detail.recent_fills=0", "--set=detail.history_points=0")) == 0
    database.execute("UPDATE markets SET volume = 1, trader_count = 0")
    assert len(warnings(folder)) == 2
    insert_fill(database, 1)
    insert_point(database, "2026-01-01 00:00:00.000000")
    assert warnings(folder) == []
    assert "none are read" not in run("check", cwd=folder).stdout
    assert "none are read" in run("check", "--set=detail.recent_fills=0", cwd=folder).stdout


def test_what_a_guard_would_refuse_is_an_error(folder: Path, database: sqlite3.Connection) -> None:
    for number in range(1, 6):
        insert_market(database, number)
    assert run("build", cwd=folder).returncode == 0
    database.execute("UPDATE markets SET is_listed = 0 WHERE id < ?", [market_id(3)])
    database.execute("UPDATE markets SET prob = 7 WHERE id = ?", [market_id(3)])
    done = run("check", cwd=folder)
    assert done.returncode == 1
    errors = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert errors[0].startswith("error: 1 of 3 markets break the contract, more than guards.max_invalid (0.01) allows")
    assert errors[1].startswith("error: 3 of 5 markets would disappear, more than guards.max_shrink (0.2) allows")
    refused = run("build", cwd=folder)
    assert refused.returncode == 3
    assert refused.stderr.splitlines()[0] == f"{errors[0]}:"
