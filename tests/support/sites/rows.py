"""Databases with hand-written rows: valid ones, with any column replaced."""

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from generator.demo.database import seed
from generator.markets import row_validation
from generator.markets.market import Market, SearchWords
from generator.site.catalog import Catalog
from generator.source.relations import RELATIONS
from tests.support.sites.builds import AS_OF, NOW

#: A valid membership of an FX family, as in the database and on the wire.
FX_MEMBER: Final[Mapping[str, Any]] = {
    "title": "EUR/USD weekly", "instrument": "EURUSD", "source": "ECB reference rates", "week_start": "2026-01-26",
    "week_end": "2026-01-30", "threshold_value": 1.08, "direction": "gte",
}  # fmt: skip


def create_database(path: Path) -> sqlite3.Connection:
    """Create an empty database and open it in autocommit mode."""
    seed(path, as_of=AS_OF, markets=0)
    return sqlite3.connect(path, isolation_level=None)


def market_id(number: int) -> str:
    """A UUID that sorts like its number."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def fill_id(number: int) -> str:
    """A UUID that sorts like its number and is not a market's."""
    return f"{number:08x}-0000-4000-9000-000000000000"


def insert(connection: sqlite3.Connection, relation: str, **columns: Any) -> None:
    """Insert a row unchanged."""
    marks = ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO {relation} ({', '.join(columns)}) VALUES ({marks})", [*columns.values()])


def market_row(number: int = 1, **columns: Any) -> dict[str, Any]:
    """A valid public open market; `columns` replace its values."""
    return {
        "id": market_id(number),
        "slug": None,
        "question": f"Question {number}?",
        "description": None,
        "status": "open",
        "approval": "approved",
        "is_listed": 1,
        "prob": 0.5,
        "volume": 100.0,
        "pool_yes": 50.0,
        "pool_no": 50.0,
        "close_time": "2046-06-30 23:59:59.000000",  # commands build as of now, and warn of what is overdue
        "resolution": None,
        "created_at": "2026-01-01 00:00:00.000000",
        "resolved_at": None,
        "last_activity_at": "2026-01-15 00:00:00.000000",
        "trader_count": 10,
        "trading_pause_reason": None,
        "creation_source": None,
        "sponsor": None,
    } | columns


def public_market(
    number: int = 1,
    *,
    fx: Mapping[str, Any] | None = None,
    fills24h: int = 0,
    search_texts: Iterable[str] = (),
    **columns: Any,
) -> Market:
    """The market of `market_row(number, **columns)` as a catalog holds it, with the words of the `search_texts`."""
    market = row_validation.market(market_row(number, **columns), fx=fx, fills24h=fills24h, as_of=NOW)
    return Market.of(market, words=SearchWords(search_texts).of(market.question, market.description))


def catalog_of(*markets: Market, hidden: int = 0) -> Catalog:
    return Catalog(markets, as_of=NOW, hidden=hidden)


def insert_market(connection: sqlite3.Connection, number: int = 1, **columns: Any) -> str:
    """Insert a valid public open market, with `columns` in place of its values; returns its id."""
    row = market_row(number, **columns)
    insert(connection, "markets", **row)
    return str(row["id"])


def insert_fill(connection: sqlite3.Connection, number: int = 1, **columns: Any) -> None:
    """Insert a valid fill, of market 1 if `market_id` is not given."""
    row = {
        "id": fill_id(number),
        "market_id": market_id(1),
        "amount": 10.0, "shares": 20.0, "price": 0.5, "created_at": "2026-01-15 00:00:00.000000",
    }  # fmt: skip
    insert(connection, "fills", **row | columns)


def insert_category(connection: sqlite3.Connection, category: object, position: object = 0, **columns: Any) -> None:
    """Insert a category, of market 1 if `market_id` is not given."""
    row = {"market_id": market_id(1), "category": category, "position": position}
    insert(connection, "market_categories", **row | columns)


def insert_order(connection: sqlite3.Connection, **columns: Any) -> None:
    """Insert a valid public bid, on market 1 if `market_id` is not given."""
    row = {"market_id": market_id(1), "side": "bid", "price": 0.4, "amount": 5.0, "is_public": 1}
    insert(connection, "orders", **row | columns)


def insert_point(connection: sqlite3.Connection, recorded_at: object, prob: object = 0.5, **columns: Any) -> None:
    """Insert a point of the history, of market 1 if `market_id` is not given."""
    row = {"market_id": market_id(1), "recorded_at": recorded_at, "prob": prob}
    insert(connection, "probabilities", **row | columns)


def insert_fx_member(connection: sqlite3.Connection, **columns: Any) -> None:
    """Insert a valid membership of a public FX family, of market 1 if `market_id` is not given."""
    insert(connection, "fx_members", **{"market_id": market_id(1), **FX_MEMBER, "is_public": 1} | columns)


def insert_whole_market(connection: sqlite3.Connection, number: int, **columns: Any) -> None:
    """Insert a valid public open market with an order, a fill and a point."""
    owner = {"market_id": insert_market(connection, number, **columns)}
    insert_order(connection, **owner)
    insert_fill(connection, number, **owner)
    insert_point(connection, "2026-01-15 00:00:00.000000", **owner)


def tell_row_versions(connection: sqlite3.Connection) -> None:
    """Give markets a `market_version`, and keep it true by triggers."""
    connection.execute("ALTER TABLE markets ADD COLUMN market_version INTEGER DEFAULT 1")
    renewed = "UPDATE markets SET market_version = market_version + 1 WHERE id IN ({})"
    values = ", ".join(RELATIONS["markets"])
    triggers = [f"markets_row AFTER UPDATE OF {values} ON markets BEGIN {renewed.format('old.id, new.id')}; END"]
    for relation in ("market_categories", "fx_members"):
        for act, owners in (("INSERT", "new.{0}"), ("UPDATE", "old.{0}, new.{0}"), ("DELETE", "old.{0}")):
            owner = owners.format("market_id")
            triggers.append(f"{relation}_{act} AFTER {act} ON {relation} BEGIN {renewed.format(owner)}; END")
    for trigger in triggers:
        connection.execute(f"CREATE TRIGGER {trigger}")
