"""Where `follow` keeps a copy of all markets: NDJSON, SQLite or DuckDB. Lines are kept byte for byte.

A copy changes all at once or not at all, its position included; that of NDJSON is a file beside it, written after it,
and so are the definitions of questions, where the site has some.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
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
#: What definitions of questions say besides the id; and of each member, as columns: the name in JSON, and a type.
_OF_QUESTIONS = {"kind": str, "slug": str, "title": str, "description": str, "created_at": datetime}
_OF_MEMBERS = {
    "market_id": ("id", "TEXT"), "label": ("label", "TEXT"), "position": ("position", "BIGINT"),
    "payout": ("payout", "DOUBLE"),
}  # fmt: skip


class Store(Protocol):
    """A copy of all markets.

    Each method raises StartAgainError if the copy is damaged, StoreError if it cannot be read or written.
    """

    def position(self) -> Position:
        """Where in the feed the copy is."""

    def lines(self) -> Iterator[bytes]:
        """Its markets, ascending by id."""

    def definitions(self) -> Iterator[bytes]:
        """Its definitions of questions, ascending by id; raise StartAgainError if it has no table of them."""

    def apply(
        self, lines: Iterator[bytes], changes: Iterator[Change], to: Position, before: Position | None,
        definitions: Iterator[bytes] | None,
    ) -> None:  # fmt: skip
        """Give the copy these lines, which differ by these changes; it must be at `before`, and None begins it anew.

        The `definitions` replace those that it has, and None leaves them; without `to.questions` it has none.
        """


class NdjsonStore:
    """A file with one market per line, ascending by id, each the `market` object of its detail."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.beside, self.questions = (self.path.with_name(self.path.name + one) for one in (".position", ".questions"))

    def position(self) -> Position:
        """What the file beside it says."""
        with _saying_so(self.path, OSError):
            if not (self.path.exists() and self.beside.exists()):
                raise StartAgainError("there is no copy yet")
            return _position(self.beside.read_bytes(), self.beside)

    def lines(self) -> Iterator[bytes]:
        """The lines of the file."""
        return self._read(self.path)

    def definitions(self) -> Iterator[bytes]:
        """The lines of the file beside it."""
        if not self.questions.exists():
            raise StartAgainError("there are no definitions of questions yet")
        return self._read(self.questions)

    def apply(
        self, lines: Iterator[bytes], changes: Iterator[Change], to: Position, before: Position | None,  # noqa: ARG002 - of a Store
        definitions: Iterator[bytes] | None,
    ) -> None:  # fmt: skip
        """Replace the file, then what is beside it; whoever reads it meanwhile reads the old one."""
        # If the computer fails between the two, the next run's result has another digest, and it fetches the dump.
        at: Iterable[bytes] = [json.dumps(to.json).encode()]
        for path, content in ((self.path, lines), (self.questions, definitions), (self.beside, at)):
            if content is not None:
                with _saying_so(path, OSError), _replaced(path) as file:
                    file.writelines(content)
        if to.questions is None:
            with _saying_so(self.questions, OSError):
                self.questions.unlink(missing_ok=True)

    @staticmethod
    def _read(path: Path) -> Iterator[bytes]:
        with _saying_so(path, OSError), path.open("rb") as file:
            yield from lines_in(file, str(path))


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
    """A table `markets` with `id` and `line`, and a column for each property, computed from the line.

    Where the site has questions, a table `questions` has their definitions likewise, and the view `question_members`
    the markets of these.
    """

    #: The rows of an array in JSON, as `value`; the function that takes text from an object; a column for a property.
    _each = "(SELECT value FROM json_each(?))"
    _text_of = "json_extract"
    _column = "{0} {2} GENERATED ALWAYS AS (json_extract(line, '$.{1}')) VIRTUAL"
    _key = "PRIMARY KEY"
    #: The definitions with each of their members, as `member`; a property of that, and a type for it.
    _members = "SELECT questions.id AS question_id, value AS member FROM questions, json_each(line, '$.members')"
    _of_member = "json_extract(member, '$.{1}') AS {0}"

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
            yield from self._read(connection, "markets")

    def definitions(self) -> Iterator[bytes]:
        """The lines of the table `questions`."""
        with self._opened() as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'questions'").fetchone() is None:
                raise StartAgainError("there are no definitions of questions yet")
            yield from self._read(connection, "questions")

    def _read(self, connection: Any, table: str) -> Iterator[bytes]:
        rows = connection.execute(f"SELECT id, line FROM {table} ORDER BY id")  # noqa: S608 - one of two
        while batch := rows.fetchmany(_BATCH):
            for row_id, line in batch:
                if not str(line).startswith('{"id":' + json.dumps(str(row_id), ensure_ascii=False)):
                    raise StartAgainError(f"{self.path} is damaged: a line of {table} is not of {row_id}")
                yield line.encode() + b"\n"

    def apply(
        self, lines: Iterator[bytes], changes: Iterator[Change], to: Position, before: Position | None,  # noqa: ARG002 - of a Store
        definitions: Iterator[bytes] | None,
    ) -> None:  # fmt: skip
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
            while batch := [*islice(changes, _BATCH)]:
                # As arrays in JSON: a statement per row would take DuckDB a second for a thousand.
                connection.execute(delete, [json.dumps([one.id for one in batch if one.line_before])])
                self._insert(connection, "markets", [one.line for one in batch if one.line])
            if definitions is not None or to.questions is None:
                self._replace_definitions(connection, definitions)
            connection.execute("INSERT INTO position VALUES (?)", [json.dumps(to.json)])
            connection.execute("COMMIT")

    def _insert(self, connection: Any, table: str, lines: Iterable[bytes]) -> None:
        insert = f"INSERT INTO {table} (id, line) SELECT {self._text_of}(value, '$.id'), value FROM {self._each}"  # noqa: S608
        connection.execute(insert, [json.dumps([line.decode()[:-1] for line in lines])])

    def _replace_definitions(self, connection: Any, lines: Iterator[bytes] | None) -> None:
        connection.execute("DROP VIEW IF EXISTS question_members")
        connection.execute("DROP TABLE IF EXISTS questions")
        if lines is None:
            return
        connection.execute(f"CREATE TABLE questions ({self._columns(_OF_QUESTIONS)})")
        values = ", ".join(self._of_member.format(name, *of_member) for name, of_member in _OF_MEMBERS.items())
        members = f"SELECT question_id, {values} FROM ({self._members})"  # noqa: S608 - of parts that stand here
        connection.execute(f"CREATE VIEW question_members AS {members}")
        while batch := [*islice(lines, _BATCH)]:
            self._insert(connection, "questions", batch)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with _saying_so(self.path, self._errors), closing(self._connect(str(self.path))) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS position (json TEXT)")
            hints = {name: hint for name, hint in get_type_hints(FullMarket).items() if name not in {"json", "id"}}
            connection.execute(f"CREATE TABLE IF NOT EXISTS markets ({self._columns(hints)})")
            yield connection

    def _columns(self, hints: Mapping[str, Any]) -> str:
        types = {name: _SQL_TYPES.get(hint, "TEXT") for name, hint in hints.items()}
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
    _members = """SELECT id AS question_id, unnest(from_json(line->'$.members', '["JSON"]')) AS member FROM questions"""
    _of_member = "TRY_CAST(member->>'$.{1}' AS {2}) AS {0}"
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
