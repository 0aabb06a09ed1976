"""Where `follow` keeps a copy of all markets: NDJSON, SQLite or DuckDB. Lines are kept byte for byte.

A copy changes all at once or not at all, its position included; that of NDJSON is a file beside it, written after it.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, get_type_hints

from public_markets_client.changes import Change, Position, digested, lines_in
from public_markets_client.decoding import wire_name
from public_markets_client.errors import StartAgainError, StoreError
from public_markets_client.models import FullMarket
from public_markets_client.requester import MALFORMED

_BATCH = 5_000
#: Of columns that are not text. SQLite keeps times as text and truth values as numbers.
_SQL_TYPES = {float: "DOUBLE", int: "BIGINT", bool: "BOOLEAN", datetime: "TIMESTAMP", datetime | None: "TIMESTAMP"}


class Update(NamedTuple):
    """What becomes of a copy: all its lines from now on, and what changes; each can be read once."""

    lines: Iterator[bytes]
    changes: Iterator[Change]


class Store(Protocol):
    """A copy of all markets, and its name in messages.

    Each method raises StartAgainError if the copy is damaged, StoreError if it cannot be read or written.
    """

    name: str

    def position(self) -> Position:
        """Where in the feed the copy is."""

    def lines(self) -> Iterator[bytes]:
        """Its markets, ascending by id."""

    def apply(self, new: Update, position: Position, before: Position | None) -> None:
        """Change the copy, which must be at `before`; None begins it anew."""


class NdjsonStore:
    """A file with one market per line, ascending by id, each the `market` object of its detail."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.name = Path(path), str(path)
        self.beside = self.path.with_name(self.path.name + ".position")

    def position(self) -> Position:
        """What the file beside it says."""
        with _opened(self.beside, "there is no copy yet") as file:
            return _position(file.read(), str(self.beside))

    def lines(self) -> Iterator[bytes]:
        """The lines of the file."""
        with _opened(self.path, f"{self.path} is gone") as file:
            yield from lines_in(file, self.name)

    def apply(self, new: Update, position: Position, before: Position | None) -> None:  # noqa: ARG002 - of a Store
        """Replace the file, then what is beside it; whoever reads it meanwhile reads the old one."""
        digest = hashlib.sha256()
        with _written(self.path) as file:
            file.writelines(digested(new.lines, digest))
            if digest.hexdigest() != position.state:
                raise StoreError(f"{self.path} was changed by another program meanwhile; run again")
        # If the computer fails before this, the digest of the next run's result differs, and that run fetches the dump.
        with _written(self.beside) as file:
            file.write(json.dumps(asdict(position)).encode())


@contextmanager
def _opened(path: Path, if_missing: str) -> Iterator[BinaryIO]:
    """A file to read."""
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise StartAgainError(if_missing) from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}") from None


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """A file that replaces another once it is complete and on the disk."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error}") from None
    finally:
        with suppress(OSError):
            part.unlink()


class _SqlStore:
    """A table `markets` with `id` and `line`, and a column for each property, computed from the line."""

    _column: str
    _delete: str
    _insert: str
    _begin = "BEGIN"
    _key = "PRIMARY KEY"

    def __init__(self, path: str | os.PathLike[str], connect: Callable[[str], Any], errors: type[Exception]) -> None:
        self.path, self.name, self._connect, self._errors = Path(path), str(path), connect, errors

    def position(self) -> Position:
        """What the table `position` says."""
        with self._opened() as connection:
            row = connection.execute("SELECT json FROM position").fetchone()
        if row is None:
            raise StartAgainError("there is no copy yet")
        return _position(row[0], self.name)

    def lines(self) -> Iterator[bytes]:
        """The lines of the table."""
        with self._opened() as connection:
            rows = connection.execute("SELECT id, line FROM markets ORDER BY id")
            while batch := rows.fetchmany(_BATCH):
                for market_id, line in batch:
                    if not line.startswith('{"id":' + json.dumps(market_id, ensure_ascii=False)):
                        raise StartAgainError(f"{self.path} is damaged: a line is not of the market {market_id}")
                    yield line.encode() + b"\n"

    def apply(self, new: Update, position: Position, before: Position | None) -> None:
        """Change rows and position in one transaction."""
        with self._opened() as connection:
            connection.execute(self._begin)  # what is not committed is undone when it is closed
            if before is None:
                connection.execute("DELETE FROM markets")
            elif self.position() != before:
                raise StoreError(f"{self.path} was changed by another program meanwhile; run again")
            while batch := [*islice(new.changes, _BATCH)]:
                # As arrays in JSON: a statement per row would take DuckDB a second for a thousand.
                connection.execute(self._delete, [json.dumps([one.id for one in batch if one.line_before])])
                connection.execute(self._insert, [json.dumps([one.line.decode()[:-1] for one in batch if one.line])])
            connection.execute("DELETE FROM position")
            connection.execute("INSERT INTO position VALUES (?)", [json.dumps(asdict(position))])
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            with closing(self._connect(str(self.path))) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS position (json TEXT)")
                connection.execute(f"CREATE TABLE IF NOT EXISTS markets ({self._columns()})")
                yield connection
        except self._errors as error:
            raise StoreError(f"{self.path} cannot be used: {error}") from None

    def _columns(self) -> str:
        hints = get_type_hints(FullMarket)
        types = {name: _SQL_TYPES.get(hint, "TEXT") for name, hint in hints.items() if name not in {"json", "id"}}
        computed = [self._column.format(name, wire_name(name), kind) for name, kind in types.items()]
        return ", ".join([f"id TEXT {self._key}", "line TEXT NOT NULL", *computed])


class SqliteStore(_SqlStore):
    """An SQLite database. Others may read it meanwhile, and see the old markets or the new ones."""

    _begin = "BEGIN IMMEDIATE"
    _delete = "DELETE FROM markets WHERE id IN (SELECT value FROM json_each(?))"
    _insert = "INSERT INTO markets (id, line) SELECT json_extract(value, '$.id'), value FROM json_each(?)"
    _column = "{0} {2} GENERATED ALWAYS AS (json_extract(line, '$.{1}')) VIRTUAL"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # `follow` of an asynchronous client may come from several threads, one at a time.
        connect = partial(sqlite3.connect, isolation_level=None, check_same_thread=False)
        super().__init__(path, connect, sqlite3.Error)


class DuckDbStore(_SqlStore):
    """A DuckDB database; needs the package `duckdb`. No other program can open it meanwhile."""

    _column = "{0} {2} GENERATED ALWAYS AS (TRY_CAST(line->>'$.{1}' AS {2})) VIRTUAL"
    _delete = """DELETE FROM markets WHERE id IN (SELECT unnest(from_json(?, '["VARCHAR"]')))"""
    _insert = """
        INSERT INTO markets (id, line)
        SELECT value->>'$.id', value FROM (SELECT unnest(from_json(?, '["VARCHAR"]')) AS value)
    """
    # DuckDB refuses to delete and insert the same key in one transaction.
    _key = "NOT NULL"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import duckdb  # noqa: PLC0415 - only who uses it needs it

        super().__init__(path, duckdb.connect, duckdb.Error)


def _position(text: str | bytes, name: str) -> Position:
    try:
        position = Position(**json.loads(text))
        if all(isinstance(getattr(position, key), hint) for key, hint in get_type_hints(Position).items()):
            return position
    except MALFORMED:
        pass
    raise StartAgainError(f"{name} is damaged")
