"""What the tables of a dump hold: each column with its type, unit and meaning, and the keys between tables. Pure.

Whoever describes a column takes it from here: Parquet's schemas and their metadata, `dataset.json`, `attach.sql`, and
docs/dumps.md, which a test compares. What a column means, its field in the model of a row says or, where OpenAPI
describes the property, too, `openapi.yaml`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, Field
from pydantic.alias_generators import to_camel

from generator.api import openapi
from generator.api.contract import (
    EXTENDED_PROPERTIES,
    Closed,
    ProbabilityPoint,
    PublicMarketDetailMarket,
    PublicRecentFill,
    Variant,
)
from generator.api.downloads import CANDLES, FIELDS, PARQUET, DefinitionsFile, DumpFile, DumpHead, tables
from generator.api.forms import Count, NonNegative, Probability, Timestamp
from generator.api.questions import DefinitionRow, QuestionDefinition

#: As Parquet has them: times are in milliseconds, in UTC.
ColumnType = Literal["string", "double", "int64", "boolean", "timestamp", "list<string>"]

#: The tables of markets and of definitions of questions, which have no periods; others are named as `name` says.
MARKETS: Final = "markets"
QUESTIONS: Final = "questions"
WITHOUT_PERIODS: Final = (MARKETS, QUESTIONS)
#: The column with the market that a row of a table belongs to.
OWNER: Final = "marketId"
#: The column with the address of a market's page.
URL: Final = "url"
#: The columns of candles that are made of fills.
OF_FILLS: Final = ("volume", "trades")


class Candle(Closed):
    """What happened to a market's price in a period; a row of `candlesDay` or `candlesHour`.

    All prices are null as long as none is known.
    """

    start: Timestamp = Field(description="The start of the day or hour, in UTC.")
    open: Probability | None = Field(
        description="The last price before `start`; if there was none, the first price in the period."
    )
    high: Probability | None = Field(description="The highest of `open` and the prices in the period.")
    low: Probability | None = Field(description="The lowest of `open` and the prices in the period.")
    close: Probability | None = Field(description="The last price in the period; without one, `open`.")
    volume: NonNegative = Field(
        description="The sum of `amount` of the fills in the period, whatever their side; only where `fills` are "
        "published."
    )
    trades: Count = Field(description="How many fills there are in the period; only where `fills` are published.")


class Close(Closed):
    """A market's price when it closed, a day and a week before; a row of `closes`."""

    closed_at: Timestamp = Field(
        description="When the market closed: its `closeTime`, or `resolvedAt` if that is earlier."
    )
    prob: Probability = Field(description="The last price at or before `closedAt`.")
    prob_day_before: Probability | None = Field(
        description="The last price at or before 24 hours before `closedAt`; null if there was none."
    )
    prob_week_before: Probability | None = Field(
        description="The last price at or before seven times 24 hours before `closedAt`; null if there was none."
    )


class TableColumn(NamedTuple):
    """A column: `unit` is None where values have none, `meaning` is a sentence."""

    name: str
    type: ColumnType
    is_nullable: bool
    unit: str | None
    meaning: str

    def told(self) -> str:
        """What a value means, and its unit, if it has one."""
        return f"{self.meaning} Unit: {self.unit}." if self.unit else self.meaning


class ForeignKey(NamedTuple):
    """A column whose values are those of a column of another table."""

    column: str
    table: str
    other: str


class DumpTable(NamedTuple):
    """A table of the dump, named as in its head: a sentence, its columns, those that identify a row, and keys."""

    name: str
    sentence: str
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    references: tuple[ForeignKey, ...] = ()


class _Rows(NamedTuple):
    """What is said of a table as a whole: the model of its rows, without their market, the sentence, the key."""

    model: type[BaseModel]
    sentence: str
    key: tuple[str, ...]


_OF_DAY: Final = "Prices of each market in each day (UTC) that is over, where one changed."
_OF_HOUR: Final = "Prices of each market in each hour (UTC) that is over, of about three months, where one changed."
_ROWS: Final[Mapping[str, _Rows]] = {
    MARKETS: _Rows(PublicMarketDetailMarket, "Every listed market, ascending by id.", ("id",)),
    QUESTIONS: _Rows(DefinitionRow, "Every market of a question, and what that question says.", (OWNER,)),
    "history": _Rows(ProbabilityPoint, "Every point of the histories of probabilities.", ()),
    "fills": _Rows(PublicRecentFill, "Every trade, without who made it.", (OWNER, "id")),
    "candlesDay": _Rows(Candle, _OF_DAY, (OWNER, "start")),
    "candlesHour": _Rows(Candle, _OF_HOUR, (OWNER, "start")),
    "closes": _Rows(Close, "The price of each market that has closed, when it did and before.", (OWNER,)),
}
#: All tables that a dump may have, as its head names them.
NAMES: Final = (*_ROWS,)

