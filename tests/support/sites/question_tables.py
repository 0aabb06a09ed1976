"""Tables of questions in a database of either kind, with hand-written rows: valid ones, with any column replaced."""

import sqlite3
from typing import Any

from generator.source.relations import QUESTION_RELATIONS
from tests.support.sites.rows import insert, market_id


def create_questions(connection: sqlite3.Connection) -> None:
    """Add both relations, whose columns keep what they are given."""
    for relation, columns in QUESTION_RELATIONS.items():
        connection.execute(f"CREATE TABLE {relation} ({', '.join(columns)})")


def question_id(number: int) -> str:
    """A UUID that sorts like its number and is no market's."""
    return f"{number:08x}-0000-4000-a000-000000000000"


def question_row(number: int = 1, **columns: Any) -> dict[str, Any]:
    """A valid public question; `columns` replace its values."""
    return {
        "id": question_id(number),
        "slug": None,
        "title": f"Which {number}?",
        "description": None,
        "kind": "exclusive",
        "approval": "approved",
        "is_listed": True,
        "created_at": "2026-01-01 00:00:00.000000",
        "key": None,
    } | columns


def member_row(question: int, market: int, **columns: Any) -> dict[str, Any]:
    """A valid membership; `columns` replace its values."""
    return {
        "question_id": question_id(question),
        "market_id": market_id(market),
        "label": f"Answer {market}",
        "position": market,
        "payout": None,
    } | columns


def insert_question(connection: sqlite3.Connection, number: int = 1, *markets: int, **columns: Any) -> None:
    """Insert a valid public question, with these markets as members."""
    insert(connection, "questions", **question_row(number, **columns))
    for market in markets:
        insert_member(connection, number, market)


def insert_member(connection: sqlite3.Connection, question: int, market: int, **columns: Any) -> None:
    """Insert a valid membership."""
    insert(connection, "question_members", **member_row(question, market, **columns))
