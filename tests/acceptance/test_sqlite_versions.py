"""Versions on SQLite: the example's triggers, and a site that was mapped from docs/your-database.md alone."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from generator.builder.preflight import BuildCheck
from generator.builder.report import Report
from tests.support.sites.builds import AS_OF, ROOT, Silent, build_now, files, make_config
from tests.support.sites.views import SQL

VERSIONS: Final = (SQL / "sqlite-detail-versions.sql").read_text()
PRAGMA: Final = "PRAGMA recursive_triggers = ON"
SUPPORT: Final = ROOT / "tests" / "support"
DETAILS: Final = "v1/public/markets/detail"

# ── the example's triggers ────────────────────────────────────────────────────────────────────────────────────────

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


# ── a site that was mapped from the page alone ────────────────────────────────────────────────────────────────────

ROWS: Final = """
INSERT INTO fixtures VALUES
    (1, 'Lyon', 'Nice', '2046-07-15 21:00:00', 1, NULL, NULL),
    (2, 'Metz', 'Lille', '2020-01-15 21:00:00', 1, NULL, NULL),
    (3, 'Brest', 'Lens', '2026-01-15 21:00:00', 2, 1768521600000, NULL),
    (4, 'Nantes', 'Auxerre', '2026-01-16 21:00:00', 3, NULL, NULL),
    (5, 'CANARY', 'deleted', '2046-07-15 21:00:00', 1, NULL, '2026-01-01'),
    (6, 'CANARY', 'draft', '2046-07-15 21:00:00', 0, NULL, NULL);
INSERT INTO selections (sel_id, fixture_id, label) VALUES
    (11, 1, 'Lyon'), (12, 1, 'draw'), (21, 2, ' '), (31, 3, 'Brest'), (32, 3, 'draw'), (41, 4, 'draw'),
    (51, 5, 'CANARY'), (61, 6, 'CANARY');
UPDATE selections SET paused = 'Late team news' WHERE sel_id = 12;
INSERT INTO prices SELECT sel_id, 'Y', sel_id, sel_id = 31 FROM selections;
INSERT INTO prices SELECT sel_id, 'N', 100 - sel_id, sel_id = 32 FROM selections;
INSERT INTO wagers VALUES
    (1, 11, 'Y', 'CANARY a', 57, 2, 1769846400000, NULL), (2, 11, 'N', 'CANARY b', -150, -2, 1769850000000, NULL),
    (3, 11, 'Y', 'CANARY c', 900, 10, 1769853600000, '2026-01-31'),
    (4, 31, 'Y', 'CANARY a', 30, 1, 1768400000000, NULL),
    (5, 51, 'Y', 'CANARY a', 30, 1, 1768400000000, NULL);
INSERT INTO book VALUES
    (1, 11, 'Y', 'buy', 10, 500, 'CANARY', 0, '2046-01-01 00:00:00'),
    (2, 11, 'N', 'buy', 80, 300, 'CANARY', 0, '2046-01-01 00:00:00'),
    (3, 11, 'Y', 'sell', 90, 100, 'CANARY', 1, '2046-01-01 00:00:00'),
    (4, 11, 'Y', 'sell', 95, 100, 'CANARY', 0, '2020-01-01 00:00:00');
