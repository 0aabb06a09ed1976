"""One consistent read of SQLite or PostgreSQL → the catalog, then the rows of each market's detail as a stream.

Hidden markets and private rows are refused in every WHERE and never reach memory; columns outside `RELATIONS` are
never selected. Values leave the statements as the driver gives them, times and ids as text: `rows` converts them.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.dialects.postgresql import DOMAIN
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchTableError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from generator import rows, slugs
from generator.catalog import Catalog, Market
from generator.config import Config
from generator.detail import MarketRows
from generator.errors import SourceError
from generator.quarantine import Quarantine
from generator.relations import RELATIONS, Kind
from generator.streams import Groups, count_window

#: Rows fetched at a time: enough to amortise a round trip, few enough to stay small in memory.
_BATCH: Final = 2_000
_CONNECT_TIMEOUT_S: Final = 10
#: How long to wait for a writer of the same SQLite file.
_LOCK_TIMEOUT_S: Final = 30
_DAY: Final = timedelta(days=1)

_FX: Final = ("title", "instrument", "source", "week_start", "week_end", "threshold_value", "direction")
_ORDERS: Final = ("side", "price", "amount")
_FILLS: Final = ("id", "amount", "shares", "price", "created_at")
_POINTS: Final = ("recorded_at", "prob")
_CATEGORIES: Final = ("category", "position")


@contextmanager
def reading(config: Config, quarantine: Quarantine) -> Iterator["Reading"]:
    """Open one transaction that sees one instant of the database; whatever goes wrong with it is a SourceError."""
    engine = _engine(config)
    remedy = "check source.url, and whether this user may connect to it from here"
    try:
        with engine.connect() as connection:
            _begin(connection)
            remedy = "`public-markets check` looks closer"
            yield Reading(connection, config, quarantine)
    except SQLAlchemyError as error:
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


def _engine(config: Config) -> sa.Engine:
    path = sqlite_path(config)
    if path:
        return sa.create_engine("sqlite://", creator=_sqlite_creator(path), poolclass=NullPool)
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


def _sqlite_creator(path: Path) -> partial[sqlite3.Connection]:
    if path.is_dir():
        raise SourceError(f"source.url: {path} is a folder; name the database file in it")
    if not path.is_file():
        raise SourceError(
            f"source.url: {path}: no such database file; set source.url to yours, or run `public-markets demo`"
        )
    # Read only, so that a typo cannot create a file. No implicit transactions: `_begin` opens the only one.
    return partial(_connect_sqlite, f"file:{quote(str(path.resolve()))}?mode=ro")


def _connect_sqlite(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_LOCK_TIMEOUT_S)
    # Bytes that are no UTF-8 must cost one row, not the build: they become lone surrogates, which `rows` refuses.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


def _begin(connection: sa.Connection) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN")
        # The transaction's instant is its first read; a file that is no database shows here, too.
        connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")
        return
    connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    # Times and numbers are read as text, in this one form whatever the server's defaults are: no digit is lost.
    connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
    connection.exec_driver_sql("SET LOCAL datestyle = 'ISO'")
    connection.exec_driver_sql("SET LOCAL extra_float_digits = 3")


def _cause(error: SQLAlchemyError, config: Config) -> str:
    """The database's own words, without statement, parameters and password."""
    text = " ".join(str(getattr(error, "orig", None) or error).split())
    password = _url(config).password
    return text.replace(password, "***") if password else text


