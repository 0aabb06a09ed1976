"""Database values → wire values, one row at a time. The only row-to-wire conversion.

Every function takes the value as the driver gave it and raises ValueError with a reason a person can act on. Bounds
and enums come from `contract`; this module adds only what databases do differently. It knows no SQL. Pure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BeforeValidator, ValidationError

from generator.api import contract, ids
from generator.markets.quarantine import Quarantine, shown

#: Sums of floats end a hair beyond their bound; that much is a rounding error and no bad row.
TOLERANCE: Final = 1e-9

# Stricter than `fromisoformat`, which takes a comma before the fraction, a NUL at the end and, since 3.13, hour 24.
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[ Tt](?!24)\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d(?::?\d\d){0,2})?", re.ASCII
)
_MICROSECONDS: Final = len("2026-01-31 12:00:00.000000")


def timestamp(value: Any) -> str:
    """Bring a time to RFC 3339 UTC, cut to milliseconds; one without an offset is UTC.

    `2026-01-31 12:00:00.123456`, PostgreSQL's `2026-01-31 12:00:00+00` and any RFC 3339 form are understood.
    """
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError("not a time such as 2026-01-31T12:00:00Z")
    try:
        moment = datetime.fromisoformat(value if value[-1] != "z" else value.upper())
        if moment.tzinfo is None:
            if len(value) == _MICROSECONDS:  # by far the most common form, and history has millions of them
                return f"{value[:10]}T{value[11:23]}Z"
        else:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ValueError("not a time between the years 0001 and 9999") from None
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def day(value: Any) -> str:
    """Check a date, `2026-01-31`."""
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise ValueError("not a date such as 2026-01-31") from None


def number(value: Any) -> float:
    """Bring any finite number to a float; minus zero becomes zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("not a number")  # noqa: TRY004 - a reason for the report, not a programming error
    try:
        return float(value) + 0.0
    except OverflowError:
        raise ValueError("too large a number") from None


def integer(value: Any) -> int:
    """Bring a whole number, however the database typed it, to an int."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("not a whole number")  # noqa: TRY004 - a reason for the report, not a programming error
    try:
        whole = int(value)
    except (ValueError, OverflowError):  # NaN and infinity
        raise ValueError("not a whole number") from None
    if whole != value:
        raise ValueError("not a whole number")
    return whole


def probability(value: Any) -> float:
    """Bring a probability to a float; one within TOLERANCE of its bound is set to the bound."""
    prob = number(value)
    if -TOLERANCE <= prob < 0 or 1 < prob <= 1 + TOLERANCE:
        return round(prob) + 0.0
    return prob


def price(value: Any) -> float | None:
    """Bring a fill's price to a float; one outside the contract's range is withheld, which the contract allows."""
    if value is None:
        return None
    paid = number(value)
    # NaN and infinity go on to the contract, which refuses them.
    return paid if contract.PRICE_MIN <= paid <= contract.PRICE_MAX or not isfinite(paid) else None


def text(value: Any) -> str:
    """Check that a text can be written as UTF-8."""
    if not isinstance(value, str):
        raise ValueError("not a text")  # noqa: TRY004 - a reason for the report, not a programming error
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("not valid Unicode (a lone surrogate, or bytes that are no UTF-8)") from None
    return value


def optional(convert: Any) -> BeforeValidator:
    """Let NULL pass, and `convert` everything else."""
    return BeforeValidator(lambda value: None if value is None else convert(value))


_Time = Annotated[contract.Timestamp, BeforeValidator(timestamp)]
_Day = Annotated[contract.Day, BeforeValidator(day)]
_Uuid = Annotated[contract.Uuid, BeforeValidator(ids.uuid)]
_Probability = Annotated[contract.Probability, BeforeValidator(probability)]
_Amount = Annotated[contract.NonNegative, BeforeValidator(number)]
_Text = Annotated[str, BeforeValidator(text)]
_OptionalText = Annotated[str | None, optional(text)]


class FxRow(contract.FxFamilyMember):
    """A row of `fx_members` on its way to the wire."""

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
#: What it needs on top in the extended variant; a slug is judged beside those of all other markets.
EXTENDED_COLUMNS: Final = ("creation_source", "sponsor")


class MarketRow(contract.PublicMarketDetailMarket):
    """A row of `markets` on its way to the wire."""

    id: _Uuid
    question: _Text
    prob: _Probability
    volume: _Amount
    close_time: _Time
    created_at: _Time
    resolved_at: Annotated[contract.Timestamp | None, optional(timestamp)]
    last_activity_at: _Time
    trader_count: Annotated[contract.Count, BeforeValidator(integer)]
    description: _OptionalText
    pool_yes: _Amount
    pool_no: _Amount
    trading_pause_reason: _OptionalText
    fx_family_member: FxRow | None
    creation_source: Annotated[contract.ExtraText, optional(text)] = None
    sponsor: Annotated[contract.ExtraText, optional(text)] = None


class CategoryRow(contract.Closed):
    """A row of `market_categories` on its way into a market."""

    category: Annotated[contract.CategoryName, BeforeValidator(text)]
    position: Annotated[int, BeforeValidator(integer)]


class FillRow(contract.PublicRecentFill):
    """A row of `fills` on its way to the wire."""

    id: _Uuid
    amount: _Amount
    shares: _Amount
    price: Annotated[contract.Price | None, BeforeValidator(price)]
    timestamp: _Time


class PointRow(contract.ProbabilityPoint):
    """A row of `probabilities` on its way to the wire."""

    timestamp: _Time
    prob: _Probability


class LevelRow(contract.OrderBookLevel):
    """One order's price and amount on their way to a level of the book."""

    price: Annotated[contract.Price, BeforeValidator(number)]
    amount: _Amount