_PROBABILITY: Final = "probability from 0 to 1"
_MONEY: Final = "the site's money"
#: The units of columns with numbers, in whichever table.
_UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("prob", "price", "payout", "open", "high", "low", "close", "probDayBefore", "probWeekBefore"), _PROBABILITY
    ),
    **dict.fromkeys(("volume", "amount"), _MONEY),
    **dict.fromkeys(("shares", "poolYes", "poolNo"), "shares"),
    **dict.fromkeys(("fills24h", "trades"), "trades"),
    "traderCount": "people",
}


def name(table: str) -> str:
    """The name of a table with periods, such as `candles/day`, in the dump's head."""
    return to_camel(FIELDS[table])


def model(table: str) -> type[BaseModel]:
    """The model of a table's rows, without the market that they belong to."""
    return _ROWS[table].model


def columns(
    table: str, variant: Variant = "extended", *, linked: bool = True, fills: bool = True
) -> tuple[TableColumn, ...]:
    """The columns of a table in Parquet: where pages are `linked`, markets and questions end with their addresses.

    Without `fills`, candles lack what is made of these.
    """
    has_own_market = table in WITHOUT_PERIODS
    left_out = {URL, *(EXTENDED_PROPERTIES if has_own_market and variant == "core" else ())}
    if table in (name(candles) for candles in CANDLES) and not fills:
        left_out.update(OF_FILLS)
    properties: Mapping[str, Any] = model(table).model_json_schema()["properties"]
    found = (_column(model(table), one, spec) for one, spec in properties.items() if one not in left_out)
    last = (_url("market" if table == MARKETS else "question"),) if has_own_market and linked else ()
    return (*(() if has_own_market else (_owner(),)), *filter(None, found), *last)


def table(name: str, variant: Variant = "extended", *, linked: bool = True, fills: bool = True) -> DumpTable:
    """A table with the columns that it has on such a site."""
    rows = _ROWS[name]
    owner = (ForeignKey(OWNER, MARKETS, "id"),) if name != MARKETS else ()
    has_trades = rows.model is Candle and fills
    sentence = f"{rows.sentence.removesuffix('.')}, or a trade was made." if has_trades else rows.sentence
    return DumpTable(name, sentence, columns(name, variant, linked=linked, fills=fills), rows.key, owner)


def of_head(
    head: DumpHead, variant: Variant, *, linked: bool, questions_linked: bool
) -> Iterator[tuple[DumpTable, Sequence[DumpFile | DefinitionsFile]]]:
    """Each table of a dump with its files: those of markets and questions are Parquet, if there is one.

    `linked` and `questions_linked`: the site has pages of markets, or of questions.
    """
    yield table(MARKETS, variant, linked=linked and head.parquet is not None), [head.parquet or head.ndjson]
    if head.questions:
        found = head.questions.files[-1:]
        yield table(QUESTIONS, variant, linked=questions_linked and found[0].format == PARQUET), found
    for kind in tables(fills=head.has_fills) if head.history_as_of else ():
        yield table(name(kind), variant, fills=head.has_fills), head.table(kind)


def definitions(variant: Variant) -> DumpTable:
    """What the lines of the file of definitions say besides their markets, where there is no table of these."""
    own = {field.alias for field in QuestionDefinition.model_fields.values()}
    first, *others = columns(QUESTIONS, variant, linked=False)
    found = (first._replace(name="id"), *(one for one in others if one.name in own))
    return DumpTable(QUESTIONS, "Every question, without its `members`.", found, ("id",))


def _owner() -> TableColumn:
    meaning = "The market that the row belongs to: its `id` in `markets`."
    return TableColumn(OWNER, "string", is_nullable=False, unit=None, meaning=meaning)


def _url(of: str) -> TableColumn:
    meaning = f"The address of the {of}'s page on the site; null if it has none."
    return TableColumn(URL, "string", is_nullable=True, unit=None, meaning=meaning)


def _column(rows: type[BaseModel], name: str, spec: Mapping[str, Any]) -> TableColumn | None:
    """The column of a property; None for objects, which no table has."""
    kinds = [kind for kind in spec.get("anyOf", [spec]) if kind.get("type") != "null"]
    if "type" not in kinds[0]:
        return None
    is_nullable = len(kinds) < len(spec.get("anyOf", [spec]))
    # A property that JSON leaves out is null in a table.
    meaning = (spec.get("description") or openapi.meaning(rows.__name__, name)).replace("; absent ", "; null ")
    return TableColumn(name, _type(kinds[0]), is_nullable, _UNITS.get(name), meaning)


def _type(spec: Mapping[str, Any]) -> ColumnType:
    if spec.get("format") == "date-time":
        return "timestamp"
    by_name: Mapping[str, ColumnType] = {
        "string": "string", "number": "double", "integer": "int64", "boolean": "boolean", "array": "list<string>",
    }  # fmt: skip
    return by_name[spec["type"]]
