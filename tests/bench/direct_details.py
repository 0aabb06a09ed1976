"""Every detail of a database with driver cursors and msgspec, without validation: the lower bound for the product.

    python -m tests.bench.direct_details URL FILE

It trusts every row, and parses only the time formats of `databases.uniform`. Imports nothing of the product.
"""

import json
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import psycopg

AS_OF = "2026-01-31T12:00:00.000Z"
DAY_BEFORE = "2026-01-30T12:00:00.000Z"
MARKETS = """
    SELECT {id}, question, status, prob, volume, {close_time}, resolution, {created_at}, {resolved_at},
           {last_activity_at}, trader_count, description, pool_yes, pool_no, trading_pause_reason
    FROM markets WHERE approval = 'approved' AND is_listed ORDER BY id"""
FX = """
    SELECT {market_id}, title, instrument, source, {week_start}, {week_end}, threshold_value, direction
    FROM fx_members WHERE is_public ORDER BY market_id"""
VISIBLE = "JOIN markets m ON m.id = r.market_id WHERE m.approval = 'approved' AND m.is_listed"
ORDERS = "SELECT {market_id}, side, price, amount FROM orders r " + VISIBLE + " AND is_public ORDER BY m.id"
FILLS = "SELECT {market_id}, {r.id}, amount, shares, price, {r.created_at} FROM fills r " + VISIBLE + " ORDER BY m.id"
POINTS = "SELECT {market_id}, {recorded_at}, r.prob FROM probabilities r " + VISIBLE + " ORDER BY m.id"


Row = tuple[Any, ...]
#: Runs a statement and streams its rows.
Cursor = Callable[[str], Iterable[Row]]


class Fx(msgspec.Struct, rename="camel"):
    title: str
    instrument: str
    source: str
    week_start: str
    week_end: str
    threshold_value: float
    direction: str


class Market(msgspec.Struct, rename="camel"):
    id: str
    question: str
    status: str
    prob: float
    volume: float
    close_time: str
    resolution: str | None
    created_at: str
    resolved_at: str | None
    last_activity_at: str
    trader_count: int
    fills24h: int
    accepting_bets: bool
    description: str | None
    pool_yes: float
    pool_no: float
    trading_pause_reason: str | None
    fx_family_member: Fx | None


class Level(msgspec.Struct):
    price: float
    amount: float


class Book(msgspec.Struct):
    bids: list[Level]
    asks: list[Level]


class Fill(msgspec.Struct):
    id: str
    amount: float
    shares: float
    price: float | None
    timestamp: str


class Point(msgspec.Struct):
    timestamp: str
    prob: float


class Detail(msgspec.Struct, rename="camel"):
    market: Market
    order_book: Book
    recent_fills: list[Fill]
    prob_history: list[Point]


def wire(moment: str) -> str:
    """The wire form of a time with microseconds or whole seconds."""
    if moment[19:20] == ".":
        return f"{moment[:10]}T{moment[11:23]}Z"
    return f"{moment[:10]}T{moment[11:19]}.000Z"


class Groups:
    """The rows of each market in turn, from a cursor sorted by market."""

    def __init__(self, cursor: Iterable[Row]) -> None:
        self.groups = groupby(cursor, key=itemgetter(0))
        self.advance()

    def advance(self) -> None:
        self.owner: str | None
        self.rows: Iterable[Row]
        self.owner, self.rows = next(self.groups, (None, ()))

    def of(self, owner: str) -> list[Row]:
        if owner != self.owner:
            return []
        found = list(self.rows)
        self.advance()
        return found


def levels(rows: list[Row], side: str) -> list[Level]:
    sums: dict[float, float] = {}
    for _, of, price, amount in rows:
        if of == side:
            sums[price] = sums.get(price, 0.0) + amount
    return [Level(price, sums[price]) for price in sorted(sums, reverse=side == "bid")]


def details(cursor: Cursor) -> Iterator[Detail]:
    fx = {row[0]: Fx(*row[1:]) for row in cursor(FX)}
    orders, fills, points = Groups(cursor(ORDERS)), Groups(cursor(FILLS)), Groups(cursor(POINTS))
    for row in cursor(MARKETS):
        owner, question, status, prob, volume, close, resolution, created, resolved, active, traders = row[:11]
        book = orders.of(owner)
        trades = [Fill(fill[1], fill[2], fill[3], fill[4], wire(fill[5])) for fill in fills.of(owner)]
        trades.sort(key=lambda fill: fill.id)
        trades.sort(key=lambda fill: fill.timestamp, reverse=True)
        history = [Point(wire(point[1]), point[2]) for point in points.of(owner)]
        history.sort(key=lambda point: point.timestamp)
        recent = sum(DAY_BEFORE < trade.timestamp <= AS_OF for trade in trades)
        closes = wire(close)
        accepts = status == "open" and closes > AS_OF and row[14] is None
        market = Market(
            owner.lower(), question, status, prob, volume, closes, resolution, wire(created),
            resolved and wire(resolved), wire(active), traders, recent, accepts,
            row[11], row[12], row[13], row[14], fx.get(owner),
        )  # fmt: skip
        yield Detail(market, Book(levels(book, "bid"), levels(book, "ask")), trades[:50], history)


def spelled(statement: str, cast: str) -> str:
    """The statement with a cast after each column to be read as text."""
    return re.sub(r"\{([a-z_.]+)\}", rf"\1{cast}", statement)


def sqlite_cursor(path: str) -> Cursor:
    connection = sqlite3.connect(path)
    return lambda statement: connection.execute(spelled(statement, ""))


def postgresql_cursor(url: str) -> Cursor:
    connection = psycopg.connect(url)
    connection.execute("SET TIME ZONE 'UTC'")
    numbers = count()

    def cursor(statement: str) -> Iterable[Row]:
        named = connection.cursor(name=f"c{next(numbers)}")
        named.itersize = 2_000
        return named.execute(spelled(statement, "::text"))

    return cursor


def main() -> None:
    url, place = sys.argv[1:]
    cursor = sqlite_cursor(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else postgresql_cursor(url)
    encode = msgspec.json.Encoder().encode
    wall, cpu, made = time.perf_counter(), time.process_time(), 0
    with Path(place).open("wb") as lines:
        for detail in details(cursor):
            lines.write(encode(detail) + b"\n")
            made += 1
    took = {"made": made, "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    sys.stdout.write(json.dumps(took))


if __name__ == "__main__":
    main()
