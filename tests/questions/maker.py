"""Adds markets and questions to databases: valid ones, with any column replaced.

What must not be published has a canary in every text.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.sites import rows
from tests.support.sites.rows import create_database

TABLES: Final = """
CREATE TABLE questions (id TEXT, slug TEXT, title TEXT, description TEXT, kind TEXT, approval TEXT, is_listed BOOLEAN,
    created_at TEXT, key TEXT);
CREATE TABLE question_members (question_id TEXT, market_id TEXT, label TEXT, position INTEGER, payout FLOAT);
"""
#: In every text that must not be published.
CANARY: Final = "canary-of-questions"
#: A payout of a market that is open: it would tell the outcome.
EARLY_PAYOUT: Final = 0.80861
#: The canaries: those of a `Maker` have numbers, so that one that became public later is no other's excuse.
CANARIES: Final = re.compile(r"canary-of-questions(?:-\d{5})?|0\.8086\d+")


def question_id(number: int) -> str:
    """A UUID that is no market's. Those of odd numbers come before all markets, those of even ones after them."""
    return f"{'0000' if number % 2 else 'ffff'}{number:04x}-0000-4000-a000-000000000000"


class Maker:
    """Adds valid rows, with any column replaced; ids are counted."""

    def __init__(self, database: sqlite3.Connection, first_market: int = 0x100) -> None:
        self.database = database
        self._market, self._question, self._canaries = first_market, 0, 0

    def canary(self) -> str:
        self._canaries += 1
        return f"{CANARY}-{self._canaries:05}"

    def early_payout(self) -> float:
        """A payout that is a canary, too."""
        self._canaries += 1
        return float(f"0.8086{self._canaries:05}1")

    def market(self, *categories: str, **columns: Any) -> str:
        """A public open market; returns its id as the database spells it."""
        self._market += 1
        name = rows.insert_market(self.database, self._market, **columns)
        for position, category in enumerate(categories):
            rows.insert_category(self.database, category, position, market_id=name)
        return name

    def markets(self, count: int, **columns: Any) -> list[str]:
        return [self.market(**columns) for _ in range(count)]

    def question(self, *members: str, **columns: Any) -> str:
        """A public question with these markets, labelled A, B, … at 0, 1, …; returns its id."""
        self._question += 1
        row = {
            "id": question_id(self._question),
            "slug": None,
            "title": f"Question of several {self._question}?",
            "description": None,
            "kind": "exclusive",
            "approval": "approved",
            "is_listed": 1,
            "created_at": f"2026-01-{1 + self._question % 28:02} 10:00:00.000000",
            "key": None,
        }  # fmt: skip
        row |= columns
        rows.insert(self.database, "questions", **row)
        for position, market in enumerate(members):
            self.member(str(row["id"]), market, label=chr(65 + position % 26), position=position)
        return str(row["id"])

    def hidden(self, *members: str, **columns: Any) -> str:
        """A question that is not published, whatever `columns` make of it, with canaries for texts."""
        texts = {name: self.canary() for name in ("title", "description", "slug")}
        name = self.question(**texts | columns)
        for market in members:
            self.member(name, market, label=self.canary())
        return name

    def member(self, question: str | None, market: str | None, **columns: Any) -> None:
        row: dict[str, Any] = {"label": None, "position": None, "payout": None, **columns}
        rows.insert(self.database, "question_members", question_id=question, market_id=market, **row)

    def bad_member(self, question: str, market: str, **columns: Any) -> None:
        """A membership that does not count; `columns` say why."""
        self.member(question, market, **{"label": self.canary()} | columns)

    def fx_member(self) -> str:
        name = self.market()
        rows.insert_fx_member(self.database, market_id=name)
        return name

    def spoil(self, question: str, column: str, octets: bytes = b"a\xff") -> None:
        """Put a text that cannot be decoded into a column."""
        self.database.execute(f"UPDATE questions SET {column} = CAST(? AS TEXT) WHERE id = ?", [octets, question])


@contextmanager
def making(path: Path, *, first_market: int = 0x100, has_relations: bool = True) -> Iterator[Maker]:
    """An empty database; without its relations nothing of questions can be added."""
    with closing(create_database(path)) as database:
        if has_relations:
            database.executescript(TABLES)
        yield Maker(database, first_market)
