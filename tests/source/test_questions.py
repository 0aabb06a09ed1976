"""Questions and their members are read from both databases in one transaction with the markets, hidden ones never."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from generator.errors import SourceError
from generator.markets import questions
from generator.markets.quarantine import Quarantine
from generator.markets.questions import GatheredQuestions, Member, PublishedMarkets
from generator.source.queries import EVERYTHING
from generator.source.reader import Reader, open_reader
from generator.source.relations import QUESTION_RELATIONS
from tests.source.native import NATIVE, Postgres
from tests.support.commands import overrides, run
from tests.support.sites.builds import AS_OF, EXTENDED, build_now, files, make_config
from tests.support.sites.question_tables import (
    create_questions,
    insert_member,
    insert_question,
    member_row,
    question_id,
    question_row,
)
from tests.support.sites.rows import insert_market, market_id, market_row

Add = Callable[..., None]
PRIVATE: Final = "never to be seen"
#: The columns that WHERE and joins need.
HARMLESS: Final = {"id", "question_id", "market_id", "approval", "is_listed"}
NOT_PUBLIC: Final[list[dict[str, Any]]] = [
    {"approval": "pending"}, {"approval": "rejected"}, {"approval": None}, {"is_listed": False}, {"is_listed": None}
]  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def source(
    request: pytest.FixtureRequest, tmp_path: Path, database: sqlite3.Connection, make_postgres: Callable[..., Postgres]
) -> tuple[str, Add, Callable[[str], Any]]:
    """A database with both relations: its URL, what adds a row, and what runs a statement."""
    if request.param == "sqlite":
        create_questions(database)

        def add(relation: str, **row: Any) -> None:
            marks = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO {relation} ({', '.join(row)}) VALUES ({marks})", [*row.values()])

        return f"sqlite:///{tmp_path / 'markets.db'}", add, database.execute
    made = make_postgres()
    made.create_questions()
    return made.url, made.insert, made.connection.execute


def read(reader: Reader, quarantine: Quarantine, blocked: frozenset[str] = frozenset()) -> GatheredQuestions:
    """All questions of a database, and its markets, in one transaction."""
    reader.require_schema()
    asked = reader.questions()
    through = asked.blocked_markets(blocked)
    found = reader.read(EVERYTHING, reader.survey().facts, AS_OF)
    public = {market.id: market for _, market in found.public() if market.id not in through}
    listed = {key: market for key, market in public.items() if market.fx is None}
    markets = PublishedMarkets(listed, public.keys())
    return questions.gather(asked.given(blocked), asked.members(), markets, quarantine)


def gathered(folder: Path, url: str, *blocked: str, **settings: Any) -> tuple[GatheredQuestions, Quarantine]:
    quarantine = Quarantine()
    with open_reader(make_config(folder, source__url=url, **settings), quarantine) as reader:
        return read(reader, quarantine, frozenset(blocked)), quarantine


def fill_with_hidden_rows(add: Add) -> None:
    """Public questions 1 and 2; hidden questions and hidden markets, with memberships in all combinations."""
    for number in (1, 2, 3):
        add("markets", **market_row(number, is_listed=True, question=f"Question {number}?"))
        add("questions", **question_row(number))
    add("question_members", **member_row(1, 1, label=None, position=7))
    add("question_members", **member_row(2, 2, payout=0.25))
    for number, columns in enumerate(NOT_PUBLIC, start=10):
        add("markets", **market_row(number, **{"is_listed": True, "question": PRIVATE, **columns}))
        add("questions", **question_row(number, **{"title": PRIVATE, "slug": PRIVATE, **columns}))
        for question, market in ((number, 1), (1, number), (number, number)):
            add("question_members", **member_row(question, market, label=PRIVATE))


PUBLIC: Final = {
    question_id(1): (Member(market_id(1), None, 7, None),),
    question_id(2): (Member(market_id(2), "Answer 2", 2, 0.25),),
}


def test_only_what_is_public_is_read(source: tuple[str, Add, Any], tmp_path: Path) -> None:
    url, add, _ = source
    fill_with_hidden_rows(add)
    found, quarantine = gathered(tmp_path, url, **EXTENDED)
    assert {question.id: question.members for question in found.questions} == PUBLIC
    assert found.questions[0].created_at == "2026-01-01T00:00:00.000Z"
    assert [remark.topic for remark in found.remarks] == ["blank_label", "early_payout"]
    assert (PRIVATE in repr(found), [*quarantine]) == (False, [])


def test_no_value_of_a_hidden_row_and_no_other_column_is_asked_for(
    source: tuple[str, Add, Callable[[str], Any]], tmp_path: Path
) -> None:
    """Views fail where such a value is computed."""
    url, add, execute = source
    fill_with_hidden_rows(add)
    is_sqlite = url.startswith("sqlite")
    public = "approval = 'approved' AND is_listed"
    visible = {
        "questions": public,
        "question_members": f"question_id IN (SELECT id FROM all_questions WHERE {public}) "
        f"AND market_id IN (SELECT id FROM markets WHERE {public})",
    }
    for relation, columns in QUESTION_RELATIONS.items():
        execute(f"ALTER TABLE {relation} RENAME TO all_{relation}")
        key = "id" if relation == "questions" else "market_id"
        sql = "abs(-9223372036854775807 - length({0}) / length({0}))" if is_sqlite else "(1 / (length({0}::text) - 36))"
        boom = sql.format(key)
        types = NATIVE | {"timestamp": "timestamptz", "number": "numeric"}
        shown = ", ".join(
            name
            if name in HARMLESS
            else f"CASE WHEN {visible[relation]} THEN {name} "
            f"ELSE {boom if is_sqlite else f'{boom}::text::{types[kind]}'} END AS {name}"
            for name, kind in columns.items()
        )
        execute(f"CREATE VIEW {relation} AS SELECT {shown}, {boom} AS secret FROM all_{relation}")
        mined = "title" if relation == "questions" else "label"
        for name in (mined, "secret"):
            with pytest.raises((sqlite3.OperationalError, psycopg.errors.DivisionByZero)):
                execute(f"SELECT {name} FROM {relation}").fetchall()
    found, quarantine = gathered(tmp_path, url, **EXTENDED)
    assert {question.id: question.members for question in found.questions} == PUBLIC
    assert [*quarantine] == []


def test_postgresql_does_not_compare_all_pairs_whatever_it_expects(
    tmp_path: Path, make_postgres: Callable[..., Postgres]
) -> None:
    """Of tables without statistics it expects a row, and would join by nested loops."""
    made = make_postgres()
    made.create_questions()
    for number in range(1, 30):
        made.insert_market(number)
        made.insert("questions", **question_row(number))
        made.insert("question_members", **member_row(number, number))
    with open_reader(make_config(tmp_path, source__url=made.url), Quarantine()) as reader:
        asked = reader.questions()

        def nested_loops() -> str:
            ((held,),) = asked.transaction.answer(sa.text("SHOW enable_nestloop"))
            return str(held)

        def plan() -> str:
            statement = asked.statements.question_members("label").compile(
                dialect=postgresql.dialect(),  # type: ignore[no-untyped-call]
                compile_kwargs={"literal_binds": True},
            )
            return str(asked.transaction.answer(sa.text(f"EXPLAIN {statement}")))

        assert (nested_loops(), "Nested Loop" in plan()) == ("on", True)
        rows = asked.members()
        next(rows)
        assert (nested_loops(), "Nested Loop" in plan()) == ("off", False)
        assert (len([*rows]), nested_loops()) == (28, "on")


def test_ids_are_compared_in_lower_case(tmp_path: Path, database: sqlite3.Connection) -> None:
    create_questions(database)
    insert_market(database, 10)
    insert_market(database, 11, id=market_id(11).upper())
    insert_question(database, 10, id=question_id(10).upper())
    for market in (10, 11):
        spelled = {"market_id": market_id(market).upper()} if market == 10 else {}
        insert_member(database, 10, market, **spelled)
    url = f"sqlite:///{tmp_path / 'markets.db'}"
    found, _ = gathered(tmp_path, url)
    assert [(question.id, [member.market_id for member in question.members]) for question in found.questions] == [
        (question_id(10), [market_id(10), market_id(11)])
    ]
    insert_member(database, 10, 10)
    found, quarantine = gathered(tmp_path, url)
    assert [member.market_id for member in found.questions[0].members] == [market_id(11)]
    assert quarantine.total("question_members") == 2


def test_the_core_variant_reads_no_slug(source: tuple[str, Add, Any], tmp_path: Path) -> None:
    url, add, _ = source
    add("markets", **market_row(1, is_listed=True))
    add("questions", **question_row(1, slug="cup", key="k"))
    add("question_members", **member_row(1, 1))
    for variant, slug in (({}, None), (EXTENDED, "cup")):
        ((question,), _), _ = gathered(tmp_path, url, **variant)
        assert (question.slug, question.key) == (slug, "k")


def test_a_question_that_may_be_listed_or_not_is_named_and_not_read(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    create_questions(database)
    insert_market(database, 1)
    for number, value in enumerate(("t", 2, "1"), start=1):
        insert_question(database, number, 1, title=PRIVATE, is_listed=value)
    insert_question(database, 4, 1, title=PRIVATE, is_listed="t", approval="pending")
    insert_question(database, 5, 1)
    insert_question(database, 1, title="Which?")
    insert_question(database, 6, is_listed="t")
    found, quarantine = gathered(tmp_path, f"sqlite:///{tmp_path / 'markets.db'}", question_id(6))
    assert [question.id for question in found.questions] == [question_id(5)]
    named = [(row.key, row.reason.partition(" (")[0], row.title) for row in quarantine]
    fault = "is_listed: neither true"
    assert sorted(named) == sorted([
        *((question_id(number), fault, "") for number in (1, 2, 3)),
        (question_id(1), "id: several questions have the same", "Which?"),
    ])  # fmt: skip
    assert PRIVATE not in repr([*quarantine])


def test_a_text_that_cannot_be_decoded_costs_its_row(tmp_path: Path, database: sqlite3.Connection) -> None:
    create_questions(database)
    for number in (1, 2, 3):
        insert_market(database, number)
        insert_question(database, number, number)
    insert_member(database, 2, 3)
    database.execute("UPDATE questions SET title = CAST(x'ff' AS TEXT) WHERE id = ?", [question_id(1)])
    database.execute("UPDATE question_members SET label = CAST(x'ff' AS TEXT) WHERE question_id = ?", [question_id(2)])
    found, quarantine = gathered(tmp_path, f"sqlite:///{tmp_path / 'markets.db'}")
    assert [question.id for question in found.questions] == [question_id(3)]
    assert [(row.relation, row.reason.partition(": ")[0]) for row in quarantine] == [
        ("question_members", "label"), ("question_members", "label"), ("questions", "title")
    ]  # fmt: skip


def test_a_blocked_question_blocks_its_markets_whether_they_are_public_or_not(
    source: tuple[str, Add, Any], tmp_path: Path
) -> None:
    """Nothing else of it is read; its markets are in no other question."""
    url, add, _ = source
    fill_with_hidden_rows(add)
    add("question_members", **member_row(2, 3))
    add("question_members", **member_row(3, 1, question_id=question_id(10)))
    hidden = question_id(10)
    with open_reader(make_config(tmp_path, source__url=url), Quarantine()) as reader:
        asked = reader.questions()
        assert asked.blocked_markets(frozenset()) == {}
        assert asked.blocked_markets(frozenset([hidden, "x"])) == {market_id(1): [hidden], market_id(10): [hidden]}
        # SQLite takes 32,766 ids in a statement.
        many = [f"00000000-0000-4000-a000-{number:012x}" for number in range(33_000)]
        every = frozenset([*many, *map(question_id, range(1, 100))])
        assert len(asked.blocked_markets(every)) == 3 + len(NOT_PUBLIC)
    add("questions", **question_row(2, kind="?"))
    add("questions", **question_row(20, title=None))
    found, quarantine = gathered(tmp_path, url, question_id(2), question_id(20))
    assert {question.id: question.members for question in found.questions} == {question_id(1): PUBLIC[question_id(1)]}
    assert [*quarantine] == []


# ── both relations or neither ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("alone", QUESTION_RELATIONS)
def test_one_relation_alone_is_refused(
    source: tuple[str, Add, Callable[[str], Any]], tmp_path: Path, alone: str
) -> None:
    url, _, execute = source
    (other,) = QUESTION_RELATIONS.keys() - {alone}
    execute(f"DROP TABLE {other}")
    (tmp_path / "config.yaml").touch()
    for command in ("check", "build"):
        done = run(command, *overrides({"source.url": url}), cwd=tmp_path)
        assert done.returncode == 1
        assert f"relation {other} is missing, but {alone} is there; create both or" in done.stdout + done.stderr
    with open_reader(make_config(tmp_path, source__url=url), Quarantine()) as reader:
        assert not reader.has_questions()
        with pytest.raises(SourceError, match=f"relation {other} is missing"):
            reader.require_schema()


def test_two_empty_relations_are_fine_and_so_are_none(
    source: tuple[str, Add, Callable[[str], Any]], tmp_path: Path
) -> None:
    url, add, execute = source
    add("markets", **market_row(1, is_listed=True))
    found, _ = gathered(tmp_path, url)
    assert found == ((), [])
    build_now(make_config(tmp_path, source__url=url, output=tmp_path / "with", questions__enabled=False))
    for relation in QUESTION_RELATIONS:
        execute(f"DROP TABLE {relation}")
    with open_reader(make_config(tmp_path, source__url=url), Quarantine()) as reader:
        assert reader.schema_problems() == []
        assert (reader.has_questions(), "questions" in reader.row_counts()) == (False, False)
    build_now(make_config(tmp_path, source__url=url, output=tmp_path / "without"))
    assert files(tmp_path / "with") == files(tmp_path / "without")


def test_a_column_that_is_missing_or_of_another_type_is_named(
    source: tuple[str, Add, Callable[[str], Any]], tmp_path: Path
) -> None:
    url, _, execute = source
    execute("ALTER TABLE questions DROP COLUMN key")
    execute("ALTER TABLE question_members DROP COLUMN payout")
    execute(f"ALTER TABLE question_members ADD COLUMN payout {'BLOB' if url.startswith('sqlite') else 'bytea'}")
    with open_reader(make_config(tmp_path, source__url=url), Quarantine()) as reader:
        found = [problem.split(";")[0] for problem in reader.schema_problems()]
    assert found[0] == "column questions.key is missing"
    assert found[1].startswith("column question_members.payout has type B")
    assert len(found) == 2


def test_rows_are_counted_and_a_column_that_cannot_be_computed_is_named(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    create_questions(database)
    insert_market(database, 1)
    insert_question(database, 1, 1)
    url = f"sqlite:///{tmp_path / 'markets.db'}"
    with open_reader(make_config(tmp_path, source__url=url), Quarantine()) as reader:
        assert [*reader.row_counts().items()][-2:] == [("questions", 1), ("question_members", 1)]
        assert reader.failures() == []
    broken = "abs(-9223372036854775808)"
    for relation, column in (("questions", "title"), ("question_members", "payout")):
        shown = ", ".join(f"{broken} AS {name}" if name == column else name for name in QUESTION_RELATIONS[relation])
        database.execute(f"ALTER TABLE {relation} RENAME TO all_{relation}")
        database.execute(f"CREATE VIEW {relation} AS SELECT {shown} FROM all_{relation}")
    with open_reader(make_config(tmp_path, source__url=url), Quarantine()) as reader:
        found = [failure.partition(";")[0] for failure in reader.failures()]
    assert found == [
        f"column {name} cannot be read: integer overflow" for name in ("questions.title", "question_members.payout")
    ]
