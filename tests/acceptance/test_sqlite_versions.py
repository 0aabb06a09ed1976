"""Versions on SQLite: the triggers of the example."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest

from tests.support.sites.views import SQL

VERSIONS: Final = (SQL / "sqlite-detail-versions.sql").read_text()
PRAGMA: Final = "PRAGMA recursive_triggers = ON"

TABLES: Final = """
CREATE TABLE contracts (contract_id INTEGER PRIMARY KEY);
CREATE TABLE bets (id INTEGER PRIMARY KEY, contract_id INTEGER, stake INTEGER, ticket INTEGER UNIQUE);
CREATE TABLE price_history (contract_id INTEGER REFERENCES contracts ON DELETE CASCADE, chance INTEGER);
CREATE TABLE order_book_entries (contract_id INTEGER NOT NULL, remaining INTEGER);
CREATE TABLE topics (topic_id INTEGER PRIMARY KEY, label TEXT);
CREATE TABLE contract_topics (contract_id INTEGER, topic_id INTEGER);
INSERT INTO contracts VALUES (1), (2), (3);
INSERT INTO bets VALUES (1, 1, 10, 1), (2, 2, 10, 2);
INSERT INTO price_history VALUES (1, 5), (3, 5);
"""


class Versions:
    """A database with the example's triggers."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(TABLES + VERSIONS + VERSIONS)
        self.connection.execute("PRAGMA foreign_keys = ON")

    def _rows(self, query: str) -> dict[int, Any]:
        return dict(self.connection.execute(query).fetchall())

    def changed(self, statement: str, kept: str = "detail_versions") -> set[int]:
        """The markets whose version a statement changes."""
        query = f"SELECT contract_id, version FROM {kept}"
        before = self._rows(query)
        self.connection.execute(statement)
        return {key for key, version in self._rows(query).items() if version != before.get(key)}


@pytest.fixture
def versions() -> Iterator[Versions]:
    made = Versions()
    with closing(made.connection):
        yield made


def test_every_change_of_a_row_changes_the_versions_of_its_markets_and_of_no_other(versions: Versions) -> None:
    versions.connection.execute(PRAGMA)
    for statement, told in {
        "INSERT INTO bets VALUES (3, 1, 10, 3), (4, 4, 10, 4)": {1, 4},
        "INSERT OR IGNORE INTO bets VALUES (5, 2, 10, 5)": {2},
        "INSERT OR IGNORE INTO bets VALUES (5, 1, 10, 5)": set(),
        "INSERT OR FAIL INTO bets VALUES (6, 2, 10, 6)": {2},
        "INSERT INTO bets VALUES (6, 2, 10, 6) ON CONFLICT (id) DO UPDATE SET stake = 11": {2},
        "INSERT INTO bets VALUES (6, 2, 10, 6) ON CONFLICT (id) DO NOTHING": set(),
        "UPDATE OR IGNORE bets SET stake = 12 WHERE id IN (1, 2)": {1, 2},
        "UPDATE bets SET contract_id = 3 WHERE id = 6": {2, 3},
        "UPDATE bets SET contract_id = NULL WHERE id = 6": {3},
        "REPLACE INTO bets VALUES (1, 2, 10, 1)": {1, 2},
        "UPDATE OR REPLACE bets SET ticket = 4 WHERE id = 2": {2, 4},
        "DELETE FROM bets WHERE id = 3": {1},
        "DELETE FROM bets": {2},
        "INSERT INTO order_book_entries VALUES (3, 7)": {3},
        "UPDATE order_book_entries SET remaining = 8": {3},
        "UPDATE price_history SET chance = 6 WHERE contract_id = 1": {1},
        "DELETE FROM contracts WHERE contract_id = 3": {3},
        "INSERT INTO contracts VALUES (9)": set(),
    }.items():
        assert versions.changed(statement) == told, statement


def test_a_change_of_what_is_not_in_details_changes_the_versions_of_markets(versions: Versions) -> None:
    for statement, told in {
        "UPDATE contracts SET contract_id = 7 WHERE contract_id = 2": {2, 7},
        "INSERT INTO contracts VALUES (9)": {9},
        "INSERT INTO topics VALUES (1, 'Weather'), (2, 'Sports')": set(),
        "INSERT INTO contract_topics VALUES (1, 1), (3, 1)": {1, 3},
        "UPDATE contract_topics SET topic_id = 2 WHERE contract_id = 1": {1},
        "DELETE FROM contract_topics WHERE contract_id = 1": {1},
        "INSERT INTO bets VALUES (3, 1, 10, 3)": {1},
        "DELETE FROM bets WHERE id = 3": {1},
        "UPDATE order_book_entries SET remaining = 8": set(),
        "INSERT INTO price_history VALUES (1, 6)": set(),
        "UPDATE topics SET label = 'The weather' WHERE topic_id = 1": {3},
        "UPDATE topics SET label = 'Sport' WHERE topic_id = 2": set(),
        "REPLACE INTO topics VALUES (1, 'Rain')": {3},
        "INSERT INTO contract_topics VALUES (9, 5)": {9},
        "INSERT INTO topics VALUES (5, 'Late')": {9},
        "DELETE FROM topics WHERE topic_id = 1": {3},
    }.items():
        assert versions.changed(statement, "market_versions") == told, statement


def test_without_the_pragma_a_row_that_is_replaced_goes_without_a_word(versions: Versions) -> None:
    assert versions.changed("REPLACE INTO bets VALUES (1, 2, 10, 1)") == {2}
    versions.connection.execute(PRAGMA)
    assert versions.changed("REPLACE INTO bets VALUES (1, 3, 10, 1)") == {2, 3}
    (said,) = re.findall(r"^--     (PRAGMA .*);$", VERSIONS, re.MULTILINE)
    assert said == PRAGMA


def test_a_table_that_is_made_anew_has_lost_its_triggers_until_the_file_is_run_again(versions: Versions) -> None:
    versions.connection.executescript("""
        CREATE TABLE new AS SELECT * FROM bets; DROP TABLE bets; ALTER TABLE new RENAME TO bets;
    """)
    assert versions.changed("UPDATE bets SET stake = 1") == set()
    before = {*versions.connection.execute("SELECT version FROM detail_versions")}
    versions.connection.executescript(VERSIONS)
    assert not before & {*versions.connection.execute("SELECT version FROM detail_versions")}
    assert versions.changed("UPDATE bets SET stake = 2") == {1, 2}
