"""Where `follow` keeps a copy of all markets: NDJSON, SQLite or DuckDB. Lines are kept byte for byte.

A copy changes all at once or not at all, its position included; that of NDJSON is a file beside it, written after it.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, get_type_hints

from public_markets_client.changes import Change, Position, lines_in
from public_markets_client.decoding import decoded, wire_name
from public_markets_client.errors import AnswerError, StartAgainError, StoreError
from public_markets_client.models import FullMarket
from public_markets_client.requester import parsed

__all__ = ["DuckDbStore", "NdjsonStore", "SqliteStore", "Store"]
_BATCH = 5_000
#: Of columns that are not text. SQLite keeps times as text and truth values as numbers.
_SQL_TYPES = {float: "DOUBLE", int: "BIGINT", bool: "BOOLEAN", datetime: "TIMESTAMP", datetime | None: "TIMESTAMP"}


class Store(Protocol):
    """A copy of all markets.

    Each method raises StartAgainError if the copy is damaged, StoreError if it cannot be read or written.
    """

    def position(self) -> Position:
        """Where in the feed the copy is."""

    def lines(self) -> Iterator[bytes]:
        """Its markets, ascending by id."""

    def apply(self, lines: Iterator[bytes], changes: Iterator[Change], to: Position, before: Position | None) -> None:
        """Give the copy these lines, which differ by these changes; it must be at `before`, and None begins it anew."""


class NdjsonStore:
    """A file with one market per line, ascending by id, each the `market` object of its detail."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.beside = self.path.with_name(self.path.name + ".position")

    def position(self) -> Position:
        """What the file beside it says."""
        with _saying_so(self.path, OSError):
            if not (self.path.exists() and self.beside.exists()):
                raise StartAgainError("there is no copy yet")
            return _position(self.beside.read_bytes(), self.beside)

    def lines(self) -> Iterator[bytes]:
        """The lines of the file."""
        with _saying_so(self.path, OSError), self.path.open("rb") as file:
            yield from lines_in(file, str(self.path))

    def apply(self, lines: Iterator[bytes], changes: Iterator[Change], to: Position, before: Position | None) -> None:  # noqa: ARG002 - of a Store
        """Replace the file, then what is beside it; whoever reads it meanwhile reads the old one."""
        # If the computer fails between the two, the next run's result has another digest, and it fetches the dump.
        for path, content in ((self.path, lines), (self.beside, [json.dumps(to.json).encode()])):
            with _saying_so(path, OSError), _replaced(path) as file:
                file.writelines(content)


@contextmanager
def _saying_so(path: Path, errors: type[Exception]) -> Iterator[None]:
    """Say of what else goes wrong which copy it is about."""
    try:
        yield
    except errors as error:
        raise StoreError(f"{path} cannot be used: {error}") from None


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """A file that replaces another once it is complete and on the disk."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class _SqlStore:
    """A table `markets` with `id` and `line`, and a column for each property, computed from the line."""

    #: The rows of an array in JSON, as `value`; the function that takes text from an object; a column for a property.
    _each = "(SELECT value FROM json_each(?))"
    _text_of = "json_extract"
    _column = "{0} {2} GENERATED ALWAYS AS (json_extract(line, '$.{1}')) VIRTUAL"
    _key = "PRIMARY KEY"

    def __init__(self, path: str | os.PathLike[str], connect: Callable[[str], Any], errors: type[Exception]) -> None:
        self.path, self._connect, self._errors = Path(path), connect, errors

    def position(self) -> Position:
        """What the table `position` says."""
        with self._opened() as connection:
            row = connection.execute("SELECT json FROM position").fetchone()
        if row is None:
            raise StartAgainError("there is no copy yet")
        return _position(row[0], self.path)

    def lines(self) -> Iterator[bytes]:
        """The lines of the table."""
        with self._opened() as connection:
            rows = connection.execute("SELECT id, line FROM markets ORDER BY id")
            while batch := rows.fetchmany(_BATCH):
                for market_id, line in batch:
                    if not str(line).startswith('{"id":' + json.dumps(str(market_id), ensure_ascii=False)):
                        raise StartAgainError(f"{self.path} is damaged: a line is not of the market {market_id}")
                    yield line.encode() + b"\n"

    def apply(self, lines: Iterator[bytes], changes: Iterator[Change], to: Position, before: Position | None) -> None:  # noqa: ARG002 - of a Store
        """Change rows and position in one transaction."""
        with self._opened() as connection:
            connection.execute("BEGIN")  # what is not committed is undone when it is closed
            # With this, other programs have to wait.
            connection.execute("DELETE FROM position")
            if before is None:
                connection.execute("DELETE FROM markets")
            elif self.position() != before:
                raise StoreError(f"{self.path} was changed by another program meanwhile; run again")
            delete = f"DELETE FROM markets WHERE id IN {self._each}"  # noqa: S608 - of parts that stand below
            insert = f"INSERT INTO markets (id, line) SELECT {self._text_of}(value, '$.id'), value FROM {self._each}"  # noqa: S608
            while batch := [*islice(changes, _BATCH)]:
                # As arrays in JSON: a statement per row would take DuckDB a second for a thousand.
                connection.execute(delete, [json.dumps([one.id for one in batch if one.line_before])])
                connection.execute(insert, [json.dumps([one.line.decode()[:-1] for one in batch if one.line])])
            connection.execute("INSERT INTO position VALUES (?)", [json.dumps(to.json)])
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with _saying_so(self.path, self._errors), closing(self._connect(str(self.path))) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS position (json TEXT)")
            connection.execute(f"CREATE TABLE IF NOT EXISTS markets ({self._columns()})")
            yield connection

    def _columns(self) -> str:
        hints = get_type_hints(FullMarket)
        types = {name: _SQL_TYPES.get(hint, "TEXT") for name, hint in hints.items() if name not in {"json", "id"}}
        computed = [self._column.format(name, wire_name(name), kind) for name, kind in types.items()]
        return ", ".join([f"id TEXT {self._key}", "line TEXT NOT NULL", *computed])


class SqliteStore(_SqlStore):
    """An SQLite database. Others may read it meanwhile, and see the old markets or the new ones."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, self._connected, sqlite3.Error)

    @staticmethod
    def _connected(path: str) -> sqlite3.Connection:
        # `follow` of an asynchronous client may come from several threads, one at a time.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # A text that is not UTF-8 is damage, not an error that comes again with every run.
        connection.text_factory = lambda text: text.decode(errors="replace")
        return connection


class DuckDbStore(_SqlStore):
    """A DuckDB database; needs the package `duckdb`. No other program can open it meanwhile."""

    _each = """(SELECT unnest(from_json(?, '["VARCHAR"]')) AS value)"""
    _text_of = "json_extract_string"
    _column = "{0} {2} GENERATED ALWAYS AS (TRY_CAST(line->>'$.{1}' AS {2})) VIRTUAL"
    # DuckDB refuses to delete and insert the same key in one transaction.
    _key = "NOT NULL"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            import duckdb  # noqa: PLC0415 - only who uses it needs it
        except ImportError:
            raise StoreError("install DuckDB with: pip install 'public-markets-client[duckdb]'") from None
        super().__init__(path, duckdb.connect, duckdb.Error)


def _position(text: str | bytes, path: Path) -> Position:
    try:
        return decoded(Position, parsed(text))
    except AnswerError:
        raise StartAgainError(f"{path} is damaged") from None