class Reading:
    """One transaction. `catalog` first, then `details`: both see the same instant."""

    def __init__(self, connection: sa.Connection, config: Config, quarantine: Quarantine) -> None:
        self._connection = connection
        self._dialect = connection.dialect.name
        self._schema = config.source.schema_ if self._dialect == "postgresql" else None
        self._shown = config.detail
        self._is_extended = config.variant == "extended"
        self._columns = rows.MARKET_COLUMNS + (rows.EXTENDED_COLUMNS if self._is_extended else ())
        self._quarantine = quarantine

    def columns(self, relation: str) -> dict[str, tuple[str, frozenset[Kind]]] | None:
        """The type of each column and the kinds it can hold; None when there is no such relation."""
        try:
            columns = sa.inspect(self._connection).get_columns(relation, schema=self._schema)
        except NoSuchTableError:
            return None
        return {column["name"]: (str(column["type"]), _kinds(column["type"], self._dialect)) for column in columns}

    def refusal(self, relation: str) -> str | None:
        """Why the columns we need of the relation cannot be selected, though they are there; None when they can."""
        table = self._relation(relation)
        columns = self._selected(table, relation, *RELATIONS[relation])
        try:
            with self._connection.begin_nested():
                self._connection.execute(sa.select(*columns).where(sa.false()))
        except DBAPIError as error:
            return " ".join(str(error.orig).split())
        return None

    def catalog(self, as_of: datetime) -> Catalog:
        """Read every visible market; those that break the contract go to the quarantine."""
        fx, fills24h, now = self._fx_members(), self._count_fills(as_of), rows.timestamp(as_of.isoformat())
        known = slugs.references(self._slugs() if self._is_extended else ())
        categories = self._groups("market_categories", *_CATEGORIES, is_wanted=self._is_extended)
        markets, ids = list[Market](), Counter[str]()
        for row in self._markets():
            key = row["id"]
            ids[str(key).lower()] += 1
            own = rows.categories(categories.of(key), self._quarantine)
            extras = rows.Extras(known.usable.get(key), own) if self._is_extended else None
            try:
                wire = rows.market(row, fx=fx.get(key), fills24h=fills24h.get(key, 0), as_of=now, extras=extras)
            except ValidationError as error:
                self._quarantine.reject("markets", key, rows.reason(error), row["question"] or "")
            else:
                markets.append(Market.of(wire))
        categories.finish()
        hidden = self._count_markets() - ids.total()
        return Catalog(self._unique(markets, ids), as_of=now, hidden=hidden, refused_slugs=known.refused)

    def details(self, catalog: Catalog) -> Iterator[MarketRows]:
        """Read each market of the catalog with the rows of its detail; consume one before taking the next."""
        public = {market.item.id: market for market in catalog.markets}
        orders = self._groups("orders", *_ORDERS, order=_ORDERS, is_wanted=self._shown.order_book)
        fills = self._groups("fills", *_FILLS, is_wanted=self._shown.recent_fills > 0)
        points = self._groups("probabilities", *_POINTS, is_wanted=self._shown.history_points > 0)
        for row in self._markets():
            streams = [groups.of(row["id"]) for groups in (orders, fills, points)]
            market = public.get(str(row["id"]).lower())
            if market is not None:
                extras = rows.Extras.of(market.item)
                wire = rows.market(row, fx=market.fx, fills24h=market.item.fills24h, as_of=catalog.as_of, extras=extras)
                yield MarketRows(wire, *streams)
        for groups in (orders, fills, points):
            groups.finish()

    def _unique(self, markets: list[Market], counts: Counter[str]) -> list[Market]:
        """Without the markets that share an id, with a bad row even: which of them is meant cannot be known."""
        for item in (market.item for market in markets if counts[market.item.id] > 1):
            self._quarantine.reject("markets", item.id, f"id: {counts[item.id]} markets have the same", item.question)
        return [market for market in markets if counts[market.item.id] == 1]

    def _fx_members(self) -> dict[str, Mapping[str, Any]]:
        """The public FX membership of each market, by the market's id as the database spells it.

        A membership that breaks the contract takes its market along, which is validated with it: left out alone, it
        would put the market into the lists, where members of public families must not be. For the same reason ids are
        matched in whatever case they are spelled.
        """
        members: dict[str, Mapping[str, Any]] = {}
        for row in self._stream(self._of_visible("fx_members", *_FX, order=("week_start", "title"), exact=False)):
            if row[0] in members:
                self._quarantine.reject("fx_members", row[0], "market_id: the market is a member of a family already")
            else:
                members[row[0]] = dict(zip(_FX, row[1:], strict=True))
        return members

    def _count_fills(self, as_of: datetime) -> dict[str, int]:
        """The number of fills in the 24 hours up to `as_of`, by market id as the database spells it."""
        start, end = rows.timestamp((as_of - _DAY).isoformat()), rows.timestamp(as_of.isoformat())
        # The statement's window is a day too wide: SQLite's times are text, with any offset. The exact test follows.
        window = ("created_at", self._bound(as_of - 2 * _DAY), self._bound(as_of + 2 * _DAY))
        fills = groupby(self._stream(self._of_visible("fills", *_FILLS, window=window)), key=itemgetter(0))
        return {owner: count_window(group, start, end) for owner, group in fills}

    def _bound(self, moment: datetime) -> datetime | str:
        return str(moment.date()) if self._dialect == "sqlite" else moment.astimezone(UTC).replace(tzinfo=None)

    def _count_markets(self) -> int:
        statement = sa.select(sa.func.count()).select_from(self._relation("markets"))
        return int(self._connection.execute(statement).scalar_one())

    def _markets(self) -> Iterator[Mapping[str, Any]]:
        markets = self._relation("markets").alias("m")
        columns = self._selected(markets, "markets", *self._columns)
        statement = sa.select(*columns).where(self._visible(markets)).order_by(markets.c.id)
        return (dict(zip(self._columns, row, strict=True)) for row in self._stream(statement))

    def _slugs(self) -> Iterator[Sequence[Any]]:
        """The id and the slug of every visible market."""
        markets = self._relation("markets").alias("m")
        return self._stream(sa.select(*self._selected(markets, "markets", "id", "slug")).where(self._visible(markets)))

    def _groups(self, name: str, *columns: str, order: tuple[str, ...] = (), is_wanted: bool = True) -> Groups:
        return Groups(name, self._stream(self._of_visible(name, *columns, order=order)) if is_wanted else ())

    def _stream(self, statement: sa.Select[Any]) -> Iterator[sa.Row[Any]]:
        options = {"stream_results": True, "yield_per": _BATCH}
        return iter(self._connection.execute(statement, execution_options=options))

    def _of_visible(
        self,
        name: str,
        *columns: str,
        order: tuple[str, ...] = (),
        window: tuple[str, Any, Any] | None = None,
        exact: bool = True,
    ) -> sa.Select[Any]:
        """Select the public rows of visible markets: the market's id, then `columns`; in the order of `_markets`.

        `exact` joins ids as they are spelled, by the index; otherwise case does not matter.
        """
        markets, relation = self._relation("markets").alias("m"), self._relation(name).alias("r")
        owner = self._selected(markets, "markets", "id")
        statement = (
            sa.select(owner[0].label("owner"), *self._selected(relation, name, *columns))
            .join_from(relation, markets, self._same_market(relation, name, markets, exact=exact))
            .where(self._visible(markets))
            .order_by(markets.c.id, *(relation.c[column] for column in order))
        )
        if "is_public" in relation.c:
            statement = statement.where(relation.c.is_public.is_(sa.true()))
        if window:
            column, start, end = window
            statement = statement.where(relation.c[column] >= start, relation.c[column] < end)
        return statement

    def _same_market(
        self, relation: sa.FromClause, name: str, markets: sa.FromClause, *, exact: bool
    ) -> sa.ColumnElement[bool]:
        if exact:
            return relation.c.market_id == markets.c.id
        ids = self._selected(relation, name, "market_id")[0], self._selected(markets, "markets", "id")[0]
        return sa.func.lower(ids[0]) == sa.func.lower(ids[1])

    def _relation(self, name: str) -> sa.TableClause:
        columns = (
            sa.column(column, sa.Boolean() if kind == "boolean" else None) for column, kind in RELATIONS[name].items()
        )
        return sa.table(name, *columns, schema=self._schema)

    def _visible(self, markets: sa.FromClause) -> sa.ColumnElement[bool]:
        approval = self._selected(markets, "markets", "approval")
        return sa.and_(approval[0] == "approved", markets.c.is_listed.is_(sa.true()))

    def _selected(self, relation: sa.FromClause, name: str, *columns: str) -> Sequence[sa.ColumnElement[Any]]:
        """Columns as they are read.

        PostgreSQL casts ids, texts and times to text: its driver cannot represent every time, infinity and the years
        before 1 among them, and one such row must not end the build.
        """
        if self._dialect == "sqlite":
            return [relation.c[column] for column in columns]
        castable = ("id", "text", "timestamp", "date")
        return [
            sa.cast(relation.c[column], sa.Text).label(column)
            if RELATIONS[name][column] in castable
            else relation.c[column]
            for column in columns
        ]