def reason(error: ValidationError) -> str:
    """Say what is wrong with a row: every offending column with its message and value."""
    return "; ".join(
        f"{'.'.join(map(str, mistake['loc']))}: {_sentence(mistake['msg'], mistake['input'])}"
        for mistake in error.errors(include_url=False)
    )


def _sentence(message: str, value: object) -> str:
    if value is None:
        return "must not be NULL"
    plain = message.removeprefix("Value error, ")
    return f"{plain[:1].lower()}{plain[1:]} ({shown(value)})"


def accepts_bets(row: Mapping[str, Any], as_of: str) -> bool:
    """Whether the market is open, closes after `as_of` and is not paused. A bad close time is reported elsewhere."""
    if row["status"] != "open" or row["trading_pause_reason"] is not None:
        return False
    try:
        return timestamp(row["close_time"]) > as_of
    except ValueError:
        return False


class Extras(NamedTuple):
    """What only the extended variant shows, from beside the market's row: a slug that leads to it, its categories."""

    slug: str | None
    categories: list[str]

    @classmethod
    def of(cls, item: contract.PublicMarketListItem) -> "Extras | None":
        """What the item shows; None in the core variant."""
        return None if item.categories is None else cls(item.slug, item.categories)

    def fields(self) -> dict[str, Any]:
        """The fields of the wire; the first category is the primary one."""
        primary = self.categories[0] if self.categories else None
        return {"slug": self.slug, "category": primary, "categories": self.categories}


def market(
    row: Mapping[str, Any],
    *,
    fx: contract.FxFamilyMember | Mapping[str, Any] | None,
    fills24h: int,
    as_of: str,
    extras: Extras | None = None,
) -> MarketRow:
    """Bring a row of `markets` to the wire; raise ValidationError when it breaks the contract."""
    derived = {"fx_family_member": fx, "fills24h": fills24h, "accepting_bets": accepts_bets(row, as_of)}
    return MarketRow.model_validate({**row, **derived, **(extras.fields() if extras else {})})


def categories(found: Iterable[Sequence[Any]], quarantine: Quarantine) -> list[str]:
    """A market's categories in order, from its rows: its id, category, position. Equal positions go by name."""
    kept: dict[str, int] = {}
    for market_id, category, position in found:
        try:
            row = CategoryRow.model_validate({"category": category, "position": position})
        except ValidationError as error:
            quarantine.reject("market_categories", market_id, reason(error))
            continue
        if row.category in kept:
            repeated = f"category: the market has it already ({shown(row.category)})"
            quarantine.reject("market_categories", market_id, repeated)
        kept[row.category] = min(row.position, kept.get(row.category, row.position))
    return sorted(kept, key=lambda name: (kept[name], name))


def fill(row: Sequence[Any]) -> FillRow:
    """Bring a fill to the wire: its market's id, then id, amount, shares, price and time; may raise ValidationError."""
    _, fill_id, amount, shares, paid, created_at = row
    values = {"id": fill_id, "amount": amount, "shares": shares, "price": paid, "timestamp": created_at}
    return FillRow.model_validate(values)
