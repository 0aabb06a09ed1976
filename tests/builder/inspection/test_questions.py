"""The page shows questions with their markets, counts them, and leads to their lists and definitions."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from generator.builder.inspection.excerpts import MEMBERS, QUESTIONS
from generator.source.relations import QUESTION_RELATIONS
from generator.tree import files as names
from tests.support.sites.builds import build_now, files, make_config
from tests.support.sites.question_tables import create_questions, insert_member, insert_question, question_id
from tests.support.sites.rows import insert_market, market_id


@pytest.fixture
def rows(database: sqlite3.Connection) -> sqlite3.Connection:
    """Six markets; one question has three of them, another one."""
    for number in range(1, 7):
        insert_market(database, number, trader_count=number)
    create_questions(database)
    insert_question(database, 1, title="Who <b>wins</b>?", kind="independent")
    for number in (1, 2, 3):
        insert_member(database, 1, number, label=f"<i>{number}</i>", position=4 - number)
    insert_question(database, 2, 6, title="Alone?")
    return database


def page(output: Path) -> str:
    return (output / names.INSPECTION).read_text("utf-8")


def section(output: Path) -> str:
    found = re.search(r'<section id="questions".*?</section>', page(output), re.DOTALL)
    assert found
    return found[0]


def test_questions_are_shown_with_their_markets_and_counted(tmp_path: Path, rows: sqlite3.Connection) -> None:
    rows.execute("UPDATE questions SET kind = 'both' WHERE id = ?", [question_id(2)])
    config = make_config(tmp_path)
    report = build_now(config)
    shown, output = section(config.output), tmp_path / "output"
    assert "1 question with 3 markets; 3 markets stand alone" in shown
    assert "Who &lt;b&gt;wins&lt;/b&gt;?" in shown
    assert re.findall(r'dir="auto">(&lt;i&gt;\d)', shown) == ["&lt;i&gt;3", "&lt;i&gt;2", "&lt;i&gt;1"]
    assert re.findall(r'data-market="([^"]*)"', shown) == [market_id(number) for number in (3, 2, 1)]
    (address,) = re.findall(r'href="(v1/public/questions/detail/[^"]*)"', shown)
    assert (output / address).exists()
    for linked in re.findall(r'href="(v1/[^"]*questions[^"]*)"', page(output)):
        assert (output / linked).exists(), linked
    assert "questions/open <b>" in page(output)
    assert "Definitions of all questions, NDJSON, gzip" in page(output)
    assert "<option>questions</option>" in page(output), "what is quarantined of them can be chosen"
    assert report.questions is not None
    assert report.content()["questions"] == {"published": 1, "members": 3, "alone": 3}
    assert json.loads((output / names.REPORT).read_bytes())["questions"]["published"] == 1
    found = {(one.name, *one.labels): value for one, value in report.samples().items()}
    assert (found["questions",], found["question_members",]) == (1, 3)
    assert found["quarantined_rows", ("relation", "questions")] == 1


def test_what_is_shown_is_bounded_and_the_rest_is_named(tmp_path: Path, rows: sqlite3.Connection) -> None:
    for number in range(100, 100 + MEMBERS):
        insert_market(rows, number, trader_count=100)
        insert_member(rows, 1, number)
    for number in range(1_000, 1_000 + QUESTIONS):
        insert_market(rows, number, trader_count=50)
        insert_question(rows, number, number)
    build_now(make_config(tmp_path))
    shown = section(tmp_path / "output")
    assert shown.count("<details") == QUESTIONS
    assert "Alone?" not in shown
    assert f"The first {MEMBERS} of {MEMBERS + 3}." in shown
    assert f"The {QUESTIONS} of the most traders." in shown


def test_a_page_without_questions_says_nothing_of_them(tmp_path: Path, rows: sqlite3.Connection) -> None:
    for relation in QUESTION_RELATIONS:
        rows.execute(f"DROP TABLE {relation}")
    report = build_now(make_config(tmp_path))
    text = page(tmp_path / "output")
    assert 'id="questions"' not in text
    assert "call-question" not in text.partition("<script")[0]
    assert "questions" not in report.content()
    assert not [key for key in files(tmp_path / "output", "") if "question" in key]
