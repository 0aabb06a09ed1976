"""Connects to SQLite or PostgreSQL and opens one read-only transaction that sees one instant.

It knows what each driver needs and none of our relations. Rows are returned as the driver delivers them.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoSuchTableError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from generator.config import passwords
from generator.config.settings import Config, variable
from generator.errors import ReadError, SourceError
from generator.markets.quarantine import printable
from generator.source import address, decoding, remedies
from generator.source.address import display_url, sqlite_path

#: Rows per fetch: enough to amortise the round trip, few enough to keep memory low. SQLite has no round trips, and rows
#: that fit into the processor's cache are converted faster.
_BATCH: Final = {"postgresql": 2_000, "sqlite": 500}
_CONNECT_TIMEOUT_S: Final = "10"
#: How long to wait for a lock on the SQLite file.
_LOCK_TIMEOUT_S: Final = 30
#: How sqlite3's message for invalid UTF-8 begins; the error carries no code.
_UNREADABLE: Final = "Could not decode to UTF-8"

#: Identifies one database of one running server.
_SERVER: Final = "SELECT extract(epoch FROM pg_postmaster_start_time())::text || '/' || current_database()"
#: SQLSTATEs of a refused snapshot: 22023 (PostgreSQL up to 16) or 42704 if unknown, 0A000 if another database's.
_NO_SNAPSHOT: Final = frozenset(("22023", "42704", "0A000"))

#: A row as the driver delivers it: values in the order of the columns that were asked for.
Row: TypeAlias = Sequence[Any]


@contextmanager
def transaction(config: Config, instant: str | None = None) -> Iterator["Transaction"]:
    """Open a transaction that sees one instant of the database; every failure in it raises SourceError.

    `instant` is the `Transaction.instant` of another process, whose transaction must still be open.
    """
    file = _file(config)
    engine = _engine(config, instant)
    driver: Any = engine.dialect.loaded_dbapi
    remedy = "check source.url, and that this user can connect from this host"
    try:
        with engine.connect() as connection:
            _begin(connection, instant)
            remedy = remedies.RUN_AGAIN
            is_in_place = file == _file(config)
            if instant and not (is_in_place and file in {None, instant}):
                raise SourceError(f"{display_url(config)}: the file was replaced during the build; run again")
            opened = instant or (_instant(connection, file) if is_in_place else None)
            decoding.by_driver(connection, config.source.schema_)
            yield Transaction(connection, config, opened)
    except (SQLAlchemyError, driver.Error) as error:
        failed = SourceError(f"{display_url(config)}: {_cause(error, config)}; {_remedy(error, config) or remedy}")
        failed.may_pass = _may_pass(error, driver)
        raise failed from error
    except AssertionError as error:  # SQLAlchemy's, of what the server says that it is
        if not str(error).startswith("Could not determine version"):
            raise
        raise SourceError(
            f"{display_url(config)}: this server says that it is {printable(str(error).partition('string ')[2])}; only "
            "PostgreSQL is supported: copy the data there, or into an SQLite file"
        ) from error
    finally:
        engine.dispose()


def _engine(config: Config, instant: str | None) -> sa.Engine:
    path = sqlite_path(config)
    if path:
        return sa.create_engine("sqlite://", creator=_sqlite_creator(path, instant), poolclass=NullPool)
    try:
        return _postgresql(address.parsed(config).set(drivername="postgresql+psycopg"))
    except ModuleNotFoundError as error:
        raise SourceError(
            "source.url names PostgreSQL but its driver is not installed; pip install 'public-markets[postgresql]'"
        ) from error


@lru_cache(maxsize=1)
def _postgresql(url: sa.URL) -> sa.Engine:
    """An engine that keeps no connection open. It learns what the server is, and compiles statements, only once."""
    # What the URL says itself counts.
    defaults = {"application_name": "public-markets", "connect_timeout": _CONNECT_TIMEOUT_S}
    options = {
        # Override the server's default: with LATIN1 it refuses to send most of the world's letters.
        "client_encoding": "utf8",
        # Each statement runs once, and connection poolers handle prepared statements badly.
        "prepare_threshold": None,
    }
    url = url.set(query={**defaults, **url.query})
    return sa.create_engine(url, connect_args=options, poolclass=NullPool)


def _sqlite_creator(path: Path, instant: str | None) -> partial[sqlite3.Connection]:
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        raise SourceError(
            f"source.url: {path}: {os.strerror(error.errno or 0).lower()}; let this user enter its folder"
        ) from error
    if is_folder:
        raise SourceError(f"source.url: {path} is a directory; name the database file in it")
    if not is_file:
        raise SourceError(
            f"source.url: {path}: no such database file; set source.url to your database, or run `public-markets demo`"
        )
    # Read only, so that a typo creates no file. No implicit transactions: `_begin` opens the only one.
    uri = f"file:{quote(str(path.resolve()))}?mode=ro" + ("&immutable=1" if instant else "")
    return partial(sqlite3.connect, uri, uri=True, isolation_level=None, timeout=_LOCK_TIMEOUT_S)


def _begin(connection: sa.Connection, instant: str | None) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN")
        # The first read fixes the transaction's instant, and fails if the file is not a database.
        connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")
        return
    connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    if instant:
        _share(connection, instant)
    # Times and numbers arrive as text: fix the format, whatever the server's defaults, and keep every digit.
    connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
    connection.exec_driver_sql("SET LOCAL datestyle = 'ISO'")
    connection.exec_driver_sql("SET LOCAL extra_float_digits = 3")
    # The connection that exported its snapshot is idle while the workers read.
    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")


def _share(connection: sa.Connection, instant: str) -> None:
    """Import the snapshot that another process exported. Must run first in the transaction. Raises SourceError."""
    snapshot, _, server = instant.partition(" ")
    try:
        connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) not in _NO_SNAPSHOT:
            raise
        raise SourceError(
            "the snapshot that this build reads is gone: the coordinator's connection to the database ended, or "
            f"{variable('source.url')} names another server here (snapshot {snapshot}); nothing was replaced; run again"
        ) from error
    if connection.exec_driver_sql(_SERVER).scalar_one() != server:
        raise SourceError(
            f"{variable('source.url')} names another server or database here than the coordinator reads; set the same "
            "everywhere"
        )


def _file(config: Config) -> str | None:
    """The identity of the SQLite file, to notice its replacement by another of the same name; None if missing."""
    path = sqlite_path(config)
    try:
        found = path and path.stat()
    except OSError:
        return None
    return f"{found.st_dev}:{found.st_ino}" if found else None


def _instant(connection: sa.Connection, file: str | None) -> str | None:
    """The token with which another process sees the same instant; None if that is impossible.

    PostgreSQL exports its snapshot. In SQLite's rollback journal modes nobody can write while this transaction reads,
    so others may read the file without locks (which a forked process must not take: it shares SQLite's lock state). In
    WAL mode a second reader may see a later instant.
    """
    if connection.dialect.name == "sqlite":
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        return file if mode in {"delete", "truncate", "persist"} else None
    try:
        snapshot = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
        return f"{snapshot} {connection.exec_driver_sql(_SERVER).scalar_one()}"
    except DBAPIError:  # not every database with PostgreSQL's protocol can; the failure aborts the transaction
        connection.rollback()
        _begin(connection, None)
        return None


def _may_pass(error: Exception, driver: Any) -> bool:
    """Whether the connection failed rather than the statement: it broke, or a server shut down or cancelled it."""
    return isinstance(getattr(error, "orig", None) or error, driver.OperationalError)


def _remedy(error: Exception, config: Config) -> str | None:
    """What to do about an error, if that is known."""
    original = getattr(error, "orig", None) or error
    state, text = getattr(original, "sqlstate", None), str(original)
    return remedies.remedy(state, text) or _of_file(text, sqlite_path(config))


def _of_file(text: str, path: Path | None) -> str | None:
    """What to do about an SQLite file that cannot be read because SQLite would have to write."""
    if path is None or not text.startswith(("attempt to write a readonly", "unable to open database file")):
        return None
    try:
        path.open("rb").close()
    except OSError:
        return "let this user read the file"
    if path.with_name(f"{path.name}-journal").exists():
        return (
            "a program died in the midst of a transaction: open the file once with a program that may write to it, "
            "such as the site, which undoes what was half done"
        )
    return (
        f"if it has a write-ahead log, SQLite must write beside it: let this user write to {path.parent} (in a systemd "
        "unit: ReadWritePaths=), or read a copy"
    )


def _cause(error: Exception, config: Config) -> str:
    """The database's own message, without statement, parameters and password."""
    text = passwords.hidden(str(getattr(error, "orig", None) or error), config.source.url.get_secret_value())
    return " ".join(text.split())


class Transaction:
    """An open transaction."""

    def __init__(self, connection: sa.Connection, config: Config, instant: str | None) -> None:
        self._connection = connection
        self._config = config
        self.dialect = connection.dialect.name
        #: How often the server may count one letter.
        self.widest = decoding.widest(connection)
        #: Lets another process see the same instant while this transaction is open; None if impossible.
        self.instant = instant

    def rows(self, statement: sa.Select[Any] | sa.TextClause, relation: str) -> Iterator[Row]:
        """Stream the driver's own rows: building SQLAlchemy's would double the time to read.

        Raises ReadError, which names the relation.
        """
        return chain.from_iterable(self.batches(statement, relation))

    def batches(self, statement: sa.Select[Any] | sa.TextClause, relation: str) -> Iterator[list[Row]]:
        """The same, in lists of a few thousand rows at most."""
        with self._reading(relation):
            yield from self._readable(statement)

    @contextmanager
    def _reading(self, relation: str) -> Iterator[None]:
        driver: Any = self._connection.dialect.loaded_dbapi
        try:
            yield
        except (SQLAlchemyError, driver.Error) as error:
            failed = f"{display_url(self._config)}: relation {relation} cannot be read: {_cause(error, self._config)}"
            may_pass, remedy = _may_pass(error, driver), _remedy(error, self._config)
            if remedy or (may_pass and self.dialect != "sqlite"):
                found = SourceError(f"{failed}; {remedy or remedies.RUN_AGAIN}")
            else:
                found = ReadError(failed, "run `public-markets check`, which looks for the column")
            found.may_pass = may_pass
            raise found from error

    def _readable(self, statement: sa.Select[Any] | sa.TextClause) -> Iterator[list[Row]]:
        done = 0
        try:
            for batch in self._batches(statement):
                yield batch
                done += len(batch)
        except (sqlite3.OperationalError, sa.exc.OperationalError) as error:
            # SQLAlchemy wraps the error of a statement's first row.
            if not str(getattr(error, "orig", error)).startswith(_UNREADABLE):
                raise
            decoding.by_sqlite(self._connection)
            remaining = islice(chain.from_iterable(self._batches(statement)), done, None)
            while batch := list(islice(remaining, _BATCH[self.dialect])):
                yield batch

    def _batches(self, statement: sa.Select[Any] | sa.TextClause) -> Iterator[list[Row]]:
        result = self._connection.execute(statement, execution_options={"stream_results": True})
        # SQLAlchemy has already fetched the first row from the cursor.
        yield [tuple(row) for row in result.fetchmany(1)]
        cursor: Any = result.cursor
        while cursor and (batch := cursor.fetchmany(_BATCH[self.dialect])):
            yield batch
        result.close()

    def number(self, statement: sa.Select[Any], relation: str) -> int:
        """The single number that the statement selects. Raises ReadError, which names the relation."""
        with self._reading(relation):
            return int(self._connection.execute(statement).scalar_one())

    def application_id(self) -> int:
        """The number with which the program that wrote an SQLite file marked it; 0 if it did not."""
        if self.dialect != "sqlite":
            return 0
        return int(self._connection.exec_driver_sql("PRAGMA application_id").scalar_one())

    def columns(self, relation: str, schema: str | None) -> dict[str, sa.types.TypeEngine[Any]] | None:
        """The type of each column; None if the relation does not exist.

        Raises ReadError for a view that refers to something that is not there: SQLite notices only now.
        """
        with self._reading(relation):
            try:
                columns = sa.inspect(self._connection).get_columns(relation, schema=schema)
            except NoSuchTableError:
                return None
        return {column["name"]: column["type"] for column in columns}

    def looks_up(self, statement: sa.Select[Any]) -> bool:
        """Whether the database can look up the range that the statement names in an index; True if it does not say."""
        compiled = statement.compile(self._connection.engine)
        names = compiled.positiontup
        values: Any = compiled.params if names is None else tuple(compiled.params[name] for name in names)
        attempt = self._connection.begin_nested()
        try:
            if self.dialect == "sqlite":
                found = self._connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", values)
                return any(">?" in row[-1] for row in found)
            # Small tables are read whole even if there is an index.
            self._connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            found = self._connection.exec_driver_sql(f"EXPLAIN {compiled}", values)
            return any("Index Cond" in row[0] and ">=" in row[0] for row in found)
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            return True
        finally:
            if attempt.is_active:
                attempt.rollback()

    def answer(self, statement: sa.TextClause) -> list[Row]:
        """All rows; none if the database refuses to run the statement. The transaction survives."""
        try:
            with self._connection.begin_nested():
                return [tuple(row) for row in self._connection.execute(statement)]
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            return []

    def refusal(self, statement: sa.Select[Any]) -> str | None:
        """Why the database refuses to run the statement; None if it runs. The transaction survives."""
        try:
            with self._connection.begin_nested():
                self._connection.execute(statement)
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            return _cause(error, self._config)
        return None
