"""The SELECT statements for all relations. It opens no connection.

Every WHERE excludes hidden markets and private rows, so they never reach memory; where nobody can tell whether a row is
public, id and boolean do. Columns outside `ALL_RELATIONS` are never selected. Values arrive as the driver delivers
them, times and ids as text: `row_validation` converts them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from generator.markets.row_validation import LENGTHS
from generator.source import rights
from generator.source.relations import ALL_RELATIONS, OPTIONAL, Kind

#: Covers whatever is cut off a time when it is read; and the greatest offset from UTC.
_MOMENT: Final = timedelta(seconds=1)
_OFFSET: Final = timedelta(days=1)
#: The kinds that PostgreSQL casts to text.
_AS_TEXT: Final = ("id", "text", "timestamp", "date")
#: A type that leaves the comparison of ids to the database, in its own sort order.
_AS_GIVEN: Final = sa.types.NullType()


@dataclass(frozen=True)
class Range:
    """The markets from `start` up to but not including `end`, ids as the database spells and sorts them.

    None means unbounded. `has_null`: it includes markets whose id is NULL.
    """

    start: str | None = None
    end: str | None = None
    has_null: bool = False


EVERYTHING: Final = Range()


@dataclass(frozen=True)
class Chosen:
    """A few markets, by id as the database spells them."""

    ids: tuple[str, ...]


#: The markets to read.
Within: TypeAlias = Range | Chosen
#: The share of all markets from which on it is cheaper to read everything than to name each market.
MANY: Final = 0.2
#: The most markets of a `Chosen`: in SQLite every id is a parameter, of which it takes 32,766.
CHOSEN_AT_MOST: Final = 5_000


def few_or_all(ids: Sequence[str], count: int, everything: Within) -> Iterator[Within]:
    """How to read these of `count` markets: by name if they are few or all have names, otherwise all of the range."""
    if isinstance(everything, Range) and len(ids) > MANY * count:
        yield everything
        return
    yield from by_name(ids)


def by_name(ids: Sequence[str]) -> Iterator[Chosen]:
    """Ask for these markets."""
    for start in range(0, len(ids), CHOSEN_AT_MOST):
        yield Chosen(tuple(ids[start : start + CHOSEN_AT_MOST]))


@dataclass(frozen=True)
class Statements:
    """Statements for one dialect and schema.

    `widest` is how often the server may count one letter: it counts bytes where it does not know the encoding.
    """

    dialect: str
    schema: str | None
    widest: int = 1

    def rights(self) -> sa.TextClause:
        """Select what this user may do with each of our relations, in every schema that is meant. PostgreSQL only.

        A row is: relation; schema and user, both quoted for SQL; may it use the schema; may it read the relation.
        """
        return sa.text(rights.RIGHTS).bindparams(relations=[*ALL_RELATIONS], schema=self.schema)

    def excess(self) -> sa.TextClause:
        """Select what this user may do besides reading our relations. PostgreSQL only.

        A row is: the user, quoted for SQL; is it a superuser; a relation, or NULL if there is none; may it read that
        although it is not ours; may it write to it.
        """
        return sa.text(rights.EXCESS).bindparams(relations=[*ALL_RELATIONS], schema=self.schema)

    def row_security(self) -> sa.TextClause:
        """Select where row level security binds this user. PostgreSQL only.

        A row is: one of our relations; the table that it reads, which may be itself; is it a view that reads with this
        user's rights; is there a policy for this user.
        """
        return sa.text(rights.ROW_SECURITY).bindparams(relations=[*ALL_RELATIONS], schema=self.schema)

    def any_row(self, relation: str, *columns: str) -> sa.Select[Any]:
        """Select these columns of the relation, and no row: tests the right to read it."""
        table = self._relation(relation)
        return sa.select(*self._selected(table, relation, *columns)).where(sa.false())

    def clock(self) -> sa.Select[Any]:
        """Select the time by the server's clock, in whole seconds since 1970. PostgreSQL only."""
        return sa.select(sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.BigInteger))

    def count_markets(self) -> sa.Select[Any]:
        """Count all markets, hidden ones included."""
        return sa.select(sa.func.count()).select_from(self._relation("markets"))

    def count_values(self, name: str, *columns: str, within: Within = EVERYTHING) -> sa.Select[Any]:
        """Count the public rows, or the values that each of the columns has in them: this computes every value."""
        rows = {
            "markets": lambda: self.markets(*columns, within=within),
            "questions": lambda: self.questions(*columns),
            "question_members": lambda: self.question_members(*columns),
        }.get(name, lambda: self.of_visible(name, *columns, within=within))()
        selected = rows.selected_columns[-len(columns) :] if columns else ()
        values = (self._sent(value, name, column) for value, column in zip(selected, columns, strict=True))
        counts: list[sa.ColumnElement[Any]] = [sa.func.count(value) for value in values] or [sa.func.count()]
        return rows.order_by(None).with_only_columns(*counts)

    def _sent(self, value: sa.ColumnElement[Any], name: str, column: str) -> sa.ColumnElement[Any]:
        """A value as it is sent: the server may fail to convert a text into the client's encoding."""
        is_text = self.dialect != "sqlite" and ALL_RELATIONS[name].get(column, "text") in _AS_TEXT
        return sa.func.convert_to(value, sa.func.pg_client_encoding()) if is_text else value

    def count_rows(self, relation: str) -> sa.Select[Any]:
        """Select the number of rows that may be public, of whichever market."""
        table = self._relation(relation)
        return self._maybe_public(sa.select(sa.func.count()).select_from(table), table)

    def one_if_any(self, relation: str) -> sa.Select[Any]:
        """Select 1 if the relation has a row that may be public, of whichever market: nothing of the row itself."""
        table = self._relation(relation)
        return self._maybe_public(sa.select(sa.literal(1)).select_from(table).limit(1), table)

    def _maybe_public(self, statement: sa.Select[Any], table: sa.TableClause) -> sa.Select[Any]:
        if "is_public" not in table.c:
            return statement
        return statement.where(
            sa.or_(*(self._is_true(table.c.is_public, unclear=unclear) for unclear in (True, False)))
        )

    def markets(
        self, *columns: str, within: Within = EVERYTHING, in_order: bool = True, unclear: bool = False
    ) -> sa.Select[Any]:
        """Select the visible markets, by id; `unclear`: those that nobody can tell to be visible (see `_is_true`)."""
        markets = self._relation("markets").alias("m")
        is_visible = self._visible(markets, within, unclear=unclear)
        statement = sa.select(*self._selected(markets, "markets", *columns)).where(is_visible)
        return statement.order_by(markets.c.id) if in_order else statement

    def of_visible(
        self,
        name: str,
        *columns: str,
        order: tuple[str, ...] = (),
        since: tuple[str, datetime] | None = None,
        within: Within = EVERYTHING,
        unclear: bool = False,
    ) -> sa.Select[Any]:
        """Select the public rows of visible markets: the market's id, then `columns`; in the order of `markets`.

        `since` names a column of times, and an instant: all rows after it are selected, and some before. `unclear`: in
        place of public rows, those that nobody can tell to be.
        """
        markets, relation = self._relation("markets").alias("m"), self._relation(name).alias("r")
        owner = self._selected(markets, "markets", "id")
        statement = (
            sa.select(owner[0].label("owner"), *self._selected(relation, name, *columns))
            .join_from(relation, markets, relation.c.market_id == markets.c.id)
            .where(self._visible(markets, within))
            .order_by(markets.c.id, *(relation.c[column] for column in order))
        )
        if self.dialect != "sqlite":
            # A view that is a security barrier learns nothing from the join: without this, a range computes all rows.
            statement = statement.where(*self._bounds(relation.c.market_id, _without_null(within)))
        if since:
            column, start = since
            statement = statement.where(self._may_follow(relation.c[column], start))
        return self._public(statement, relation, unclear=unclear)

    def of_visible_in_any_case(
        self, name: str, *columns: str, within: Within = EVERYTHING, unclear: bool = False
    ) -> sa.Select[Any]:
        """Like `of_visible`, but unsorted, for a relation that may spell ids in another case; they become lower case.

        IN rather than a join: SQLite has no index on lower(id), and a join would compare all pairs.
        """
        markets, relation = self._relation("markets").alias("m"), self._relation(name).alias("r")
        owner = sa.func.lower(*self._selected(relation, name, "market_id"))
        visible = sa.select(sa.func.lower(*self._selected(markets, "markets", "id")))
        statement = sa.select(owner.label("owner"), *self._selected(relation, name, *columns)).where(
            owner.in_(visible.where(self._visible(markets, within)))
        )
        return self._public(statement, relation, unclear=unclear)

    def questions(self, *columns: str, unclear: bool = False) -> sa.Select[Any]:
        """Select the visible questions; `unclear`: those that nobody can tell to be visible (see `_is_true`)."""
        questions = self._relation("questions").alias("q")
        is_visible = self._visible(questions, EVERYTHING, unclear=unclear)
        return sa.select(*self._selected(questions, "questions", *columns)).where(is_visible)

    def question_members(self, *columns: str) -> sa.Select[Any]:
        """Select the memberships of visible markets in visible questions: both ids in lower case, then `columns`."""
        members = self._relation("question_members").alias("r")
        ids = self._member_ids(members)
        statement = sa.select(*ids, *self._selected(members, "question_members", *columns))
        for key, name in zip(ids, ("questions", "markets"), strict=True):
            owners = self._relation(name).alias(name[0])
            visible = sa.select(sa.func.lower(*self._selected(owners, name, "id")))
            statement = statement.where(key.element.in_(visible.where(self._visible(owners, EVERYTHING))))
        return statement

    def members_of(self, questions: Sequence[str]) -> sa.Select[Any]:
        """Select the memberships in these questions (ids in lower case), hidden or not: nothing but both ids."""
        ids = self._member_ids(self._relation("question_members").alias("r"))
        return sa.select(*ids).where(ids[0].element.in_(questions))

    def nested_loops(self, setting: str) -> sa.TextClause:
        """Select whether PostgreSQL may join by nested loops, which are `on` or `off` from now on."""
        text = "SELECT current_setting('enable_nestloop'), set_config('enable_nestloop', :setting, true)"
        return sa.text(text).bindparams(setting=setting)

    def _member_ids(self, members: sa.FromClause) -> list[sa.Label[Any]]:
        """The ids of question and market in lower case, as the relations may spell them in different ways."""
        return [
            sa.func.lower(*self._selected(members, "question_members", name)).label(name)
            for name in ("question_id", "market_id")
        ]

    def _may_follow(self, column: sa.ColumnElement[Any], start: datetime) -> sa.ColumnElement[bool]:
        """Whether a time may be after an instant."""
        first = (start - _MOMENT).astimezone(UTC).replace(tzinfo=None)
        if self.dialect != "sqlite":
            return column >= first
        # Text, in order but for the letter between day and time: a blank sorts first. An offset, which may be up to a
        # day, is recognised by its sign after the day.
        time = sa.func.substr(column, len("2026-01-31") + 1)
        has_offset = sa.or_(sa.func.instr(time, "+") > 0, sa.func.instr(time, "-") > 0)
        earliest = first - _OFFSET
        return sa.and_(column >= str(earliest), sa.or_(column >= str(first), has_offset))

    def _public(self, statement: sa.Select[Any], relation: sa.FromClause, *, unclear: bool = False) -> sa.Select[Any]:
        if "is_public" not in relation.c:
            return statement
        return statement.where(self._is_true(relation.c.is_public, unclear=unclear))

    def _relation(self, name: str) -> sa.TableClause:
        return sa.table(name, *map(sa.column, (*ALL_RELATIONS[name], *OPTIONAL.get(name, ()))), schema=self.schema)

    def _visible(self, markets: sa.FromClause, within: Within, *, unclear: bool = False) -> sa.ColumnElement[bool]:
        approval = self._selected(markets, "markets", "approval")
        visible = sa.and_(approval[0] == "approved", self._is_true(markets.c.is_listed, unclear=unclear))
        return sa.and_(visible, *self._bounds(markets.c.id, within))

    @property
    def has_any_boolean(self) -> bool:
        """Whether a column of booleans may hold anything else."""
        return self.dialect == "sqlite"

    def _is_true(self, boolean: sa.ColumnElement[Any], *, unclear: bool) -> sa.ColumnElement[bool]:
        """Whether it is true; `unclear`: whether it is neither true, false nor NULL."""
        if not self.has_any_boolean:
            return sa.false() if unclear else boolean.is_(sa.true())
        # A function's result has no affinity, by which the text '1' may be as good as 1.
        value = sa.func.ifnull(boolean, sa.null())
        return value.not_in([sa.true(), sa.false()]) if unclear else value.is_(sa.true())

    def _bounds(self, key: sa.ColumnElement[Any], within: Within) -> Iterator[sa.ColumnElement[bool]]:
        if isinstance(within, Chosen):
            if self.dialect == "sqlite":
                yield key.in_(sa.bindparam(None, within.ids, _AS_GIVEN, unique=True, expanding=True))
            else:
                yield key == sa.func.any(sa.bindparam(None, [*within.ids], _AS_GIVEN, unique=True))
            return
        if within.start is not None:
            yield key >= sa.bindparam(None, within.start, _AS_GIVEN, unique=True)
        if within.end is not None:
            is_before = key < sa.bindparam(None, within.end, _AS_GIVEN, unique=True)
            yield sa.or_(is_before, key.is_(None)) if within.has_null else is_before

    def _selected(self, relation: sa.FromClause, name: str, *columns: str) -> Sequence[sa.ColumnElement[Any]]:
        """The columns, cast to text where needed.

        psycopg cannot represent infinite times and years before 1, and one such row must not fail the build: so
        PostgreSQL casts ids, texts and times to text; optional columns, too, which may have any type. Texts are cut
        behind what shows that they are too long.
        """
        lengths = LENGTHS.get(name, {})
        if self.dialect == "sqlite":
            return [_cut_if_long(relation.c[column], lengths.get(column)) for column in columns]
        return [
            self._cut(sa.cast(relation.c[column], sa.Text), lengths.get(column)).label(column)
            if ALL_RELATIONS[name].get(column, "text") in _AS_TEXT
            else relation.c[column]
            for column in columns
        ]

    def _cut(self, text: sa.ColumnElement[Any], longest: int | None) -> sa.ColumnElement[Any]:
        return text if longest is None else sa.func.left(text, self.widest * (longest + 1))


