"""One consistent read of SQLite or PostgreSQL: first the catalog, then each market's detail rows as a stream.

Hidden markets and private rows never reach memory. Values arrive as the driver delivers them: `row_validation` converts
them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from generator.config import demo
from generator.config.settings import Config
from generator.errors import FalseVersionsError
from generator.markets import (
    batch_validation,
    categories,
    detail,
    detail_market,
    faults,
    fills,
    history,
    market_columns,
    row_validation,
    slugs,
)
from generator.markets.catalog import Catalog, Market, SearchWords
from generator.markets.categories import Spellings
from generator.markets.detail import MarketRows
from generator.markets.detail_market import DetailMarket
from generator.markets.fills import NO_FILLS, Window
from generator.markets.market_columns import Batch
from generator.markets.quarantine import Fault, Quarantine
from generator.markets.slugs import References
from generator.source import connection, fill_windows, queries, schema_check
from generator.source.connection import Transaction
from generator.source.failures import Failures
from generator.source.fill_windows import EarlierCounts, FillWindows
from generator.source.grouping import Convert, Groups
from generator.source.queries import EVERYTHING, Range, Statements, Within
from generator.source.relations import OPTIONAL, RELATIONS, Kind
from generator.source.rights import MissingRights

#: Everything is counted.
NO_COUNTS: Final = EarlierCounts()
_FX: Final = ("title", "instrument", "source", "week_start", "week_end", "threshold_value", "direction")
_ORDERS: Final = ("side", "price", "amount")
_POINTS: Final = ("recorded_at", "prob")
_CATEGORIES: Final = ("category", "position")
_SECOND_FAMILY: Final = Fault("market_id", "the market is a member of a family already")


@contextmanager
def open_reader(config: Config, quarantine: Quarantine, instant: str | None = None) -> Iterator["Reader"]:
    """Read the database in one transaction that sees one instant; every failure in it raises SourceError.

    `instant` is the `Reader.instant` of another process, whose reader must stay open.
    """
    with connection.transaction(config, instant) as transaction:
        yield Reader(transaction, config, quarantine)


class Reader:
    """Reads in one transaction, so that all results are of the same instant. Call `catalog` before `details`."""

    def __init__(self, transaction: Transaction, config: Config, quarantine: Quarantine) -> None:
        self._transaction = transaction
        self._schema = config.source.schema_ if transaction.dialect == "postgresql" else None
        self._statements = Statements(transaction.dialect, self._schema)
        self._shown = config.detail
        self._is_extended = config.variant == "extended"
        self._search_words = SearchWords(config.search_texts)
        self._window_step = config.fills_window_step
        extended = row_validation.EXTENDED_COLUMNS if self._is_extended else ()
        self._market_columns = row_validation.MARKET_COLUMNS + extended
        self._detail_columns = detail_market.COLUMNS + extended
        self._quarantine = quarantine
        self._spelled: list[str] = []

    def instant(self) -> str | None:
        """What `open_reader` needs in another process to see the same instant; None if impossible."""
        return self._transaction.instant

    def is_demo(self) -> bool:
        """Whether `public-markets demo` made this database."""
        return self._transaction.application_id() == demo.APPLICATION_ID

    def has_versions(self) -> bool:
        """Whether markets may tell their `detail_version`."""
        return "detail_version" in self._columns("markets")

    def schema_problems(self) -> list[str]:
        """Every reason why a build cannot read this database; empty if it can."""
        return schema_check.problems(self._offered, self._refusal, self._missing_rights)

    def require_schema(self) -> None:
        """Raise SourceError unless the database has every relation and column we read."""
        schema_check.require(self._offered, self._refusal, self._missing_rights)

    def clock(self) -> datetime | None:
        """The time by the database server's clock, to a second; None for SQLite, which has none of its own."""
        if self._transaction.dialect == "sqlite":
            return None
        return datetime.fromtimestamp(self._transaction.number(self._statements.clock(), "pg_class"), UTC)

    def without_zone(self) -> list[str]:
        """The columns whose times do not say in which zone they are, as `relation.column`. Those of SQLite may."""
        if self._transaction.dialect == "sqlite":
            return []
        return [
            f"{relation}.{name}"
            for relation, columns in RELATIONS.items()
            for name, kind in (self._transaction.columns(relation, self._schema) or {}).items()
            if name in columns and queries.has_no_zone(kind)
        ]

    def has_rows(self, relation: str) -> bool:
        """Whether a relation has a public row, of whichever market."""
        return next(self._transaction.rows(self._statements.one_if_any(relation), relation), None) is not None

    def failures(self) -> list[str]:
        """Every column that the database fails to compute, as sentences. May take longer than a build."""
        columns = {relation: self._columns(relation) for relation in RELATIONS}
        return list(Failures(self._transaction, self._statements, columns).found())

    def _columns(self, relation: str) -> tuple[str, ...]:
        """The columns to read: all that are required, and the optional ones that the database has."""
        offered = self._transaction.columns(relation, self._schema) or {} if relation in OPTIONAL else {}
        return (*RELATIONS[relation], *(column for column in OPTIONAL.get(relation, ()) if column in offered))

    def _offered(self, relation: str) -> dict[str, tuple[str, frozenset[Kind]]] | None:
        columns = self._transaction.columns(relation, self._schema)
        dialect = self._transaction.dialect
        if columns is None:
            return None
        return {name: (str(kind), queries.kinds(kind, dialect)) for name, kind in columns.items()}

    def _refusal(self, relation: str) -> str | None:
        return self._transaction.refusal(self._statements.any_row(relation, *self._columns(relation)))

    def _missing_rights(self) -> MissingRights:
        if self._transaction.dialect == "sqlite":
            return MissingRights()
        return MissingRights.of(self._transaction.rows(self._statements.rights(), "pg_class"))

    def catalog(self, as_of: datetime, earlier: EarlierCounts = NO_COUNTS) -> Catalog:
        """Read every visible market; those that break the contract are quarantined.

        Raises FalseVersionsError if counts of an `earlier` build do not hold.
        """
        # First, so that a failure of `markets` is not reported as one of a relation that is joined with it.
        in_all = self._transaction.number(self._statements.count_markets(), "markets")
        fx, now = self._fx_members(), row_validation.timestamp(as_of.isoformat())
        optional = self._columns("markets")[len(RELATIONS["markets"]) :]
        windows = self._windows(as_of, earlier if optional else NO_COUNTS)
        known = slugs.references(self._slugs() if self._is_extended else ())
        shown = categories.spellings(self._category_names() if self._is_extended else ())
        categorised = self._groups("market_categories", None, *_CATEGORIES, is_wanted=self._is_extended)
        markets, ids = list[Market](), Counter[str]()
        names = (*self._market_columns, *optional)
        rows = self._transaction.rows(self._statements.markets(*names), "markets")
        for batch in batch_validation.batches(rows, market_columns.BATCH):
            columns = dict(zip(names, zip(*batch, strict=True), strict=True))
            plain = [str(key).lower() for key in columns["id"]]
            ids.update(plain)
            extended = [self._extended(key, known, categorised, shown) for key in columns["id"]]
            counted = [windows.get(key, NO_FILLS) for key in columns["id"]]
            found = Batch(columns, [fx.get(key) for key in plain], counted, extended)
            markets += self._listed(found, now)
        categorised.finish()
        unique = self._unique(markets, ids)
        return Catalog(unique, as_of=now, hidden=in_all - ids.total(), refused_slugs=known.refused, spellings=shown)

    def ranges(self, count: int) -> dict[Range, list[str]]:
        """Divide the markets of the catalog into at most `count` ranges, in the database's order.

        Each comes with the ids of its markets, as the database spells them.
        """
        size = max(1, -(-len(self._spelled) // max(1, count)))
        starts = self._spelled[size::size]
        bounds = zip([None, *starts], [*starts, None], strict=True)
        return {
            Range(start, end): self._spelled[number * size : (number + 1) * size]
            for number, (start, end) in enumerate(bounds)
        }

    def details(self, markets: Mapping[str, Market], within: Within = EVERYTHING) -> Iterator[MarketRows]:
        """Stream these markets (by id) with their detail rows; consume each before advancing to the next.

        Descriptions and the like are read only now: they may be too large to keep all of them in the catalog.
        """
        groups = partial(self._groups, within=within)
        streams = [
            groups("orders", detail.converted, *_ORDERS, order=_ORDERS, is_wanted=self._shown.order_book),
            groups("fills", fills.converted, *fill_windows.COLUMNS, is_wanted=self._shown.recent_fills > 0),
            groups("probabilities", history.converted, *_POINTS, is_wanted=self._shown.history_points > 0),
        ]
        for row in self._markets(self._detail_columns, within):
            rows = [stream.of(row["id"]) for stream in streams]
            market = markets.get(str(row["id"]).lower())
            if market is not None:
                yield MarketRows(detail_market.of_item(market.item, market.fx, row), *rows)
        for stream in streams:
            stream.finish()

    def market_objects(self, markets: Mapping[str, Market], within: Within) -> Iterator[DetailMarket]:
        """Stream what the details of these markets (by id) show of the markets' own rows."""
        for row in self._markets(self._detail_columns, within):
            market = markets.get(str(row["id"]).lower())
            if market is not None:
                yield detail_market.of_item(market.item, market.fx, row)

    def _windows(self, as_of: datetime, earlier: EarlierCounts) -> Mapping[str, Window]:
        counts = FillWindows(self._transaction, self._statements, self._window_step)
        found = counts.counted(as_of, earlier)
        if counts.false_versions:
            raise FalseVersionsError(counts.false_versions)
        return found

    def _extended(
        self, key: Any, known: References, categorised: Groups, shown: Spellings
    ) -> row_validation.ExtendedFields | None:
        """What the extended variant shows of a market besides its row."""
        if not self._is_extended:
            return None
        own = categories.of_market(categorised.of(key), shown, self._quarantine)
        return row_validation.ExtendedFields(known.usable.get(key), own)

    def _listed(self, found: Batch, now: str) -> Iterator[Market]:
        """The markets of these rows that keep the contract; the others are quarantined."""
        made = market_columns.of_rows(found, now, self._search_words)
        for key, question, market in zip(found.columns["id"], found.columns["question"], made, strict=True):
            if isinstance(market, ValidationError):
                self._quarantine.reject("markets", key, *faults.of(market), title=question or "")
                continue
            self._spelled.append(market.id if key == market.id else key)  # one text, not two
            yield market

    def _unique(self, markets: list[Market], counts: Counter[str]) -> list[Market]:
        """Drop markets whose id occurs more than once, even in a quarantined row: the id would be ambiguous."""
        for item in (market.item for market in markets if counts[market.id] > 1):
            shared = Fault("id", "several markets have the same", str(counts[item.id]))
            self._quarantine.reject("markets", item.id, shared, title=item.question)
        return [market for market in markets if counts[market.id] == 1]

    def _fx_members(self) -> dict[str, Mapping[str, Any]]:
        """The public FX membership of each market, by the market's id in lower case.

        It is validated with its market, so a bad membership quarantines the market too: without it, the market would
        enter the lists, where members of public families must not appear. For the same reason ids match in any case.
        """
        members: dict[str, Mapping[str, Any]] = {}
        for row in self._transaction.rows(
            self._statements.of_visible_in_any_case("fx_members", *_FX, order=("week_start", "title")), "fx_members"
        ):
            if row[0] in members:
                self._quarantine.reject("fx_members", row[0], _SECOND_FAMILY)
            else:
                members[row[0]] = dict(zip(_FX, row[1:], strict=True))
        return members

    def _markets(self, columns: tuple[str, ...], within: Within = EVERYTHING) -> Iterator[dict[str, Any]]:
        found = self._transaction.rows(self._statements.markets(*columns, within=within), "markets")
        return (dict(zip(columns, row, strict=True)) for row in found)

    def _slugs(self) -> Iterator[Sequence[Any]]:
        """Stream the id and the slug of every visible market."""
        return self._transaction.rows(self._statements.markets("id", "slug", in_order=False), "markets")

    def _category_names(self) -> Iterator[Sequence[Any]]:
        """Stream the market's id and the name for each category of every visible market."""
        statement = self._statements.of_visible("market_categories", "category")
        return self._transaction.rows(statement, "market_categories")

    def _groups(
        self,
        name: str,
        convert: Convert | None,
        *columns: str,
        order: tuple[str, ...] = (),
        within: Within = EVERYTHING,
        is_wanted: bool = True,
    ) -> Groups:
        statement = self._statements.of_visible(name, *columns, order=order, within=within)
        return Groups(name, self._transaction.batches(statement, name) if is_wanted else (), convert)
