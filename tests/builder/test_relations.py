"""Settings and database must agree on whether there are questions; losing them by accident is refused by a guard."""

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.errors import ConfigError, GuardError, SourceError
from generator.source.relations import QUESTION_RELATIONS
from tests.support.commands import overrides, run
from tests.support.sites.builds import AS_OF, build_now, dry_run_of, files, make_config
from tests.support.sites.question_tables import create_questions, insert_question
from tests.support.sites.rows import insert_market

LATER: Final = AS_OF + timedelta(hours=1)


@pytest.fixture
def market(database: sqlite3.Connection) -> sqlite3.Connection:
    """A database with a market."""
    insert_market(database, 1)
    return database


@pytest.mark.parametrize("command", ["check", "plan", "build"])
def test_every_command_refuses_a_setting_that_the_database_contradicts(
    tmp_path: Path, market: sqlite3.Connection, command: str
) -> None:
    (tmp_path / "config.yaml").touch()
    settings = {"source.url": f"sqlite:///{tmp_path / 'markets.db'}", "questions.enabled": "true"}
    done = run(command, *overrides(settings), cwd=tmp_path)
    assert done.returncode == 1
    assert "questions.enabled is true, and the database has no relations" in done.stdout + done.stderr
    assert not (tmp_path / "output" / "v1").exists()
    create_questions(market)
    assert run(command, *overrides(settings), cwd=tmp_path).returncode == 0


def test_check_counts_questions_and_without_relations_says_nothing_of_them(
    tmp_path: Path, market: sqlite3.Connection
) -> None:
    (tmp_path / "config.yaml").touch()
    settings = overrides({"source.url": f"sqlite:///{tmp_path / 'markets.db'}"})
    assert not {"questions:", "questions,"} & {*run("check", *settings, cwd=tmp_path).stdout.split()}
    create_questions(market)
    insert_question(market, 1, 1)
    found = run("check", *settings, cwd=tmp_path).stdout
    assert "questions: 1 can be published, with 1 of 1 listed market" in found
    assert ", 1 questions, 1 question_members" in found


@pytest.mark.parametrize("as_of", [AS_OF, LATER])
@pytest.mark.parametrize("gone", [["questions"], ["question_members"], [*QUESTION_RELATIONS]])
def test_a_relation_that_the_last_build_had_is_missed_by_a_guard_and_check_foretells_it(
    tmp_path: Path, market: sqlite3.Connection, gone: list[str], as_of: datetime
) -> None:
    create_questions(market)
    insert_question(market, 1, 1)
    config = make_config(tmp_path)
    build_now(config)
    before = files(tmp_path / "output", "")
    for relation in gone:
        market.execute(f"DROP TABLE {relation}")
    with pytest.raises(GuardError, match="the last build had questions") as caught:
        build_now(config, as_of)
    assert caught.value.exit_code == 3
    assert files(tmp_path / "output", "") == before
    if len(gone) == 2:
        (said,) = dry_run_of(config, LATER).refusals()
        assert said.text == str(caught.value)
        build_now(config, LATER, shrink=True)
        assert not [key for key in files(tmp_path / "output") if "/questions/" in key]


def test_fewer_questions_are_foretold_by_a_dry_run_as_a_build_refuses_them(
    tmp_path: Path, market: sqlite3.Connection
) -> None:
    create_questions(market)
    for number in range(1, 6):
        insert_market(market, 10 + number)
        insert_question(market, number, 10 + number)
    config = make_config(tmp_path, guards__max_shrink=0.1)
    build_now(config)
    market.execute("DELETE FROM questions WHERE kind = 'exclusive'")
    with pytest.raises(GuardError, match="there would be 0 questions, of 5") as caught:
        build_now(config, LATER)
    assert [finding.text for finding in dry_run_of(config, LATER).refusals()] == [str(caught.value)]


def test_what_else_is_wrong_with_the_schema_is_no_matter_of_a_guard(tmp_path: Path, market: sqlite3.Connection) -> None:
    create_questions(market)
    build_now(make_config(tmp_path))
    market.execute("ALTER TABLE questions DROP COLUMN key")
    with pytest.raises(SourceError, match=r"column questions\.key is missing"):
        build_now(make_config(tmp_path), LATER)


def test_a_site_that_wants_none_reads_no_relation_of_that_name(tmp_path: Path, market: sqlite3.Connection) -> None:
    build_now(make_config(tmp_path, output=tmp_path / "without"))
    market.execute("CREATE TABLE questions (id)")
    with pytest.raises(SourceError, match="relation question_members is missing, but questions is there"):
        build_now(make_config(tmp_path))
    with pytest.raises((ConfigError, SourceError)):
        build_now(make_config(tmp_path, questions__enabled=True))
    build_now(make_config(tmp_path, questions__enabled=False))
    assert files(tmp_path / "output") == files(tmp_path / "without")
