"""The markets of a server of the read API, in memory."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tests.verify.rows import Row

#: The fields of a market in lists, in its detail, and in the snapshot.
ITEM_FIELDS: Final = (
    "id", "question", "status", "prob", "volume", "closeTime", "resolution", "createdAt", "resolvedAt",
    "lastActivityAt", "traderCount", "fills24h", "acceptingBets",
)  # fmt: skip
DETAIL_FIELDS: Final = (*ITEM_FIELDS, "description", "poolYes", "poolNo", "tradingPauseReason", "fxFamilyMember")
SIGNAL_FIELDS: Final = (
    "id", "question", "prob", "volume", "closeTime", "createdAt", "lastActivityAt", "traderCount", "fills24h",
)  # fmt: skip
#: What stands beside the market in its detail.
PARTS: Final = ("orderBook", "recentFills", "probHistory")
#: All that is stored of a market.
COLUMNS: Final = ("approval", "is_listed", *DETAIL_FIELDS, *PARTS)
#: Columns that hold JSON text.
JSON_COLUMNS: Final = ("fxFamilyMember", *PARTS)


class Database:
    """One state of the markets."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self.write(f"CREATE TABLE markets ({', '.join(COLUMNS)}, ended AS (coalesce(resolvedAt, closeTime)))")
        for row in rows:
            self.insert(row)

    def insert(self, row: Row) -> None:
        values = row | {name: json.dumps(row[name]) for name in JSON_COLUMNS if row[name] is not None}
        self.write(f"INSERT INTO markets VALUES ({marks(COLUMNS)})", [values[name] for name in COLUMNS])

    def write(self, sql: str, values: Iterable[Any] = ()) -> None:
        self._connection.execute(sql, tuple(values))

    def rows(self, rest: str, values: Iterable[Any] = ()) -> list[Row]:
        """The markets that the rest of a SELECT chooses, with `ended`, the time that the sort of that name compares."""
        found = self._connection.execute(f"SELECT * FROM markets {rest}", tuple(values)).fetchall()
        return [{name: _read_value(name, row[name]) for name in row.keys()} for row in found]  # noqa: SIM118 - no dict

    def count(self, where: str, values: Iterable[Any]) -> int:
        (number,) = self._connection.execute(f"SELECT count(*) FROM markets WHERE {where}", tuple(values)).fetchone()
        return int(number)

    def copy(self) -> "Database":
        return Database(self.rows(""))

    def close(self) -> None:
        self._connection.close()


def _read_value(name: str, value: Any) -> Any:
    if name in JSON_COLUMNS and value is not None:
        return json.loads(value)
    return bool(value) if name in ("is_listed", "acceptingBets") else value


def marks(values: Iterable[object]) -> str:
    """A placeholder in SQL for each value."""
    return ", ".join("?" for _ in values)


def reached(order: Sequence[tuple[str, str]], position: list[Any]) -> tuple[str, list[Any]]:
    """SQL, and the values in it, for what stands at a position of an order or before."""
    parts, values = [], []
    for depth, (column, direction) in enumerate(order):
        sign = {"DESC": ">", "ASC": "<"}[direction] + ("=" if column == "id" else "")
        parts.append(" AND ".join([*(f"{earlier} = ?" for earlier, _ in order[:depth]), f"{column} {sign} ?"]))
        values += position[: depth + 1]
    return f"({' OR '.join(parts)})", values
