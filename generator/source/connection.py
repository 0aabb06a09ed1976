"""The connection to SQLite or PostgreSQL: one transaction that sees one instant, and what the driver says in it.

It knows which statements a driver needs and no relation of ours. Rows come as the driver gives them.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchTableError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from generator.config.settings import Config
from generator.errors import SourceError

#: Rows fetched at a time: enough to amortise a round trip, few enough to stay small in memory.
_BATCH: Final = 2_000
_CONNECT_TIMEOUT_S: Final = 10
#: How long to wait for a writer of the same SQLite file.
_LOCK_TIMEOUT_S: Final = 30
#: What sqlite3 says of bytes that are no UTF-8; it is an error of its own and has no code.
_UNREADABLE: Final = "Could not decode to UTF-8"

Row: TypeAlias = Sequence[Any]


@contextmanager
def transaction(config: Config, instant: str | None = None) -> Iterator["Transaction"]:
    """Open one transaction that sees one instant of the database; whatever goes wrong with it is a SourceError.

    `instant` is what another process's transaction, which must still be open, gave for its own.
    """
    file = _file(config)
    engine = _engine(config, instant)
    driver: Any = engine.dialect.loaded_dbapi
    remedy = "check source.url, and whether this user may connect to it from here"
    try:
        with engine.connect() as connection:
            _begin(connection, instant)
            remedy = "`public-markets check` looks closer"
            is_in_place = file == _file(config)
            if instant and not (is_in_place and file in {None, instant}):
                raise SourceError(f"{describe(config)}: another file has taken its place; run again")
            yield Transaction(connection, instant or (_instant(connection, file) if is_in_place else None))
    except (SQLAlchemyError, driver.Error) as error:
        raise SourceError(f"{describe(config)}: {_cause(error, config)}; {remedy}") from error
    finally:
        engine.dispose()


def describe(config: Config) -> str:
    """Name the database for logs and messages, without password or options."""
    path = sqlite_path(config)
    if path:
        return f"sqlite:///{path}"
    return _url(config).set(drivername="postgresql", password=None, query={}).render_as_string()


def sqlite_path(config: Config) -> Path | None:
    """The file of an SQLite database; None for PostgreSQL."""
    url = _url(config)
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def _url(config: Config) -> sa.URL:
    try:
        return make_url(config.source.url.get_secret_value())
    except (ArgumentError, ValueError):  # the latter from a port that is no number; its message quotes the text
        raise SourceError(
            "source.url: not a database URL; write sqlite:///path/to/file.db or postgresql://user@host/database"
        ) from None


def _engine(config: Config, instant: str | None) -> sa.Engine:
    path = sqlite_path(config)
    if path:
        return sa.create_engine("sqlite://", creator=_sqlite_creator(path, instant), poolclass=NullPool)
    options = {
        "application_name": "public-markets",
        "connect_timeout": _CONNECT_TIMEOUT_S,
        # Whatever the database's default is: in LATIN1 the server would refuse to send most of the world's letters.
        "client_encoding": "utf8",
        # Each statement runs once; prepared ones would only trouble connection poolers.
        "prepare_threshold": None,
    }
    try:
        url = _url(config).set(drivername="postgresql+psycopg")
        return sa.create_engine(url, connect_args=options, poolclass=NullPool)
    except ModuleNotFoundError as error:
        raise SourceError(
            "source.url names PostgreSQL but its driver is not installed; pip install 'public-markets[postgresql]'"
        ) from error


def _sqlite_creator(path: Path, instant: str | None) -> partial[sqlite3.Connection]:
    if path.is_dir():
        raise SourceError(f"source.url: {path} is a folder; name the database file in it")
    if not path.is_file():
        raise SourceError(
            f"source.url: {path}: no such database file; set source.url to yours, or run `public-markets demo`"
        )
    # Read only, so that a typo cannot create a file. No implicit transactions: `_begin` opens the only one.
    uri = f"file:{quote(str(path.resolve()))}?mode=ro" + ("&immutable=1" if instant else "")
    return partial(sqlite3.connect, uri, uri=True, isolation_level=None, timeout=_LOCK_TIMEOUT_S)


def _begin(connection: sa.Connection, instant: str | None) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN")
        # The transaction's instant is its first read; a file that is no database shows here, too.
        connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")
        return
    connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    if instant:
        connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{instant}'")
    # Times and numbers are read as text, in this one form whatever the server's defaults are: no digit is lost.
    connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
    connection.exec_driver_sql("SET LOCAL datestyle = 'ISO'")
    connection.exec_driver_sql("SET LOCAL extra_float_digits = 3")
    # The connection that others share the instant of waits for them.
    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")


def _file(config: Config) -> str | None:
    """Which file the SQLite database is, as another may take its place under the same name; None if there is none."""
    path = sqlite_path(config)
    try:
        found = path and path.stat()
    except OSError:
        return None
    return f"{found.st_dev}:{found.st_ino}" if found else None


def _instant(connection: sa.Connection, file: str | None) -> str | None:
    """What makes others see what this transaction sees.

    PostgreSQL exports its snapshot. In SQLite's rollback modes nobody can write while this transaction reads, so
    others may read the file as it is; locks are not for them to take, as a fork shares SQLite's idea of them. In WAL
    mode a second reader may see a later instant.
    """
    if connection.dialect.name == "sqlite":
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        return file if mode in {"delete", "truncate", "persist"} else None
    try:
        return str(connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one())
    except DBAPIError:  # what speaks PostgreSQL's protocol need not have it; the transaction is lost with it
        connection.rollback()
        _begin(connection, None)
        return None


def _cause(error: Exception, config: Config) -> str:
    """The database's own words, without statement, parameters and password."""
    text = " ".join(str(getattr(error, "orig", None) or error).split())
    password = _url(config).password
    return text.replace(password, "***") if password else text


