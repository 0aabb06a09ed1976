"""One consistent read of SQLite or PostgreSQL: a survey of all markets, then ranges of them with their details.

Hidden markets and private rows never reach memory. Values arrive as the driver delivers them: `row_validation` converts
them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from typing import Any, Final

from pydantic import ValidationError

from generator.config import demo
from generator.config.settings import Config
from generator.findings import Finding
from generator.markets import categories, detail, faults, fills, history, market_columns, row_validation
from generator.markets.detail import MarketRows
from generator.markets.fills import NO_FILLS, Window
from generator.markets.market import Market, SearchWords, version_digest
from generator.markets.market_columns import Batch
from generator.markets.quarantine import Quarantine
from generator.source import connection, fill_windows, queries, rights, schema_check
from generator.source.connection import Transaction
from generator.source.earlier import NOTHING_EARLIER, EarlierMarkets, lower
from generator.source.failures import Failures
from generator.source.fill_windows import EarlierCounts, FillWindows
from generator.source.grouping import Convert, RowsByMarket
from generator.source.queries import EVERYTHING, Range, Statements, Within
from generator.source.questions import QuestionReader
from generator.source.relations import ALL_RELATIONS, OPTIONAL, QUESTION_RELATIONS, RELATIONS, Kind
from generator.source.survey import Facts, Found, Survey, Surveyor

#: Nothing was counted before, so all fills are.
NO_COUNTS: Final = EarlierCounts()
_ORDERS: Final = ("side", "price", "amount")
_POINTS: Final = ("recorded_at", "prob")
_CATEGORIES: Final = ("category", "position")
_REPEATED: Final = Finding(column="id", text="several markets have the same", remedy=faults.REPEATED)


@contextmanager
def open_reader(config: Config, quarantine: Quarantine, instant: str | None = None) -> Iterator["Reader"]:
    """Read the database in one transaction that sees one instant; every failure in it raises SourceError.

    `instant` is the `Reader.instant` of another process, whose reader must stay open.
    """
    with connection.transaction(config, instant) as transaction:
        yield Reader(transaction, config, quarantine)


class Reader:
    """Reads in one transaction, so that all results are of the same instant: `survey`, then `read` and `details`."""

    def __init__(self, transaction: Transaction, config: Config, quarantine: Quarantine) -> None:
        self._transaction = transaction
        self._config = config
        self._schema = config.source.schema_ if transaction.dialect == "postgresql" else None
        self._statements = Statements(transaction.dialect, self._schema, transaction.widest)
        self._shown = config.detail
        self._is_extended = config.variant == "extended"
        self._words = SearchWords(config.search_texts)
        self._window_step = config.fills_window_step
        extended = row_validation.EXTENDED_COLUMNS if self._is_extended else ()
        self._market_columns = row_validation.MARKET_COLUMNS + extended
        self._detail_columns = detail.COLUMNS + extended
        self._quarantine = quarantine

    def reporting_to(self, quarantine: Quarantine) -> "Reader":
        """A reader in the same transaction that reports bad rows to another quarantine."""
        return Reader(self._transaction, self._config, quarantine)

    def instant(self) -> str | None:
        """What `open_reader` needs in another process to see the same instant; None if impossible."""
        return self._transaction.instant

    def is_file(self) -> bool:
        """Whether the database is a file of this machine."""
        return self._transaction.dialect == "sqlite"

    def is_demo(self) -> bool:
        """Whether `public-markets demo` made this database."""
        return self._transaction.application_id() == demo.APPLICATION_ID

    def offers(self, column: str) -> bool:
        """Whether markets have this optional column."""
        return column in self._columns("markets")

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
            for relation, columns in ALL_RELATIONS.items()
            for name, kind in (self._transaction.columns(relation, self._schema) or {}).items()
            if name in columns and queries.has_no_zone(kind)
        ]

    def has_rows(self, relation: str) -> bool:
        """Whether a relation has a row that may be public, of whichever market."""
        # Read to the end: this closes the cursor.
        return bool([*self._transaction.rows(self._statements.one_if_any(relation), relation)])

    def row_counts(self) -> dict[str, int]:
        """How many rows every relation has that may be public, of whichever market, by its name. Raises ReadError."""
        return {name: self._transaction.number(self._statements.count_rows(name), name) for name in self._relations()}

    def _relations(self) -> Iterable[str]:
        """The relations to read: the database has all of them, as `require_schema` found."""
        return ALL_RELATIONS if self.has_questions() else RELATIONS

    def has_questions(self) -> bool:
        """Whether the database has both relations of questions; never where the settings say no."""
        offered = (self._transaction.columns(name, self._schema) for name in QUESTION_RELATIONS)
        return self._config.questions.enabled is not False and all(columns is not None for columns in offered)

    def has_members(self) -> bool:
        """Whether the database says which markets are in which questions, whatever the settings say of questions."""
        offered = self._transaction.columns("question_members", self._schema) or {}
        return {"question_id", "market_id"} <= offered.keys()

    def questions(self) -> QuestionReader:
        """What reads questions here, if the database has them."""
        return QuestionReader(self._transaction, self._statements, self._quarantine, self._is_extended)

    def failures(self) -> list[str]:
        """Every column that the database fails to compute, as sentences. May take longer than a build."""
        columns = {relation: self._columns(relation) for relation in self._relations()}
        return list(Failures(self._transaction, self._statements, columns).found())

    def _columns(self, relation: str) -> tuple[str, ...]:
        """The columns to read: all that are required, and the optional ones that the database has."""
        offered = self._transaction.columns(relation, self._schema) or {} if relation in OPTIONAL else {}
        return (*ALL_RELATIONS[relation], *(column for column in OPTIONAL.get(relation, ()) if column in offered))

    def _offered(self, relation: str) -> dict[str, tuple[str, frozenset[Kind]]] | None:
        columns = self._transaction.columns(relation, self._schema)
        dialect = self._transaction.dialect
        if columns is None or (relation in QUESTION_RELATIONS and self._config.questions.enabled is False):
            return None
        return {name: (str(kind), queries.kinds(kind, dialect)) for name, kind in columns.items()}

    def _refusal(self, relation: str) -> str | None:
        return self._transaction.refusal(self._statements.any_row(relation, *self._columns(relation)))

    def _missing_rights(self) -> rights.MissingRights:
        if self._transaction.dialect == "sqlite":
            return rights.MissingRights()
        return rights.MissingRights.of(self._transaction.rows(self._statements.rights(), "pg_class"))

    def excess(self) -> list[str]:
        """What the database user may do that no build needs, as sentences; empty if the database does not say."""
        if self._transaction.dialect == "sqlite":
            return []
        return [*rights.excess(self._transaction.answer(self._statements.excess()))]

    def row_security(self) -> list[str]:
        """Where row level security keeps rows from this user, as sentences; empty if the database does not say."""
        if self._transaction.dialect == "sqlite":
            return []
        return [*rights.bound(self._transaction.answer(self._statements.row_security()))]

    def survey(self, earlier: EarlierMarkets = NOTHING_EARLIER) -> Survey:
        """What must be known before `read` reads the markets part by part, and which need not be. Raises ReadError."""
        return self.surveyor().survey(earlier)

    def surveyor(self) -> Surveyor:
        """What makes surveys here."""
        columns = self._columns("markets")[len(RELATIONS["markets"]) :]
        return Surveyor(self._transaction, self._statements, self._quarantine, columns, self._is_extended)

    def looks_up(self, within: Range) -> bool:
        """Whether the database can look up a range of markets in an index; if not, it reads whole tables for each."""
        return self._transaction.looks_up(self._statements.of_visible("fills", *fill_windows.COLUMNS, within=within))

    def read(self, within: Within, facts: Facts, as_of: datetime, earlier: EarlierCounts = NO_COUNTS) -> Found:
        """Read these of the visible markets; quarantine those that break the contract. Raises ReadError."""
        names = (*self._market_columns, *facts.columns)
        rows = [*self._transaction.rows(self._statements.markets(*names, within=within), "markets")]
        columns = dict(zip(names, zip(*rows, strict=True) if rows else ((),) * len(names), strict=True))
        keys = columns["id"]
        versions = [*map(version_digest, columns.pop("detail_version", repeat(None, len(keys))))]
        windows, false_versions = self._windows(
            dict(zip(keys, versions, strict=True)), as_of, earlier if facts.columns else NO_COUNTS, within
        )
        categorised = self._groups("market_categories", None, *_CATEGORIES, within=within, is_wanted=self._is_extended)
        altered = list[str]()
        extended = [self._extended(key, facts, categorised, altered) for key in keys]
        categorised.finish()
        batch = Batch(
            columns, [facts.fx.get(lower(key)) for key in keys], [windows.get(key, NO_FILLS) for key in keys], extended,
            versions,
        )  # fmt: skip
        markets = self._listed(batch, row_validation.timestamp(as_of.isoformat()), facts)
        shown = [columns[name] for name in self._detail_columns]
        return Found(keys, markets, self._detail_columns, [*zip(*shown, strict=True)], altered, false_versions)

    def details(self, found: Found, wanted: Collection[Any], within: Within) -> Iterator[MarketRows]:
        """Stream markets of a range with their detail rows; consume each before advancing to the next.

        They are `wanted` by id as the database spells it; `within` has all of them, and no market that is not in the
        range.
        """
        groups, is_wanted = partial(self._groups, within=within), self._shown.shows()
        streams = [
            groups("orders", detail.converted, *_ORDERS, order=_ORDERS, is_wanted=is_wanted["orders"]),
            groups("fills", fills.converted, *fill_windows.COLUMNS, is_wanted=is_wanted["fills"]),
            groups("probabilities", history.converted, *_POINTS, is_wanted=is_wanted["probabilities"]),
        ]
        unclear = self._unclear_orders(within)
        for place, key in enumerate(found.keys):
            rows, bad = [stream.of(key) for stream in streams], unclear.of(key)
            if key in wanted:
                for _, value in bad:
                    self._quarantine.reject("orders", lower(key), faults.unclear("is_public", value))
                yield MarketRows(found.market_object(place), *rows)
        for stream in (*streams, unclear):
            stream.finish()

    def _unclear_orders(self, within: Within) -> RowsByMarket:
        """The orders of which nobody can tell whether they are public: only what is in place of the boolean."""
        statement = self._statements.of_visible("orders", "is_public", within=within, unclear=True)
        is_wanted = self._shown.order_book and self._statements.has_any_boolean
        return RowsByMarket("orders", self._transaction.batches(statement, "orders") if is_wanted else ())

    def _windows(
        self, versions: Mapping[Any, str | None], as_of: datetime, earlier: EarlierCounts, within: Within
    ) -> tuple[Mapping[Any, Window], list[str]]:
        """The windows of these markets, and the markets (ids) whose versions proved false."""
        counts = FillWindows(self._transaction, self._statements, self._window_step)
        return counts.counted(as_of, versions, earlier, within), counts.false_versions

    def _extended(
        self, key: Any, facts: Facts, categorised: RowsByMarket, altered: list[str]
    ) -> row_validation.ExtendedFields | None:
        """What the extended variant shows of a market besides its row."""
        if not self._is_extended:
            return None
        rows = [*categorised.of(key)]
        own = categories.of_market(rows, facts.spellings, self._quarantine)
        if sorted(own) != sorted(str(name) for _, name, _ in rows):
            altered.append(lower(key))
        return row_validation.ExtendedFields(facts.slugs.get(key), own)

    def _listed(self, batch: Batch, now: str, facts: Facts) -> list[Market | None]:
        """The market of each row; None for those that break the contract, which are quarantined.

        So are all rows with an id that occurs more than once: it would be ambiguous. And so is a market that lists
        would show if its family were not public, when nobody can tell.
        """
        made = list[Market | None]()
        columns = (batch.columns[name] for name in ("id", "question"))
        for key, question, market in zip(*columns, self._made(batch, now), strict=True):
            if isinstance(market, ValidationError):
                self._quarantine.reject("markets", key, *faults.of(market), title=question or "")
            elif market.id in facts.repeated:
                shared = _REPEATED._replace(value=str(facts.repeated[market.id]))
                self._quarantine.reject("markets", market.id, shared, title=question)
            elif market.id in facts.unclear:
                self._quarantine.reject("markets", market.id, facts.unclear[market.id], title=question)
            else:
                made.append(market)
                continue
            made.append(None)
        return made

    def _made(self, batch: Batch, now: str) -> Iterator[Market | ValidationError]:
        for start in range(0, len(batch.fx), market_columns.BATCH):
            yield from market_columns.of_rows(batch.part(slice(start, start + market_columns.BATCH)), now, self._words)

    def _groups(
        self,
        name: str,
        convert: Convert | None,
        *columns: str,
        order: tuple[str, ...] = (),
        within: Within = EVERYTHING,
        is_wanted: bool = True,
    ) -> RowsByMarket:
        statement = self._statements.of_visible(name, *columns, order=order, within=within)
        return RowsByMarket(name, self._transaction.batches(statement, name) if is_wanted else (), convert)
