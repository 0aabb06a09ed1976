"""The six relations we read: every column that is ever selected, what it may hold, and what that means.

A privacy test compares this table with a real schema in both directions: a column not listed here is never read. The
table in docs/your-database.md is made of it.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from generator.api import contract
from generator.markets.row_validation import LENGTHS

Kind: TypeAlias = Literal["id", "text", "number", "integer", "boolean", "timestamp", "date"]


class RelationColumn(NamedTuple):
    """A column: the `kinds` of value it may hold, what it `means` and in which unit, and the `values` it may have.

    `null` says what NULL means; None where it is refused, so that the row is quarantined. `example` is a value that is
    published as it stands.
    """

    kinds: tuple[Kind, ...]
    means: str
    values: str
    example: str | float
    null: str | None = None


def _one_of(*values: str) -> str:
    """`a`, `b` or `c`."""
    *others, last = (f"`{value}`" for value in values)
    return f"{', '.join(others)} or {last}"


def _text(relation: str, column: str) -> str:
    return f"at most {LENGTHS[relation][column]:,} characters"


_PROBABILITY: Final = "0 to 1"
_PRICE: Final = f"{contract.PRICE_MIN} to {contract.PRICE_MAX}"
_AMOUNT: Final = "0 or more"
_TIME: Final = "years 1 to 9999"
_UUID: Final = "a UUID, in upper or lower case"
_PUBLIC: Final = "true: public; false: never read; else a bad row"
_IS_HIDDEN: Final = "hidden"
_OWNER: Final = "the market's `id`, spelled alike"
_NO_OWNER: Final = "belongs to no market"
_EXTENDED: Final = "; extended variant only"
_ID: Final = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
_MEMBER: Final = "; NULL leaves out its market, too"


def _owner() -> RelationColumn:
    return RelationColumn(("id",), "whose row this is", _OWNER, _ID, _NO_OWNER)


_MARKETS: Final[dict[str, RelationColumn]] = {
    "id": RelationColumn(("id",), "the market's address in the API", f"{_UUID}; no two alike", _ID),
    "slug": RelationColumn(
        ("text",),
        "another address" + _EXTENDED,
        "1 to 255 ASCII letters, digits, `-` and `_`; no two alike in any case",
        "rain-in-june",
        "none",
    ),
    "question": RelationColumn(("text",), "what is asked", _text("markets", "question"), "Will it rain in June?"),
    "description": RelationColumn(
        ("text",),
        "the rules by which it is resolved",
        _text("markets", "description"),
        "Yes if the station measures 1 mm.",
        "none",
    ),
    "status": RelationColumn(
        ("text",),
        "`open`: bets are taken, or paused; `closed`: no more bets, no outcome yet; `resolved`: settled; `cancelled`: "
        "called off",
        _one_of(*contract.MARKET_STATUSES),
        "open",
    ),
    "approval": RelationColumn(
        ("text",),
        "what your moderators said",
        "`approved`; any other text, such as `pending` or `rejected`, is hidden",
        "approved",
        _IS_HIDDEN,
    ),
    "is_listed": RelationColumn(
        ("boolean",), "may everybody see it", "true (1 in SQLite); false (0) is hidden; else a bad row", 1, _IS_HIDDEN
    ),
    "prob": RelationColumn(
        ("number",),
        "the probability of YES now, or as it was last; before any trade, where it begins",
        _PROBABILITY,
        0.62,
    ),
    "volume": RelationColumn(
        ("number",),
        "money traded so far, in your currency: the sum of the fills' amounts, or however your site counts it",
        _AMOUNT,
        1840.5,
    ),
    "pool_yes": RelationColumn(("number",), "YES shares in the market maker's pool; 0 without one", _AMOUNT, 380),
    "pool_no": RelationColumn(("number",), "NO shares in the market maker's pool; 0 without one", _AMOUNT, 620),
    "close_time": RelationColumn(("timestamp",), "when betting ends or ended", _TIME, "2026-06-30 23:59:59"),
    "resolution": RelationColumn(
        ("text",),
        "the outcome; `CANCEL`: neither, all stakes go back",
        _one_of(*contract.RESOLUTIONS),
        "CANCEL",
        "none yet, or none was recorded",
    ),
    "created_at": RelationColumn(("timestamp",), "when the market was opened", _TIME, "2026-01-01 09:00:00"),
    "resolved_at": RelationColumn(
        ("timestamp",), "when it was resolved or cancelled", _TIME, "2026-01-20 18:30:00", "not yet, or not recorded"
    ),
    "last_activity_at": RelationColumn(
        ("timestamp",),
        "when something last happened: a trade, or the resolution; until then, `created_at`",
        _TIME,
        "2026-01-15 08:00:00",
    ),
    "trader_count": RelationColumn(("integer",), "different people who traded", _AMOUNT, 37),
    "trading_pause_reason": RelationColumn(
        ("text",),
        "why an open market takes no bets now",
        _text("markets", "trading_pause_reason"),
        "Under review",
        "not paused; nor with a blank text",
    ),
    "creation_source": RelationColumn(
        ("text",), "where it was made" + _EXTENDED, _text("markets", "creation_source"), "web", "not told"
    ),
    "sponsor": RelationColumn(
        ("text",), "who pays for it" + _EXTENDED, _text("markets", "sponsor"), "Harbour Gazette", "nobody"
    ),
}
_CATEGORIES: Final[dict[str, RelationColumn]] = {
    "market_id": _owner(),
    "category": RelationColumn(
        ("text",),
        "the name of a category" + _EXTENDED,
        f"1 to {contract.CATEGORY_LENGTH} characters, not blank; at most {contract.CATEGORIES_MAX} a market",
        "Weather",
    ),
    "position": RelationColumn(("integer",), "its rank: the lowest is the primary category", "any", 0),
}
_FX_MEMBERS: Final[dict[str, RelationColumn]] = {
    "market_id": _owner(),
    "title": RelationColumn(("text",), "the family's name", _text("fx_members", "title"), "EUR/USD weekly"),
    "instrument": RelationColumn(("text",), "the pair of currencies", _text("fx_members", "instrument"), "EURUSD"),
    "source": RelationColumn(
        ("text",), "where its price is read", _text("fx_members", "source"), "ECB reference rates"
    ),
    "week_start": RelationColumn(("date",), "first day of the week in question", _TIME, "2026-01-26"),
    "week_end": RelationColumn(("date",), "last day, included", _TIME, "2026-01-30"),
    "threshold_value": RelationColumn(("number",), "the price that decides, in the pair's unit", "any", 1.08),
    "direction": RelationColumn(
        ("text",),
        "what YES says: `gte`, at or above the threshold; `lte`, at or below",
        _one_of("gte", "lte"),
        "gte",
    ),
    "is_public": RelationColumn(("boolean",), "may everybody see the family", _PUBLIC, 1, "never read"),
}
_ORDERS: Final[dict[str, RelationColumn]] = {
    "market_id": _owner(),
    "side": RelationColumn(
        ("text",),
        "`bid`: somebody buys YES at this price, or sells NO; `ask`: sells YES, or buys NO",
        _one_of("bid", "ask"),
        "bid",
    ),
    "price": RelationColumn(("number",), "of one YES share that pays 1", _PRICE, 0.4),
    "amount": RelationColumn(("number",), "what is still open, in your currency or in shares: all alike", _AMOUNT, 5),
    "is_public": RelationColumn(("boolean",), "may everybody see the order", _PUBLIC, 1, "never read"),
}
_FILLS: Final[dict[str, RelationColumn]] = {
    "id": RelationColumn(("id",), "made for publication, never the bet's own", f"{_UUID}; no two alike", _ID),
    "market_id": _owner(),
    "amount": RelationColumn(
        ("number",),
        "money that changed hands, in your currency, a sale's, too: `shares` times `price`, or what the taker paid",
        _AMOUNT,
        10,
    ),
    "shares": RelationColumn(("number",), "shares that changed hands; a sale's, too", _AMOUNT, 20),
    "price": RelationColumn(
        ("number",),
        "of one YES share that pays 1 (NO bought at 0.3: 0.7), as nothing says the side",
        f"{_PRICE}; others are published as null",
        0.5,
        "not known",
    ),
    "created_at": RelationColumn(("timestamp",), "when they did", _TIME, "2026-01-15 08:00:00"),
}
_PROBABILITIES: Final[dict[str, RelationColumn]] = {
    "market_id": _owner(),
    "recorded_at": RelationColumn(("timestamp",), "from when on", _TIME, "2026-01-15 08:00:00"),
    "prob": RelationColumn(("number",), "the probability of YES was this", _PROBABILITY, 0.55),
}
_OPTIONAL: Final[dict[str, RelationColumn]] = {
    "detail_version": RelationColumn(
        ("text", "number", "timestamp", "id"),
        "changes with the market's orders, fills and points",
        "any that the market never had before",
        "9f3c41d0",
        "unknown: read them",
    ),
    "market_version": RelationColumn(
        ("text", "number", "timestamp", "id"),
        "changes with the market's row, its categories and its FX membership; of no use without `detail_version`",
        "any that the market never had before",
        "0d6b7a51",
        "unknown: read them",
    ),
    "key": RelationColumn(
        ("text", "integer", "id"),
        "its address on your site, for `market_url`",
        f"at most {LENGTHS['markets']['key']} characters; no two alike",
        "4711",
        "no link",
    ),
}
#: Every column that a relation must have, by relation.
COLUMNS: Final[dict[str, dict[str, RelationColumn]]] = {
    "markets": _MARKETS,
    "market_categories": _CATEGORIES,
    "fx_members": _FX_MEMBERS,
    "orders": _ORDERS,
    "fills": _FILLS,
    "probabilities": _PROBABILITIES,
}
#: Those that it may lack.
OPTIONAL_COLUMNS: Final[dict[str, dict[str, RelationColumn]]] = {"markets": _OPTIONAL}
#: The kind of value of each column.
RELATIONS: Final[dict[str, dict[str, Kind]]] = {
    relation: {name: column.kinds[0] for name, column in columns.items()} for relation, columns in COLUMNS.items()
}
#: Columns that a relation may lack, each with the kinds of value it may hold.
OPTIONAL: Final[dict[str, dict[str, tuple[Kind, ...]]]] = {
    relation: {name: column.kinds for name, column in columns.items()} for relation, columns in OPTIONAL_COLUMNS.items()
}