class Transaction:
    """An open transaction."""

    def __init__(self, connection: sa.Connection, instant: str | None) -> None:
        self._connection = connection
        self.dialect = connection.dialect.name
        #: What another process needs to see the same instant while this transaction is open; None if none can.
        self.instant = instant

    def rows(self, statement: sa.Select[Any]) -> Iterator[Row]:
        """The rows as a stream, as the driver makes them: SQLAlchemy's own cost as much as reading does."""
        return chain.from_iterable(self._readable(statement))

    def _readable(self, statement: sa.Select[Any]) -> Iterator[Iterable[Row]]:
        done = 0
        try:
            for batch in self._batches(statement):
                yield batch
                done += len(batch)
        except sqlite3.OperationalError as error:
            if not str(error).startswith(_UNREADABLE):
                raise
            # Bytes that are no UTF-8 must cost one row, not the build: they become lone surrogates, which `rows`
            # refuses. Only then, as it doubles the time that reading takes.
            driver: Any = self._connection.connection.dbapi_connection
            driver.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
            yield islice(chain.from_iterable(self._batches(statement)), done, None)

    def _batches(self, statement: sa.Select[Any]) -> Iterator[list[Row]]:
        result = self._connection.execute(statement, execution_options={"stream_results": True})
        # SQLAlchemy has taken the first row to look at it; the others are still the driver's.
        yield [tuple(row) for row in result.fetchmany(1)]
        cursor: Any = result.cursor
        while cursor and (batch := cursor.fetchmany(_BATCH)):
            yield batch
        result.close()

    def number(self, statement: sa.Select[Any]) -> int:
        """The one number that the statement gives."""
        return int(self._connection.execute(statement).scalar_one())

    def columns(self, relation: str, schema: str | None) -> dict[str, sa.types.TypeEngine[Any]] | None:
        """The type of each column; None when there is no such relation."""
        try:
            columns = sa.inspect(self._connection).get_columns(relation, schema=schema)
        except NoSuchTableError:
            return None
        return {column["name"]: column["type"] for column in columns}

    def refusal(self, statement: sa.Select[Any]) -> str | None:
        """Why the database will not run the statement; None when it does."""
        try:
            with self._connection.begin_nested():
                self._connection.execute(statement)
        except DBAPIError as error:
            return " ".join(str(error.orig).split())
        return None
