"""The example views for SQLite over an existing schema: what they publish, ids that stay, versions."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from generator.builder.preflight import BuildCheck
from generator.builder.report import Report
from generator.progress import SILENT
from tests.support.sites.builds import AS_OF, VARIANTS, build_now, details, files, make_config
from tests.support.sites.views import SQL

VIEWS: Final = (SQL / "sqlite-views.sql").read_text()
VERSIONS: Final = (SQL / "sqlite-detail-versions.sql").read_text()
#: In everything that must not be published.
CANARY: Final = "CANARY"

TABLES: Final = """
CREATE TABLE contracts (contract_id INTEGER PRIMARY KEY, title TEXT, state TEXT, verdict TEXT DEFAULT 'passed',
    is_searchable INTEGER DEFAULT 1, deleted_at TEXT, outcome TEXT, chance_bp INTEGER DEFAULT 6250,
    turnover_cents INTEGER DEFAULT 12345, reserve_yes_cents INTEGER DEFAULT 1050, reserve_no_cents INTEGER DEFAULT 999,
    trading_ends_at TEXT DEFAULT '2026-06-30 23:59:59', opened_at TEXT DEFAULT '2026-01-01 10:00:00', settled_at TEXT,
    last_trade_at TEXT, halt_notice TEXT, url_name TEXT, rules TEXT, origin TEXT, sponsored_by TEXT);
CREATE TABLE topics (topic_id INTEGER PRIMARY KEY, label TEXT);
CREATE TABLE contract_topics (contract_id INTEGER, topic_id INTEGER, rank INTEGER);
CREATE TABLE order_book_entries (contract_id INTEGER, direction TEXT, price_cents INTEGER, remaining_cents INTEGER,
    is_hidden INTEGER DEFAULT 0, cancelled_at TEXT);
CREATE TABLE bets (bet_id TEXT PRIMARY KEY, contract_id INTEGER, user_id TEXT DEFAULT 'CANARY a', stake_cents INTEGER,
    shares NUMERIC, price_cents INTEGER, placed_at TEXT DEFAULT '2026-01-31 11:00:00', undone_at TEXT);
CREATE TABLE price_history (contract_id INTEGER, seen_at TEXT, chance_bp INTEGER);
"""
ROWS: Final = """
INSERT INTO contracts (contract_id, title, state) VALUES (1, 'Rain?', 'trading'), (2, 'Halted?', 'halted'),
    (3, 'Halted, and why?', 'halted'), (4, 'Expired?', 'expired'), (5, 'Settled?', 'settled'), (6, 'Voided?', 'voided'),
    (7, 'CANARY draft', 'draft'), (8, 'CANARY unlisted', 'trading'), (9, 'CANARY refused', 'trading'),
    (10, 'CANARY deleted', 'trading'), (11, 'New word?', 'postponed');
UPDATE contracts SET url_name = 'rain', rules = 'If it rains.', origin = 'web', sponsored_by = ' '
    WHERE contract_id = 1;
UPDATE contracts SET halt_notice = 'Under review' WHERE contract_id = 3;
UPDATE contracts SET trading_ends_at = '2026-01-15 00:00:00' WHERE contract_id > 3;
UPDATE contracts SET outcome = 'yes', settled_at = '2026-01-20 12:00:00' WHERE contract_id IN (4, 5);
UPDATE contracts SET outcome = 'refund' WHERE contract_id = 6;
UPDATE contracts SET is_searchable = 0 WHERE contract_id = 8;
UPDATE contracts SET verdict = 'CANARY' WHERE contract_id = 9;
UPDATE contracts SET deleted_at = '2026-01-02' WHERE contract_id = 10;
INSERT INTO topics VALUES (1, 'Weather'), (2, 'June');
INSERT INTO contract_topics VALUES (1, 1, 5), (1, 2, 3), (8, 1, 1);
INSERT INTO order_book_entries VALUES (1, 'buy', 40, 500, 0, NULL), (1, 'sell', 70, 300, 0, NULL),
    (1, 'sell', 60, 300, 1, NULL), (1, 'sell', 61, 300, 0, '2026-01-02'), (1, 'buy', 41, 0, 0, NULL);
INSERT INTO bets (bet_id, contract_id, stake_cents, shares, price_cents) VALUES
    ('CANARY 1', 1, 1000, 20, 50), ('CANARY 2', 1, 400, 8, NULL), ('CANARY 4', 8, 1, 1, 50);
INSERT INTO bets (bet_id, contract_id, user_id, stake_cents, shares, undone_at) VALUES
    ('CANARY 3', 1, 'CANARY b', 900, 9, '2026-01-31');
INSERT INTO price_history VALUES (1, '2026-01-01 10:00:00', 5000), (1, '2026-01-31 11:00:00', 6250);
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as connection:
        connection.executescript(TABLES + ROWS + VIEWS + VIEWS)
        yield connection


def build(folder: Path, output: str = "output") -> Report:
    return build_now(make_config(folder, output=folder / output, source__audit=0, **VARIANTS["extended"]), invalid=True)


