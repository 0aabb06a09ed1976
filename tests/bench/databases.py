"""The databases to read: realistic ones of any size on SQLite, and the trades made in them."""

import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from generator.demo.database import seed
from generator.source.relations import OPTIONAL, QUESTION_RELATIONS, RELATIONS, Kind
from tests.bench.runner import Runner, say
from tests.support.sites.builds import AS_OF
from tests.support.sites.rows import insert_fill, insert_point, tell_row_versions

_TIME: Final = "%Y-%m-%d %H:%M:%S.%f"
_TYPES: Final[Mapping[Kind, str]] = {
    "id": "uuid", "text": "text", "number": "double precision", "integer": "bigint", "boolean": "boolean",
    "timestamp": "timestamp with time zone", "date": "date",
}  # fmt: skip
#: The columns that differ in every repetition, and how.
_REPEATED: Final = {
    "id": "md5(id::text || time)::uuid AS id",
    "market_id": "md5(market_id::text || time)::uuid AS market_id",
    "slug": "slug || '-' || time AS slug",
}
#: The most rows of a market that `repeat` takes from a relation.
_ROWS: Final = 3
#: More fills than `trade` adds at once.
_FILLS: Final = 1_000_000
#: The condition of a listed market.
VISIBLE: Final = "approval = 'approved' AND is_listed"


def realistic(runner: Runner, markets: int, as_of: datetime = AS_OF) -> Path:
    """The demo database of then with that many markets, created once: do not change it."""
    folder = runner.options.databases or runner.root
    path = folder / (f"demo-{markets}.db" if as_of == AS_OF else f"demo-{markets}-{as_of:%Y%m%d%H%M}.db")
    if not path.exists():
        say(f"generating {markets} markets")
        folder.mkdir(parents=True, exist_ok=True)
        seed(path, as_of=as_of, markets=markets)
    return path


def copy_first(whole: Path, markets: int, part: Path) -> None:
    """Copy an SQLite database with its first `markets` markets only, much faster than they are generated."""
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("ATTACH ? AS whole", [str(whole)])
        created = "SELECT sql FROM whole.sqlite_schema WHERE type = ?"
        for (table,) in connection.execute(created, ["table"]).fetchall():
            connection.execute(table)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO main.markets SELECT * FROM whole.markets ORDER BY rowid LIMIT ?", [markets])
        for relation in RELATIONS:
            if relation != "markets":
                owned = f"SELECT * FROM whole.{relation} WHERE market_id IN (SELECT id FROM main.markets)"
                connection.execute(f"INSERT INTO main.{relation} {owned}")
        connection.execute("COMMIT")
        for (index,) in connection.execute(f"{created} AND sql IS NOT NULL", ["index"]).fetchall():
            connection.execute(index)


def repeat(path: Path, connection: Any, times: int) -> None:
    """Fill a PostgreSQL database with the markets of an SQLite one, so many times under other ids; both versions are 1.

    Every market has a few rows of each other relation at most: an idle build does not read them.
    """
    with closing(sqlite3.connect(path)) as source:
        for relation, columns in RELATIONS.items():
            names, owner = ", ".join(columns), "id" if relation == "markets" else "market_id"
            made = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in columns.items())
            connection.execute(f"CREATE TABLE once_{relation} ({made})")
            few = f"SELECT *, row_number() OVER (PARTITION BY {owner}) AS place FROM {relation}"
            with connection.cursor().copy(f"COPY once_{relation} ({names}) FROM STDIN") as copy:
                for row in source.execute(f"SELECT {names} FROM ({few}) WHERE place <= {_ROWS}"):
                    copy.write_row(row)
            other = ", ".join(_REPEATED.get(name, name) for name in columns)
            connection.execute(
                f"CREATE TABLE {relation} AS SELECT {other} FROM once_{relation}, generate_series(1, {times}) AS time"
            )
            connection.execute(f"CREATE INDEX ON {relation} ({owner})")
    for version in OPTIONAL["markets"]:
        if version != "key":
            connection.execute(f"ALTER TABLE markets ADD COLUMN {version} bigint DEFAULT 1")
    connection.execute("ANALYZE")


def url(path: Path) -> str:
    """The `source.url` of an SQLite file."""
    return f"sqlite:///{path}"


def add_versions(path: Path) -> None:
    """Let an SQLite database tell which markets changed, by triggers for rows that are added."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
        for relation in ("orders", "fills", "probabilities"):
            connection.execute(
                f"CREATE TRIGGER {relation}_change AFTER INSERT ON {relation} BEGIN "
                "UPDATE markets SET detail_version = detail_version + 1 WHERE id = new.market_id; END"
            )
        connection.commit()


def add_row_versions(path: Path) -> None:
    """Let it tell which rows changed, too."""
    with closing(sqlite3.connect(path)) as connection:
        tell_row_versions(connection)
        connection.commit()


def add_questions(path: Path, number: int) -> None:
    """Put all markets of an SQLite database into so many questions, each of which has one or more of them."""
    rng = random.Random(1)  # noqa: S311 - the same questions every time
    with closing(sqlite3.connect(path)) as connection:
        for relation, columns in QUESTION_RELATIONS.items():
            connection.execute(f"CREATE TABLE {relation} ({', '.join(columns)})")
        markets = [key for (key,) in connection.execute("SELECT id FROM markets ORDER BY id")]
        homes = [*range(number), *rng.choices(range(number), k=max(0, len(markets) - number))]
        questions = [str(UUID(int=rng.getrandbits(128), version=4)) for _ in range(number)]
        opened, kinds = AS_OF.strftime(_TIME), ("exclusive", "independent", "independent")
        connection.executemany(
            "INSERT INTO questions VALUES (?, ?, ?, 'Rules that hold for all of its markets.', ?, 'approved', 1, ?, ?)",
            [
                (
                    key,
                    f"question-{place}",
                    f"Which of these comes true, number {place}?",
                    kinds[place % 3],
                    opened,
                    place,
                )
                for place, key in enumerate(questions)
            ],
        )
        connection.executemany(
            "INSERT INTO question_members VALUES (?, ?, ?, ?, NULL)",
            [
                (questions[home], key, f"Answer {place} of this question", place)
                for place, (home, key) in enumerate(zip(homes, markets, strict=False))
            ],
        )
        connection.commit()


def public(path: Path) -> int:
    """The number of public markets."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM markets WHERE {VISIBLE}").fetchone()[0])


def trade(path: Path, share: float, seed: int = 1) -> int:
    """Trade once in open markets, as many as the share of all public ones, and return their number."""
    moment = (AS_OF - timedelta(seconds=1)).strftime(_TIME)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        (public,) = connection.execute(f"SELECT count(*) FROM markets WHERE {VISIBLE}").fetchone()
        found = connection.execute(f"SELECT id FROM markets WHERE {VISIBLE} AND status = 'open' ORDER BY id").fetchall()
        chosen = random.Random(seed).sample(found, round(public * share))  # noqa: S311 - the same markets every time
        for number, (market_id,) in zip(count(seed * _FILLS), chosen, strict=False):
            connection.execute(
                "UPDATE markets SET prob = min(0.98, prob + 0.01), volume = volume + 10, "
                "trader_count = trader_count + 1, last_activity_at = ? WHERE id = ?",
                [moment, market_id],
            )
            insert_fill(connection, number, market_id=market_id, created_at=moment)
            insert_point(connection, moment, market_id=market_id)
        connection.execute("COMMIT")
    return len(chosen)