def _kinds(column: sa.types.TypeEngine[Any], dialect: str) -> frozenset[Kind]:
    """The kinds a column type can hold. SQLite has fewer types: times and ids are text there, truth is a number."""
    lax = dialect == "sqlite"
    # An expression in a view, or a type unknown to SQLAlchemy. SQLite declares what it likes, such as UUID or
    # TIMESTAMPTZ, and calls it NUMERIC: a column that may hold anything.
    if isinstance(column, sa.types.NullType) or (lax and isinstance(column, sa.NUMERIC)):
        return frozenset(("id", "text", "number", "integer", "boolean", "timestamp", "date"))
    if isinstance(column, DOMAIN):
        return _kinds(column.data_type, dialect)
    holds: dict[Kind, bool] = {
        "id": isinstance(column, sa.Uuid | sa.String),
        "text": isinstance(column, sa.String),
        "number": isinstance(column, sa.Numeric | sa.Integer | sa.Float),
        "integer": isinstance(column, sa.Numeric | sa.Integer),
        "boolean": isinstance(column, sa.Boolean) or (lax and isinstance(column, sa.Numeric | sa.Integer)),
        "timestamp": isinstance(column, sa.DateTime) or (lax and isinstance(column, sa.String)),
        "date": isinstance(column, sa.Date) or (lax and isinstance(column, sa.String)),
    }
    return frozenset(kind for kind, can in holds.items() if can)