def test_what_is_public_is_published_in_our_units_and_words(site: sqlite3.Connection, tmp_path: Path) -> None:
    report = build(tmp_path)
    shown = details(tmp_path / "output", "question")
    markets = {question: detail["market"] for question, detail in shown.items()}
    words = {name: (one["status"], one["resolution"], one["tradingPauseReason"]) for name, one in markets.items()}
    assert words == {
        "Rain?": ("open", None, None),
        "Halted?": ("open", None, "Paused"),
        "Halted, and why?": ("open", None, "Paused: Under review"),
        "Expired?": ("closed", None, None),
        "Settled?": ("resolved", "YES", None),
        "Voided?": ("cancelled", "CANCEL", None),
    }
    rain = shown["Rain?"]
    expected = {
        "slug": "rain", "description": "If it rains.", "prob": 0.625, "volume": 123.45, "poolYes": 10.5, "poolNo": 9.99,
        "closeTime": "2026-06-30T23:59:59.000Z", "createdAt": "2026-01-01T10:00:00.000Z", "traderCount": 1,
        "creationSource": "web", "fills24h": 2,
    }  # fmt: skip
    assert {name: rain["market"][name] for name in expected} == expected
    assert "sponsor" not in rain["market"], "blank"
    assert rain["market"]["categories"] == ["June", "Weather"]
    assert rain["orderBook"] == {"bids": [{"price": 0.4, "amount": 5}], "asks": [{"price": 0.7, "amount": 3}]}
    fills = [(fill["amount"], fill["shares"], fill["price"]) for fill in rain["recentFills"]]
    assert sorted(fills) == [(4, 8, None), (10, 20, 0.5)]
    assert [point["prob"] for point in rain["probHistory"]] == [0.5, 0.625]
    assert markets["Settled?"]["resolvedAt"] == markets["Settled?"]["lastActivityAt"] == "2026-01-20T12:00:00.000Z"
    assert markets["Expired?"]["resolvedAt"] is None, "entered, but not announced"
    assert report.hidden == 4
    assert [(row.title, row.reason) for row in report.quarantine] == [("New word?", "status: must not be NULL")]
    assert not [key for key, body in files(tmp_path / "output", "").items() if CANARY.encode() in body]


def test_check_finds_nothing_to_mend(site: sqlite3.Connection, tmp_path: Path) -> None:
    site.execute("DELETE FROM contracts WHERE state = 'postponed'")
    found = [*map(str, BuildCheck(make_config(tmp_path, layout="chunks"), AS_OF, SILENT).database())]
    assert [line for line in found if not line.startswith("fine: ")] == []


def test_ids_stay_whatever_becomes_of_the_rows_and_the_views(site: sqlite3.Connection) -> None:
    def ids() -> dict[tuple[str, object], str]:
        return {(kind, key): made for kind, key, made in site.execute("SELECT kind, key, id FROM public_ids")}

    for number, statement in enumerate(("INSERT", "INSERT OR IGNORE", "REPLACE", "INSERT OR REPLACE")):
        before = ids()
        site.execute(f"{statement} INTO bets (bet_id, contract_id) VALUES ('new {number}', 1), ('2nd {number}', 1)")
        site.execute("REPLACE INTO bets (bet_id, contract_id) VALUES ('CANARY 1', 1)")
        site.execute(f"{statement} INTO contracts (contract_id) VALUES ({100 + number})")
        assert ids().items() >= before.items()
        assert len(ids()) == len(before) + 3
        assert len({*ids().values()}) == len(ids())
    version_4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}")
    assert all(version_4.fullmatch(made) for made in ids().values())
    before = ids()
    site.executescript("CREATE TABLE new AS SELECT * FROM bets; DROP VIEW markets; DROP VIEW fills; DROP TABLE bets;")
    site.executescript("ALTER TABLE new RENAME TO bets;" + VIEWS)
    assert ids() == before
    site.execute("INSERT INTO bets (bet_id, contract_id) VALUES ('after', 1)")
    assert ids().keys() - before.keys() == {("bet", "after")}


def test_a_row_that_has_no_id_is_reported(site: sqlite3.Connection, tmp_path: Path) -> None:
    site.execute("DELETE FROM public_ids WHERE kind = 'contract' AND key = 1")
    site.execute("DELETE FROM public_ids WHERE kind = 'bet' AND key = 'CANARY 1'")
    site.execute("UPDATE bets SET contract_id = 2 WHERE bet_id = 'CANARY 1'")
    report = build(tmp_path)
    named = {(row.relation, row.key, row.reason) for row in report.quarantine}
    (paused,) = site.execute("SELECT id FROM public_ids WHERE kind = 'contract' AND key = 2").fetchone()
    assert {("markets", '"Rain?"', "id: must not be NULL"), ("fills", paused, "id: must not be NULL")} <= named


def test_with_versions_a_build_reads_what_changed(site: sqlite3.Connection, tmp_path: Path) -> None:
    commented = re.compile(r"^    -- (, coalesce.*?)\n    -- (.*AS detail_version)$", re.MULTILINE)
    optional = commented.sub(r"\1\n\2", VIEWS)
    assert optional != VIEWS
    optional = re.sub(r"^    -- (, .*AS market_version)$", r"\1", optional, flags=re.MULTILINE)
    assert optional.count("AS market_version") == 1
    site.executescript(VERSIONS + optional)
    site.execute("DELETE FROM contracts WHERE state = 'postponed'")
    assert build(tmp_path).details.read == 6
    site.execute("INSERT INTO bets (bet_id, contract_id, stake_cents, shares) VALUES ('new', 2, 100, 1)")
    assert build(tmp_path).details.read == 1
    assert details(tmp_path / "output", "question")["Halted?"]["recentFills"][0]["amount"] == 1
    site.execute("UPDATE topics SET label = 'Meteorology' WHERE label = 'Weather'")
    site.execute("UPDATE contracts SET title = 'Halted again?' WHERE title = 'Halted?'")
    assert build(tmp_path).details.read == 0
    assert "Halted again?" in details(tmp_path / "output", "question")
    assert build(tmp_path, "fresh").built == 6
    assert details(tmp_path / "output", "question") == details(tmp_path / "fresh", "question")


# ── versions ──────────────────────────────────────────────────────────────────────────────────────────────────────────


PRAGMA: Final = "PRAGMA recursive_triggers = ON"

TRIGGERED: Final = """
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
        self.connection.executescript(TRIGGERED + VERSIONS + VERSIONS)
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
