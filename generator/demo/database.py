"""Creates an SQLite database of realistic markets, hidden and private rows included.

It knows the relations, not how they are read or rendered. Every value that must never be published begins with
`CANARY-`, so searching the output for that word shows any leak.
"""
# ruff: noqa: S311 - nothing here is secret, and equal arguments must give equal rows

import os
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable

from generator.demo.questions import Asker
from generator.demo.rows import Author, TableRow
from generator.errors import SourceError

#: Markets per insert: few statements, and bounded memory.
BATCH: Final = 200
#: The file is deleted if it is not completed, never rolled back or repaired.
_PRAGMAS: Final = ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE")
_SEED: Final = 1
#: For sorting, in KiB.
_INDEXING: Final = "cache_size = -65536"


# ── the relations: the columns we read, then those we never read ──────────────────────────────────────────────────


def _text(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text) for name in names]


def _number(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Float) for name in names]


def _private(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text, info={"private": True}) for name in names]


#: Times are text, as usual in SQLite. No constraints: tests insert any row that a real view could return.
METADATA: Final = sa.MetaData()
# fmt: off
sa.Table(
    "markets", METADATA,
    *_text("id", "slug", "question", "description", "status", "approval"), sa.Column("is_listed", sa.Boolean),
    *_number("prob", "volume", "pool_yes", "pool_no"),
    *_text("close_time", "resolution", "created_at", "resolved_at", "last_activity_at"),
    sa.Column("trader_count", sa.Integer), *_text("trading_pause_reason", "creation_source", "sponsor"),
    *_private("creator_id", "moderation_note", "top_forecasters"),
    sa.Index("markets_by_id", "id"),
)
sa.Table(
    "market_categories", METADATA, *_text("market_id", "category"), sa.Column("position", sa.Integer),
    sa.Index("categories_by_market", "market_id", "position"),
)
sa.Table(
    "fx_members", METADATA,
    *_text("market_id", "title", "instrument", "source", "week_start", "week_end"), *_number("threshold_value"),
    *_text("direction"), sa.Column("is_public", sa.Boolean),
    sa.Index("fx_members_by_market", "market_id"),
)
sa.Table(
    "orders", METADATA,
    *_text("market_id", "side"), *_number("price", "amount"), sa.Column("is_public", sa.Boolean),
    *_private("id", "user_id"),
    sa.Index("orders_by_market", "market_id"),
)
sa.Table(
    "fills", METADATA,
    *_text("id", "market_id"), *_number("amount", "shares", "price"), *_text("created_at"),
    *_private("user_id", "matched_bet_id"),
    sa.Index("fills_by_market", "market_id", "created_at"),
)
sa.Table(
    "probabilities", METADATA, *_text("market_id", "recorded_at"), *_number("prob"),
    sa.Index("probabilities_by_market", "market_id", "recorded_at", "prob"),
)
#: Those of a demo that has questions.
QUESTIONS: Final = sa.MetaData()
sa.Table(
    "questions", QUESTIONS,
    *_text("id", "slug", "title", "description", "kind", "approval"), sa.Column("is_listed", sa.Boolean),
    *_text("created_at", "key"), *_private("creator_id"),
    sa.Index("questions_by_id", "id"),
)
sa.Table(
    "question_members", QUESTIONS,
    *_text("question_id", "market_id", "label"), sa.Column("position", sa.Integer), *_number("payout"),
    sa.Index("members_by_question", "question_id"),
)
# fmt: on


# ── the database file ─────────────────────────────────────────────────────────────────────────────────────────────


def seed(
    path: Path,
    *,
    as_of: datetime,
    markets: int = 400,
    application_id: int = 0,
    questions: bool = False,
) -> int:
    """Create the database `path` and return its number of markets, hidden ones included.

    Equal `as_of` (UTC if it has no offset), `markets` and `questions` give equal rows. `application_id` marks the file.
    With `questions` some markets answer one together, and their texts and categories say so; without, there are none.
    The file appears only when complete. Raises SourceError if `path` exists or cannot be written.
    """
    moment = as_of.astimezone(UTC).replace(tzinfo=None) if as_of.tzinfo else as_of
    author = Author(random.Random(_SEED), moment, Asker() if questions else None)
    tables = [*METADATA.sorted_tables, *(QUESTIONS.sorted_tables if questions else ())]
    with _new_database(path, tables) as connection:
        connection.exec_driver_sql(f"PRAGMA application_id = {application_id}")
        for start in range(0, markets, BATCH):
            batch = defaultdict[str, list[TableRow]](list)
            for number in range(start, min(start + BATCH, markets)):
                for table, rows in author.write(number).items():
                    batch[table] += rows
            for table, rows in batch.items():
                if rows:
                    connection.exec_driver_sql(_insertion(table), rows)
    return markets


def _insertion(table: str) -> str:
    """Inserts rows as they are: SQLAlchemy would take as long for each as SQLite does."""
    columns = (QUESTIONS if table in QUESTIONS.tables else METADATA).tables[table].columns
    values = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} VALUES ({values})"  # noqa: S608 - a name of ours


@contextmanager
def _new_database(path: Path, tables: Sequence[sa.Table]) -> Iterator[sa.Connection]:
    try:
        if path.exists():
            raise SourceError(f"{path} exists already: delete it, or name another file")
        with _built_beside(path) as partial, _connected(partial) as connection:
            for table in tables:
                connection.execute(CreateTable(table))
            yield connection
            connection.exec_driver_sql(f"PRAGMA {_INDEXING}")
            for index in (index for table in tables for index in table.indexes):
                index.create(connection)  # of all rows at once: ids are random, so each would go to another place
    except (OSError, SQLAlchemyError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "orig", None) or error
        remedy = "name a file in an existing, writable folder with free space"
        raise SourceError(f"cannot create {path}: {reason}; {remedy}") from error


@contextmanager
def _built_beside(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path`, and rename it to `path` on success."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    partial.touch()
    try:
        yield partial
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _connected(database: Path) -> Iterator[sa.Connection]:
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(database)), poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            for pragma in _PRAGMAS:
                connection.exec_driver_sql(f"PRAGMA {pragma}")
            yield connection
    finally:
        engine.dispose()
