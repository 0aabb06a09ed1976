"""One consistent read of SQLite or PostgreSQL: a survey of all markets, then ranges of them with their details.

Hidden markets and private rows never reach memory. Values arrive as the driver delivers them: `row_validation` converts
them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import repeat
from typing import Any, Final

from pydantic import ValidationError

from generator.config import demo
from generator.config.settings import Config
from generator.findings import Finding
from generator.markets import (
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
from generator.markets.detail import MarketRows
from generator.markets.fills import NO_FILLS, Window
from generator.markets.fingerprint import version_digest
from generator.markets.market import Market, SearchWords
from generator.markets.market_columns import Batch
from generator.markets.quarantine import Quarantine
from generator.markets.site_keys import NO_KEYS, SiteKeys
from generator.source import connection, fill_windows, queries, rights, schema_check, survey
from generator.source.connection import Transaction
from generator.source.failures import Failures
from generator.source.fill_windows import EarlierCounts, FillWindows
from generator.source.found import Found
from generator.source.grouping import Convert, RowsByMarket
from generator.source.queries import EVERYTHING, Range, Statements, Within
from generator.source.relations import OPTIONAL, RELATIONS, Kind
from generator.source.survey import Facts, Survey

#: Nothing was counted before, so all fills are.
NO_COUNTS: Final = EarlierCounts()
_FX: Final = ("title", "instrument", "source", "week_start", "week_end", "threshold_value", "direction")
_ORDERS: Final = ("side", "price", "amount")
_POINTS: Final = ("recorded_at", "prob")
_CATEGORIES: Final = ("category", "position")
#: The optional column that is read of all markets at once, as keys must be unique.
_SITE_KEY: Final = "key"
_SECOND_FAMILY: Final = Finding(
    column="market_id",
    text="the market is a member of a family already",
    remedy="keep one public membership per market",
)
_REPEATED: Final = Finding(column="id", text="several markets have the same", remedy=faults.REPEATED)
#: Of several memberships the first counts. Databases may sort texts differently, and return equal ones in any order.
_PRECEDENCE: Final = ("week_start", "title", *(name for name in _FX if name not in {"week_start", "title"}))


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
        self._statements = Statements(transaction.dialect, self._schema)
        self._shown = config.detail
        self._is_extended = config.variant == "extended"
        self._words = SearchWords(config.search_texts)
        self._window_step = config.window_step
        extended = row_validation.EXTENDED_COLUMNS if self._is_extended else ()
        self._market_columns = row_validation.MARKET_COLUMNS + extended
        self._detail_columns = detail_market.COLUMNS + extended
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

    def has_site_keys(self) -> bool:
        """Whether markets may tell their key on the operator's site."""
        return _SITE_KEY in self._columns("markets")

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
        # Read to the end: this closes the cursor.
        return bool([*self._transaction.rows(self._statements.one_if_any(relation), relation)])

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

    def _missing_rights(self) -> rights.MissingRights:
        if self._transaction.dialect == "sqlite":
            return rights.MissingRights()
        return rights.MissingRights.of(self._transaction.rows(self._statements.rights(), "pg_class"))

    def excess(self) -> list[str]:
        """What the database user may do that no build needs, as sentences; empty if the database does not say."""
        if self._transaction.dialect == "sqlite":
            return []
        return [*rights.excess(self._transaction.answer(self._statements.excess()))]

    def survey(self) -> Survey:
        """What must be known before `read` reads the markets part by part. Raises ReadError."""
        # First, so that a failure of `markets` is not reported as one of a relation that is joined with it.
        in_all = self._transaction.number(self._statements.count_markets(), "markets")
        fx = self._fx_members()
        optional = self._columns("markets")[len(RELATIONS["markets"]) :]
        columns = tuple(name for name in optional if name != _SITE_KEY)
        names = ("id", *(["slug"] if self._is_extended else []), *([_SITE_KEY] if _SITE_KEY in optional else []))
        found = [*self._transaction.rows(self._statements.markets(*names), "markets")]
        keys = [row[0] for row in found]
        site_keys = SiteKeys.of((row[0], row[-1]) for row in found) if _SITE_KEY in optional else NO_KEYS
        known = slugs.references(row[:2] for row in found if self._is_extended)
        spelled = categories.spellings(self._category_names() if self._is_extended else ())
        facts = Facts(columns, fx, known.usable, spelled, survey.repeated(keys))
        return Survey(keys, in_all - len(keys), facts, known.refused, site_keys)

    def looks_up(self, within: Range) -> bool:
        """Whether the database can look up a range of markets in an index; if not, it reads whole tables for each."""
        return self._transaction.looks_up(self._statements.of_visible("fills", *fill_windows.COLUMNS, within=within))

    def read(self, within: Range, facts: Facts, as_of: datetime, earlier: EarlierCounts = NO_COUNTS) -> Found:
        """Read the visible markets of a range; quarantine those that break the contract. Raises ReadError."""
        names = (*self._market_columns, *facts.columns)
        rows = [*self._transaction.rows(self._statements.markets(*names, within=within), "markets")]
        columns = dict(zip(names, zip(*rows, strict=True) if rows else ((),) * len(names), strict=True))
        keys = columns["id"]
        versions = [*map(version_digest, columns.pop("detail_version", repeat(None, len(keys))))]
        windows, false_versions = self._windows(
            dict(zip(keys, versions, strict=True)), as_of, earlier if facts.columns else NO_COUNTS, within
        )
        categorised = self._groups("market_categories", None, *_CATEGORIES, within=within, is_wanted=self._is_extended)
        extended = [self._extended(key, facts, categorised) for key in keys]
        categorised.finish()
        plain = [str(key).lower() for key in keys]
        batch = Batch(
            columns, [facts.fx.get(key) for key in plain], [windows.get(key, NO_FILLS) for key in keys], extended,
            versions,
        )  # fmt: skip
        markets = self._listed(batch, row_validation.timestamp(as_of.isoformat()), facts.repeated)
        shown = [columns[name] for name in self._detail_columns]
        return Found(keys, markets, self._detail_columns, [*zip(*shown, strict=True)], false_versions)

    def details(self, found: Found, wanted: Collection[Any], within: Within) -> Iterator[MarketRows]:
        """Stream markets of a range with their detail rows; consume each before advancing to the next.

        They are `wanted` by id as the database spells it; `within` has all of them, and no market that is not in the
        range.
        """
        groups = partial(self._groups, within=within)
        streams = [
            groups("orders", detail.converted, *_ORDERS, order=_ORDERS, is_wanted=self._shown.order_book),
            groups("fills", fills.converted, *fill_windows.COLUMNS, is_wanted=self._shown.recent_fills > 0),
            groups("probabilities", history.converted, *_POINTS, is_wanted=self._shown.history_points > 0),
        ]
        for place, key in enumerate(found.keys):
            rows = [stream.of(key) for stream in streams]
            if key in wanted:
                yield MarketRows(found.market_object(place), *rows)
        for stream in streams:
            stream.finish()

    def _windows(
        self, versions: Mapping[Any, str | None], as_of: datetime, earlier: EarlierCounts, within: Range
    ) -> tuple[Mapping[Any, Window], list[str]]:
        """The windows of the range's markets, and the markets (ids) whose versions proved false."""
        counts = FillWindows(self._transaction, self._statements, self._window_step)
        return counts.counted(as_of, versions, earlier, within), counts.false_versions

    def _extended(self, key: Any, facts: Facts, categorised: RowsByMarket) -> row_validation.ExtendedFields | None:
        """What the extended variant shows of a market besides its row."""
        if not self._is_extended:
            return None
        own = categories.of_market(categorised.of(key), facts.spellings, self._quarantine)
        return row_validation.ExtendedFields(facts.slugs.get(key), own)

    def _listed(self, batch: Batch, now: str, repeated: Mapping[str, int]) -> list[Market | None]:
        """The market of each row; None for those that break the contract, which are quarantined.

        So are all rows with an id that occurs more than once: it would be ambiguous.
        """
        made = list[Market | None]()
        texts = [batch.columns[name] for name in ("question", "description")]
        for key, question, description, market in zip(batch.columns["id"], *texts, self._made(batch, now), strict=True):
            if isinstance(market, ValidationError):
                self._quarantine.reject("markets", key, *faults.of(market), title=question or "")
            elif long := [*faults.too_long(self._config.texts, question, description)]:
                self._quarantine.reject("markets", market.id, *long, title=question)
            elif market.id in repeated:
                shared = _REPEATED._replace(value=str(repeated[market.id]))
                self._quarantine.reject("markets", market.id, shared, title=question)
            else:
                made.append(market)
                continue
            made.append(None)
        return made

    def _made(self, batch: Batch, now: str) -> Iterator[Market | ValidationError]:
        for start in range(0, len(batch.fx), market_columns.BATCH):
            yield from market_columns.of_rows(batch.part(slice(start, start + market_columns.BATCH)), now, self._words)

    def _fx_members(self) -> dict[str, Mapping[str, Any]]:
        """The public FX membership of each market, by the market's id in lower case.

        It is validated with its market, so a bad membership quarantines the market too: without it, the market would
        enter the lists, where members of public families must not appear. For the same reason ids match in any case.
        """
        members: dict[str, Mapping[str, Any]] = {}
        for market_id, *values in self._transaction.rows(
            self._statements.of_visible_in_any_case("fx_members", *_FX), "fx_members"
        ):
            member: Mapping[str, Any] = dict(zip(_FX, values, strict=True))
            if market_id in members:
                self._quarantine.reject("fx_members", market_id, _SECOND_FAMILY)
                member = min(members[market_id], member, key=_precedence)
            members[market_id] = member
        return members

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
    ) -> RowsByMarket:
        statement = self._statements.of_visible(name, *columns, order=order, within=within)
        return RowsByMarket(name, self._transaction.batches(statement, name) if is_wanted else (), convert)


def _precedence(member: Mapping[str, Any]) -> list[str]:
    values = (member[name] for name in _PRECEDENCE)
    return [str(float(value) if isinstance(value, Decimal) else value) for value in values]
