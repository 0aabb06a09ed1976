"""A database whose clock can be set: its relations show the rows that it had by then, and markets as they stood."""

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

_TABLES: Final = ("markets", "market_categories", "fx_members", "orders", "fills", "probabilities")
_NOW: Final = "(SELECT julianday(now) FROM clock)"
#: What a market did not have at an earlier time: its outcome, and a later probability.
_MARKETS: Final = f"""
CREATE VIEW markets AS SELECT id, slug, question, description,
  CASE WHEN julianday(coalesce(resolved_at, close_time)) > {_NOW} THEN 'open' ELSE status END AS status,
  approval, is_listed,
  CASE WHEN julianday(coalesce(resolved_at, last_activity_at)) <= {_NOW} THEN prob ELSE coalesce(
    (SELECT prob FROM all_probabilities WHERE market_id = m.id AND julianday(recorded_at) <= {_NOW}
     ORDER BY julianday(recorded_at) DESC LIMIT 1), prob) END AS prob,
  volume, pool_yes, pool_no, close_time,
  CASE WHEN julianday(resolved_at) <= {_NOW} THEN resolution END AS resolution, created_at,
  CASE WHEN julianday(resolved_at) <= {_NOW} THEN resolved_at END AS resolved_at,
  CASE WHEN julianday(last_activity_at) <= {_NOW} THEN last_activity_at ELSE created_at END AS last_activity_at,
  trader_count, trading_pause_reason, creation_source, sponsor
FROM all_markets AS m WHERE julianday(created_at) <= {_NOW}
"""
_SHOWN: Final = "market_id IN (SELECT id FROM markets)"
_WHERE: Final = {"fills": f"julianday(created_at) <= {_NOW}", "probabilities": f"julianday(recorded_at) <= {_NOW}"}


def prepare(database: Path, now: datetime) -> None:
    """Put views in place of the database's tables, which `set_clock` moves in time."""
    with closing(sqlite3.connect(database)) as connection:
        for name in _TABLES:
            connection.execute(f"ALTER TABLE {name} RENAME TO all_{name}")
        connection.execute("CREATE TABLE clock (now TEXT)")
        connection.execute("INSERT INTO clock VALUES (?)", [now.isoformat()])
        connection.execute(_MARKETS)
        for name in _TABLES[1:]:
            where = f"{_SHOWN} AND {_WHERE[name]}" if name in _WHERE else _SHOWN
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM all_{name} WHERE {where}")
        connection.commit()


def set_clock(database: Path, now: datetime) -> None:
    """Have the relations show what the database had at another time."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE clock SET now = ?", [now.isoformat()])
        connection.commit()
