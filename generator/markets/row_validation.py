"""Validates database rows and converts them to wire values, row by row. `batch_validation` is its fast path.

Every function takes a value as the driver delivers it and raises ValueError with an actionable reason, whose type
`faults` knows. Bounds and enums come from `contract`; this module adds only what databases do differently. It knows no
SQL. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, isfinite, nextafter
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from generator.api import contract, forms, links, slugs

#: A probability or a price this far out of bounds is a rounding error, not a bad row.
TOLERANCE: Final = 1e-9
#: The largest finite float.
MAX_FLOAT: Final = nextafter(inf, 0)
#: Decimal places of the prices of the order book: finer differences are rounding errors, not levels of their own.
PRICE_DECIMALS: Final = 6

# Stricter than `fromisoformat`, which accepts a comma in the fraction, a trailing NUL and, since 3.13, hour 24.
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[ Tt](?!24)\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d(?::?\d\d){0,2})?", re.ASCII
)
_MICROSECONDS: Final = len("2026-01-31 12:00:00.000000")


def timestamp(value: Any) -> str:
    """Convert a time to RFC 3339 UTC, truncated to milliseconds; without an offset it is UTC.

    Accepts `2026-01-31 12:00:00.123456`, PostgreSQL's `2026-01-31 12:00:00+00` and any RFC 3339 form.
    """
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise PydanticCustomError("not_time", "not a time such as 2026-01-31T12:00:00Z")
    try:
        moment = datetime.fromisoformat(value if value[-1] != "z" else value.upper())
        if moment.tzinfo is None:
            if len(value) == _MICROSECONDS:  # by far the most common form: avoid formatting
                return f"{value[:10]}T{value[11:23]}Z"
        else:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise PydanticCustomError("unknown_time", "not a time between the years 0001 and 9999") from None
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def day(value: Any) -> str:
    """Validate a date such as `2026-01-31`."""
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise PydanticCustomError("not_date", "not a date such as 2026-01-31") from None


def number(value: Any) -> float:
    """Convert a number to a float; minus zero becomes zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise PydanticCustomError("not_number", "not a number")
    try:
        return float(value) + 0.0
    except OverflowError:
        raise PydanticCustomError("too_large", "too large a number") from None