def _cut_if_long(value: sa.ColumnElement[Any], longest: int | None) -> sa.ColumnElement[Any]:
    """The same in SQLite, where a column of texts may hold other values, which `substr` would make texts."""
    if longest is None:
        return value
    return sa.case((sa.func.length(value) > longest, sa.func.substr(value, 1, longest + 1)), else_=value)


def _without_null(within: Within) -> Within:
    """The same markets but those whose id is NULL, which own no rows."""
    return replace(within, has_null=False) if isinstance(within, Range) else within


def has_no_zone(column: sa.types.TypeEngine[Any]) -> bool:
    """Whether a column type holds times without saying where. SQLite's are text, whose values may say it."""
    base = _base(column)
    return isinstance(base, sa.DateTime) and not base.timezone


def _base(column: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    """The type that a domain is made of; any other type is its own."""
    if column.__visit_name__ == "DOMAIN":  # PostgreSQL's; importing its class costs as much as all of Jinja2
        return _base(getattr(column, "data_type"))  # noqa: B009
    return column


def kinds(column: sa.types.TypeEngine[Any], dialect: str) -> frozenset[Kind]:
    """The kinds a column type can hold. SQLite has fewer types: times and ids are text, booleans are numbers."""
    lax = dialect == "sqlite"
    # NullType: an expression in a view, or a type unknown to SQLAlchemy. SQLite accepts any type name, such as UUID or
    # TIMESTAMPTZ, and treats it as NUMERIC: such a column may hold anything.
    if isinstance(column, sa.types.NullType) or (lax and isinstance(column, sa.NUMERIC)):
        return frozenset(("id", "text", "number", "integer", "boolean", "timestamp", "date"))
    column = _base(column)
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