"""


def adapted() -> str:
    """The example's triggers for details with the club's names, as its operator would write them."""
    names = {"contract_id": "sel_id", "order_book_entries": "book", "bets": "wagers", "price_history": "prices"}
    of_details, _, rest = VERSIONS.partition("-- ── market_version")
    found = f"{of_details}{rest[rest.index('-- Existing markets') :]}".replace("FROM contracts", "FROM selections")
    for old, new in names.items():
        found = found.replace(old, new)
    return found


@pytest.fixture
def club(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as connection:
        connection.executescript((SUPPORT / "club_schema.sql").read_text() + ROWS + adapted())
        connection.executescript((SUPPORT / "club_views.sql").read_text())
        connection.execute("UPDATE public_ids SET since = '2026-01-10 00:00:00'")
        connection.execute(PRAGMA)
        yield connection


def build(folder: Path, output: str = "output") -> Report:
    settings = {"market_url": "https://club.example/bets/{key}", "layout": "chunks", "source__audit": 0}
    return build_now(make_config(folder, output=folder / output, **settings), shrink=True)


def details(folder: Path) -> dict[str, Any]:
    """Every detail by its question."""
    found = (json.loads(body) for body in files(folder / "output", DETAILS).values())
    return {detail["market"]["question"]: detail for detail in found}


def test_a_site_that_was_mapped_from_the_page_alone_is_published_as_meant(
    club: sqlite3.Connection, tmp_path: Path
) -> None:
    report = build(tmp_path)
    assert (report.findings(), report.built) == ([], 6)
    shown = details(tmp_path)
    markets = {question: detail["market"] for question, detail in shown.items()}
    assert {question: (market["status"], market["resolution"]) for question, market in markets.items()} == {
        "Lyon v. Nice Lyon": ("open", None),
        "Lyon v. Nice draw": ("open", None),
        "Metz v. Lille": ("closed", None),
        "Brest v. Lens Brest": ("resolved", "YES"),
        "Brest v. Lens draw": ("resolved", "NO"),
        "Nantes v. Auxerre draw": ("cancelled", "CANCEL"),
    }
    lyon = shown["Lyon v. Nice Lyon"]
    assert [lyon["market"][name] for name in ("prob", "volume", "traderCount", "closeTime", "createdAt")] == [
        0.11, 2.07, 2, "2046-07-15T19:00:00.000Z", "2026-01-10T00:00:00.000Z"
    ]  # fmt: skip
    assert [markets[f"Lyon v. Nice {answer}"]["acceptingBets"] for answer in ("Lyon", "draw")] == [True, False]
    assert lyon["orderBook"] == {"bids": [{"price": 0.1, "amount": 5}], "asks": [{"price": 0.2, "amount": 3}]}
    assert [(fill["amount"], fill["shares"], fill["price"]) for fill in lyon["recentFills"]] == [
        (1.5, 2, 0.75), (0.57, 2, 0.285)
    ]  # fmt: skip
    assert [point["prob"] for point in lyon["probHistory"]] == [0.285, 0.25]
    assert markets["Brest v. Lens draw"]["resolvedAt"] == "2026-01-16T00:00:00.000Z"
    assert not [key for key, body in files(tmp_path / "output", "").items() if b"CANARY" in body]


def test_check_finds_nothing_to_mend_in_it(club: sqlite3.Connection, tmp_path: Path) -> None:
    found = [*map(str, BuildCheck(make_config(tmp_path, layout="chunks"), AS_OF, Silent()).database())]
    assert [line for line in found if not line.startswith("fine: ")] == []
    assert "fine: detail_version: 6 of 6 markets have one; builds read their details only when it changes" in found


def test_a_build_of_what_changed_there_equals_one_of_everything(club: sqlite3.Connection, tmp_path: Path) -> None:
    assert build(tmp_path).details.read == 6
    for statement in (
        "INSERT OR IGNORE INTO wagers VALUES (6, 21, 'Y', 'CANARY', 100, 4, 1769846400000, NULL)",
        "REPLACE INTO wagers VALUES (4, 32, 'N', 'CANARY', 60, 1, 1768400000000, NULL)",
        "UPDATE wagers SET void_on = '2026-01-31' WHERE wager_id = 1",
        "DELETE FROM book WHERE book_id = 2",
        "UPDATE prices SET cents = 40 WHERE sel_id = 12 AND yn = 'Y'",
    ):
        club.execute(statement)
    assert build(tmp_path).details.read == 5
    build(tmp_path, "fresh")
    assert files(tmp_path / "output", DETAILS) == files(tmp_path / "fresh", DETAILS)