def integer(value: Any) -> int:
    """Convert a whole number to an int, no greater than any float: JSON's readers may have no others."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise PydanticCustomError("not_whole_number", "not a whole number")
    try:
        whole = int(value)
    except (ValueError, OverflowError):  # NaN and infinity
        raise PydanticCustomError("not_whole_number", "not a whole number") from None
    if whole != value:
        raise PydanticCustomError("not_whole_number", "not a whole number")
    if abs(whole) > MAX_FLOAT:
        raise PydanticCustomError("too_large", "too large a number")
    return whole


def clamped(value: float, least: float, greatest: float) -> float:
    """The nearest number within bounds, if it is within TOLERANCE; else the value."""
    if least - TOLERANCE <= value < least:
        return least
    return greatest if greatest < value <= greatest + TOLERANCE else value


def probability(value: Any) -> float:
    """Convert a probability to a float; clamp it if it is within TOLERANCE of its bound."""
    return clamped(number(value), 0.0, 1.0)


def price(value: Any) -> float:
    """Convert a price to a float; clamp it if it is within TOLERANCE of its bound."""
    return clamped(number(value), contract.PRICE_MIN, contract.PRICE_MAX)


def fill_price(value: Any) -> float | None:
    """Convert a fill's price like `price`; None outside the contract's range, as the contract allows."""
    if value is None:
        return None
    paid = price(value)
    # NaN and infinity are left for the contract to reject.
    return paid if contract.PRICE_MIN <= paid <= contract.PRICE_MAX or not isfinite(paid) else None


def level_price(price: float) -> float:
    """Round a valid price of an order, so that rounding errors make no levels of their own."""
    return round(price, PRICE_DECIMALS)


def text(value: Any) -> str:
    """Validate that a text can be encoded as UTF-8."""
    if not isinstance(value, str):
        raise PydanticCustomError("not_text", "not a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError(
            "not_unicode", "not valid Unicode (a lone surrogate, or bytes that are no letters)"
        ) from None
    return value


def is_publishable(column: str, value: str) -> bool:
    """Whether the contract takes this `text` in a column of `markets`."""
    return len(value) <= LENGTHS["markets"][column] and forms.is_plain(value)


def pause_reason(value: Any) -> str | None:
    """Validate why trading is paused; a blank reason is none."""
    reason = None if value is None else text(value)
    return reason if reason and reason.strip() else None


def optional(convert: Any) -> BeforeValidator:
    """Convert all values but NULL."""
    return BeforeValidator(lambda value: None if value is None else convert(value))


_Time = Annotated[forms.Timestamp, BeforeValidator(timestamp)]
_Day = Annotated[forms.Day, BeforeValidator(day)]
_Uuid = Annotated[forms.Uuid, BeforeValidator(forms.uuid)]
_Probability = Annotated[forms.Probability, BeforeValidator(probability)]
_Amount = Annotated[forms.NonNegative, BeforeValidator(number)]
_Text = Annotated[contract.Text, BeforeValidator(text)]


class FxRow(contract.FxFamilyMember):
    """Validates a row of `fx_members`."""

    title: _Text
    instrument: _Text
    source: _Text
    week_start: _Day
    week_end: _Day
    threshold_value: Annotated[float, BeforeValidator(number)]


#: The columns of `markets` that `market` needs.
MARKET_COLUMNS: Final = (
    "id",
    "question",
    "description",
    "status",
    "prob",
    "volume",
    "pool_yes",
    "pool_no",
    "close_time",
    "resolution",
    "created_at",
    "resolved_at",
    "last_activity_at",
    "trader_count",
    "trading_pause_reason",
)
#: How many characters a text may have, by relation and column.
LENGTHS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "markets": {
            "slug": slugs.REFERENCE_LENGTH,
            "key": links.LONGEST_KEY,
            "question": contract.QUESTION_LENGTH,
            "description": contract.DESCRIPTION_LENGTH,
            "trading_pause_reason": contract.TEXT_LENGTH,
            "creation_source": contract.TEXT_LENGTH,
            "sponsor": contract.TEXT_LENGTH,
        },
        "market_categories": {"category": contract.CATEGORY_LENGTH},
        "fx_members": dict.fromkeys(("title", "instrument", "source"), contract.TEXT_LENGTH),
        "questions": {
            "slug": slugs.REFERENCE_LENGTH,
            "key": links.LONGEST_KEY,
            "title": contract.TITLE_LENGTH,
            "description": contract.DESCRIPTION_LENGTH,
        },
        "question_members": {"label": contract.LABEL_LENGTH},
    }
)
#: The columns that say how and when a market was settled.
SETTLEMENT: Final = ("resolution", "resolved_at")
#: The columns it needs in addition in the extended variant. `slugs` handles slugs, which must be unique.
EXTENDED_COLUMNS: Final = ("creation_source", "sponsor")


class MarketRow(contract.PublicMarketDetailMarket):
    """Validates a row of `markets`."""

    id: _Uuid
    question: Annotated[contract.QuestionText, BeforeValidator(text)]
    prob: _Probability
    volume: _Amount
    close_time: _Time
    created_at: _Time
    resolved_at: Annotated[forms.Timestamp | None, optional(timestamp)]
    last_activity_at: _Time
    trader_count: Annotated[forms.Count, BeforeValidator(integer)]
    description: Annotated[contract.Description | None, optional(text)]
    pool_yes: _Amount
    pool_no: _Amount
    trading_pause_reason: Annotated[contract.Text | None, BeforeValidator(pause_reason)]
    fx_family_member: FxRow | None
    creation_source: Annotated[contract.ExtraText, optional(text)] = None
    sponsor: Annotated[contract.ExtraText, optional(text)] = None


class FillRow(contract.PublicRecentFill):
    """Validates a row of `fills`."""

    id: _Uuid
    amount: _Amount
    shares: _Amount
    price: Annotated[contract.Price | None, BeforeValidator(fill_price)]
    timestamp: _Time


class PointRow(contract.ProbabilityPoint):
    """Validates a row of `probabilities`."""

    timestamp: _Time
    prob: _Probability


class LevelRow(contract.OrderBookLevel):
    """Validates price and amount of an order."""

    price: Annotated[contract.Price, BeforeValidator(price), AfterValidator(level_price)]
    amount: _Amount


def accepts_bets(row: Mapping[str, Any], as_of: str) -> bool:
    """Whether the market is open, not paused and closes after `as_of`; False if a value is invalid."""
    try:
        is_paused = pause_reason(row["trading_pause_reason"]) is not None
        return row["status"] == "open" and not is_paused and timestamp(row["close_time"]) > as_of
    except ValueError:
        return False


def has_early_outcome(row: Mapping[str, Any]) -> bool:
    """Whether an open or closed market has an outcome or a settlement time already, which must not be published."""
    is_settled = row["status"] not in contract.UNSETTLED
    return not is_settled and any(row[column] is not None for column in SETTLEMENT)


class ExtendedFields(NamedTuple):
    """Fields of the extended variant that do not come from the market's row: its usable slug, its categories."""

    slug: str | None
    categories: list[str]

    def wire(self) -> dict[str, Any]:
        """The wire fields; the first category is the primary one."""
        primary = self.categories[0] if self.categories else None
        return {"slug": self.slug, "category": primary, "categories": self.categories}


#: The wire fields of `ExtendedFields`.
EXTENDED_WIRE: Final = tuple(ExtendedFields(None, []).wire())


def market(
    row: Mapping[str, Any],
    *,
    fx: contract.FxFamilyMember | Mapping[str, Any] | None,
    fills24h: int,
    as_of: str,
    extended: ExtendedFields | None = None,
) -> MarketRow:
    """Validate a row of `markets`; raise ValidationError if it breaks the contract.

    An outcome before its time is left out before anything looks at it.
    """
    derived = {"fx_family_member": fx, "fills24h": fills24h, "accepting_bets": accepts_bets(row, as_of)}
    if has_early_outcome(row):
        derived |= dict.fromkeys(SETTLEMENT)
    return MarketRow.model_validate({**row, **derived, **(extended.wire() if extended else {})})


def fill(row: Sequence[Any]) -> FillRow:
    """Validate a fill (market id, id, amount, shares, price, time); raise ValidationError if it is bad."""
    _, fill_id, amount, shares, paid, created_at = row
    values = {"id": fill_id, "amount": amount, "shares": shares, "price": paid, "timestamp": created_at}
    return FillRow.model_validate(values)
