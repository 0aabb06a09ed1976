"""One consistent read of SQLite or PostgreSQL → the catalog, then the rows of each market's detail as a stream.

Hidden markets and private rows never reach memory. Values come as the driver gives them: `rows` converts them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from pydantic import ValidationError

from generator.config.settings import Config
from generator.markets import row_validation, slugs
from generator.markets.catalog import Catalog, Market
from generator.markets.detail import MarketRows
from generator.markets.fills import count_window
from generator.markets.quarantine import Quarantine
from generator.source import connection, queries
from generator.source.connection import Transaction, describe, sqlite_path
from generator.source.grouping import Groups
from generator.source.queries import EVERYTHING, Range, Statements
from generator.source.relations import Kind

__all__ = ["Range", "Reading", "describe", "reading", "sqlite_path"]

_DAY: Final = timedelta(days=1)

_FX: Final = ("title", "instrument", "source", "week_start", "week_end", "threshold_value", "direction")
_ORDERS: Final = ("side", "price", "amount")
_FILLS: Final = ("id", "amount", "shares", "price", "created_at")
_POINTS: Final = ("recorded_at", "prob")
_CATEGORIES: Final = ("category", "position")


@contextmanager
def reading(config: Config, quarantine: Quarantine, instant: str | None = None) -> Iterator["Reading"]:
    """Open one transaction that sees one instant of the database; whatever goes wrong with it is a SourceError.

    `instant` is that of a reading in another process, which must stay open.
    """
    with connection.transaction(config, instant) as transaction:
        yield Reading(transaction, config, quarantine)


class Reading:
    """One transaction. `catalog` first, then `details`: both see the same instant."""

    def __init__(self, transaction: Transaction, config: Config, quarantine: Quarantine) -> None:
        self._transaction = transaction
        self._schema = config.source.schema_ if transaction.dialect == "postgresql" else None
        self._statements = Statements(transaction.dialect, self._schema)
        self._shown = config.detail
        self._is_extended = config.variant == "extended"
        self._columns = row_validation.MARKET_COLUMNS + (row_validation.EXTENDED_COLUMNS if self._is_extended else ())
        self._quarantine = quarantine
        self._spelled: list[str] = []

    def instant(self) -> str | None:
        """What `reading` needs in another process to see the same instant; None if none can."""
        return self._transaction.instant

    def columns(self, relation: str) -> dict[str, tuple[str, frozenset[Kind]]] | None:
        """The type of each column and the kinds it can hold; None when there is no such relation."""
        columns = self._transaction.columns(relation, self._schema)
        dialect = self._transaction.dialect
        if columns is None:
            return None
        return {name: (str(kind), queries.kinds(kind, dialect)) for name, kind in columns.items()}

    def refusal(self, relation: str) -> str | None:
        """Why the columns we need of the relation cannot be selected, though they are there; None when they can."""
        return self._transaction.refusal(self._statements.any_row(relation))

    def catalog(self, as_of: datetime) -> Catalog:
        """Read every visible market; those that break the contract go to the quarantine."""
        fx, fills24h, now = self._fx_members(), self._count_fills(as_of), row_validation.timestamp(as_of.isoformat())
        known = slugs.references(self._slugs() if self._is_extended else ())
        categories = self._groups("market_categories", *_CATEGORIES, is_wanted=self._is_extended)
        markets, ids = list[Market](), Counter[str]()
        for row in self._markets():
            key = row["id"]
            plain = str(key).lower()
            ids[plain] += 1
            own = row_validation.categories(categories.of(key), self._quarantine)
            extras = row_validation.Extras(known.usable.get(key), own) if self._is_extended else None
            try:
                wire = row_validation.market(
                    row, fx=fx.get(plain), fills24h=fills24h.get(key, 0), as_of=now, extras=extras
                )
            except ValidationError as error:
                self._quarantine.reject("markets", key, row_validation.reason(error), row["question"] or "")
            else:
                markets.append(Market.of(wire))
                self._spelled.append(key)
        categories.finish()
        hidden = self._transaction.number(self._statements.count_markets()) - ids.total()
        return Catalog(self._unique(markets, ids), as_of=now, hidden=hidden, refused_slugs=known.refused)

    def ranges(self, count: int) -> list[Range]:
        """All markets of the catalog that was read, in at most `count` ranges, in the order of the database."""
        size = max(1, -(-len(self._spelled) // max(1, count)))
        starts = self._spelled[size::size]
        bounds = zip([None, *starts], [*starts, None], strict=True)
        return [Range(start, end) for start, end in bounds]

    def details(self, catalog: Catalog, within: Range = EVERYTHING) -> Iterator[MarketRows]:
        """Read each market of the catalog with the rows of its detail; consume one before taking the next."""
        public = {market.item.id: market for market in catalog.markets}
        orders = self._groups("orders", *_ORDERS, order=_ORDERS, within=within, is_wanted=self._shown.order_book)
        fills = self._groups("fills", *_FILLS, within=within, is_wanted=self._shown.recent_fills > 0)
        points = self._groups("probabilities", *_POINTS, within=within, is_wanted=self._shown.history_points > 0)
        for row in self._markets(within):
            streams = [groups.of(row["id"]) for groups in (orders, fills, points)]
            market = public.get(str(row["id"]).lower())
            if market is not None:
                extras = row_validation.Extras.of(market.item)
                wire = row_validation.market(
                    row, fx=market.fx, fills24h=market.item.fills24h, as_of=catalog.as_of, extras=extras
                )
                yield MarketRows(wire, *streams)
        for groups in (orders, fills, points):
            groups.finish()

    def _unique(self, markets: list[Market], counts: Counter[str]) -> list[Market]:
        """Without the markets that share an id, with a bad row even: which of them is meant cannot be known."""
        for item in (market.item for market in markets if counts[market.item.id] > 1):
            self._quarantine.reject("markets", item.id, f"id: {counts[item.id]} markets have the same", item.question)
        return [market for market in markets if counts[market.item.id] == 1]

    def _fx_members(self) -> dict[str, Mapping[str, Any]]:
        """The public FX membership of each market, by the market's id in lower case.

        A membership that breaks the contract takes its market along, which is validated with it: left out alone, it
        would put the market into the lists, where members of public families must not be. For the same reason ids are
        matched in whatever case they are spelled.
        """
        members: dict[str, Mapping[str, Any]] = {}
        for row in self._transaction.rows(
            self._statements.of_visible_in_any_case("fx_members", *_FX, order=("week_start", "title"))
        ):
            if row[0] in members:
                self._quarantine.reject("fx_members", row[0], "market_id: the market is a member of a family already")
            else:
                members[row[0]] = dict(zip(_FX, row[1:], strict=True))
        return members

    def _count_fills(self, as_of: datetime) -> dict[str, int]:
        """The number of fills in the 24 hours up to `as_of`, by market id as the database spells it."""
        start, end = row_validation.timestamp((as_of - _DAY).isoformat()), row_validation.timestamp(as_of.isoformat())
        # The statement's window is a day too wide: SQLite's times are text, with any offset. The exact test follows.
        window = ("created_at", self._bound(as_of - 2 * _DAY), self._bound(as_of + 2 * _DAY))
        fills = groupby(
            self._transaction.rows(self._statements.of_visible("fills", *_FILLS, window=window)), key=itemgetter(0)
        )
        return {owner: count_window(group, start, end) for owner, group in fills}

    def _bound(self, moment: datetime) -> datetime | str:
        return (
            str(moment.date()) if self._transaction.dialect == "sqlite" else moment.astimezone(UTC).replace(tzinfo=None)
        )

    def _markets(self, within: Range = EVERYTHING) -> Iterator[Mapping[str, Any]]:
        found = self._transaction.rows(self._statements.markets(*self._columns, within=within))
        return (dict(zip(self._columns, row, strict=True)) for row in found)

    def _slugs(self) -> Iterator[Sequence[Any]]:
        """The id and the slug of every visible market."""
        return self._transaction.rows(self._statements.markets("id", "slug", in_order=False))

    def _groups(
        self, name: str, *columns: str, order: tuple[str, ...] = (), within: Range = EVERYTHING, is_wanted: bool = True
    ) -> Groups:
        statement = self._statements.of_visible(name, *columns, order=order, within=within)
        return Groups(name, self._transaction.rows(statement) if is_wanted else ())
