"""What is too long to be published is not even fetched."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract
from generator.markets.row_validation import LENGTHS
from generator.source import connection, queries
from tests.source.native import Postgres
from tests.support.sites.builds import EXTENDED, build_now, make_config
from tests.support.sites.question_tables import create_questions, member_row, question_row
from tests.support.sites.rows import FX_MEMBER, create_database, insert, market_id, market_row

FILLER: Final = "🙂"
SHOWN: Final = ("PublicMarketListItem", "PublicMarketSignal", "PublicMarketDetailMarket")
#: Characters of each column: none, as many as allowed, one more, and very many.
NUMBERS: Final = (0, 0, 1, 300_000)
WITH_KEYS: Final = "ALTER TABLE markets ADD COLUMN key TEXT"
#: What costs a market its link or its place in a path, and no more.
NAMES: Final = ("slug", "key")


def fill(add: Callable[[str, dict[str, Any]], Any]) -> None:
    """A market for each of NUMBERS, whose texts are so much longer than allowed; the first has short ones."""
    for number, more in enumerate(NUMBERS):
        texts = {
            relation: {column: FILLER * (most + more) if number else "x" for column, most in columns.items()}
            for relation, columns in LENGTHS.items()
        }
        own = {"market_id": market_id(number)}
        add("markets", market_row(number, is_listed=True, **texts["markets"]))
        add("market_categories", {**own, "position": 1, **texts["market_categories"]})
        add("fx_members", {**FX_MEMBER, **own, "is_public": True, **texts["fx_members"]})
        add("questions", question_row(number, **texts["questions"]))
        add("question_members", member_row(number, number, **texts["question_members"]))


@pytest.fixture(params=["sqlite", "postgresql"])
def source(request: pytest.FixtureRequest, tmp_path: Path, make_postgres: Callable[..., Postgres]) -> str:
    if request.param == "sqlite":
        with closing(create_database(tmp_path / "markets.db")) as database:
            database.execute(WITH_KEYS)
            create_questions(database)
            fill(lambda relation, row: insert(database, relation, **row))
        return f"sqlite:///{tmp_path / 'markets.db'}"
    made = make_postgres()
    made.connection.execute(WITH_KEYS)
    made.create_questions()
    fill(lambda relation, row: made.insert(relation, **row))
    return made.url


def test_at_most_one_character_too_many_is_fetched(source: str, tmp_path: Path) -> None:
    config = make_config(tmp_path, source__url=source)
    with connection.transaction(config, None) as transaction:
        statements = queries.Statements(transaction.dialect, None)
        for relation, columns in LENGTHS.items():
            ask: dict[str, Callable[..., Any]] = {
                "markets": statements.markets,
                "questions": statements.questions,
                "question_members": statements.question_members,
            }
            found = (
                ask[relation](*columns) if relation in ask else statements.of_visible_in_any_case(relation, *columns)
            )
            rows = sorted(tuple(map(len, row[-len(columns) :])) for row in transaction.rows(found, relation))
            most = tuple(columns.values())
            beyond = tuple(length + 1 for length in most)
            assert rows == [(1,) * len(most), most, beyond, beyond]


@pytest.mark.campaign(short=1)
def test_the_longest_texts_are_published_and_longer_ones_are_not(source: str, tmp_path: Path) -> None:
    report = build_now(make_config(tmp_path, source__url=source, **EXTENDED), invalid=True)
    assert report.built == 2
    faults = {row.key: row.reason for row in report.quarantine.named("markets")}
    assert [*faults] == [market_id(2), market_id(3)]
    for reason in faults.values():
        assert reason.count("string should have at most") == len({*LENGTHS["markets"]}.difference(NAMES)) + len(
            LENGTHS["fx_members"]
        )
        assert f"question: string should have at most {contract.QUESTION_LENGTH} characters" in reason


def test_values_that_are_no_texts_are_fetched_as_they_are(tmp_path: Path) -> None:
    values: list[Any] = [None, 7, 7.5, b"\xff" * 10, "", "a\0" + "b" * 5_000, "x" * 5_000 + "\0y"]
    with closing(create_database(tmp_path / "markets.db")) as database:
        database.executescript(f"DROP TABLE markets; CREATE TABLE markets ({', '.join(market_row())})")
        for number, value in enumerate(values):
            insert(database, "markets", **market_row(number, question=value))
        statement = str(
            queries.Statements("sqlite", None).markets("question").compile(compile_kwargs={"literal_binds": True})
        )
        fetched = [row[0] for row in database.execute(statement)]
    assert fetched[:-1] == values[:-1]
    assert fetched[-1] == "x" * 2_001
