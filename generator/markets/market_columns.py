"""The fast path of `row_validation.market`: validates rows of `markets` column by column. Pure.

Nearly all rows are valid and in the usual form. `of_rows` tells the same of every row as `row_validation.market`: it
asks that for a few rows if one of them is invalid or in an unusual form.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from generator.api import contract, resources
from generator.api.contract import PublicMarketDetailMarket
from generator.markets import batch_validation, row_validation
from generator.markets.batch_validation import SlowPathError
from generator.markets.row_validation import MAX_FLOAT, ExtendedFields, FxRow

#: Rows per batch: enough to amortise a call per column, few enough to keep memory low.
BATCH: Final = 250
#: The rows that are validated one by one for one that is bad.
_FEW: Final = 25
_RESOLUTIONS: Final = frozenset((*contract.RESOLUTIONS, None))
_FIELDS: Final = tuple(PublicMarketDetailMarket.model_fields)

Column: TypeAlias = Sequence[Any]


class Given(NamedTuple):
    """A row of `markets`, and what is shown besides: the row of `fx_members`, fills, fields of the extended variant."""

    row: Mapping[str, Any]
    fx: Mapping[str, Any] | None
    fills24h: int
    extended: ExtendedFields | None


def of_rows(found: Sequence[Given], as_of: str) -> list[PublicMarketDetailMarket | ValidationError]:
    """The market of each row, or what is wrong with it."""
    try:
        return [*_at_once(found, as_of)]
    except SlowPathError:
        if len(found) > _FEW:
            return [market for few in batch_validation.batches(found, _FEW) for market in of_rows(few, as_of)]
        return [_one(given, as_of) for given in found]


def _one(given: Given, as_of: str) -> PublicMarketDetailMarket | ValidationError:
    row, fx, fills24h, extended = given
    try:
        return row_validation.market(row, fx=fx, fills24h=fills24h, as_of=as_of, extended=extended)
    except ValidationError as error:
        return error


def _at_once(found: Sequence[Given], as_of: str) -> list[PublicMarketDetailMarket]:
    """All markets, or SlowPathError."""
    if not found:
        return []
    rows = [given.row for given in found]
    columns: dict[str, Column] = {name: [row[name] for row in rows] for name in row_validation.MARKET_COLUMNS}
    columns |= {name: [row.get(name) for row in rows] for name in row_validation.EXTENDED_COLUMNS}
    _leave_out_early_outcomes(rows, columns)
    values = {name: convert(columns[name]) for name, convert in _CONVERT.items()}
    values["fx_family_member"] = [_fx(given.fx) for given in found]
    values["fills24h"] = [given.fills24h for given in found]
    values["accepting_bets"] = [
        status == "open" and reason is None and close_time > as_of
        for status, reason, close_time in zip(
            values["status"], values["trading_pause_reason"], values["close_time"], strict=True
        )
    ]
    extended = [given.extended.wire() if given.extended else {} for given in found]
    values |= {name: [fields.get(name) for fields in extended] for name in row_validation.EXTENDED_WIRE}
    return [
        resources.of_valid(PublicMarketDetailMarket, dict(zip(_FIELDS, row, strict=True)))
        for row in zip(*(values[name] for name in _FIELDS), strict=True)
    ]


def _leave_out_early_outcomes(rows: Sequence[Mapping[str, Any]], columns: dict[str, Column]) -> None:
    is_early = [row_validation.has_early_outcome(row) for row in rows]
    for name in row_validation.SETTLEMENT:
        columns[name] = [None if early else value for early, value in zip(is_early, columns[name], strict=True)]


def _fx(row: Mapping[str, Any] | None) -> FxRow | None:
    try:
        return None if row is None else FxRow.model_validate(row)
    except ValidationError:
        raise SlowPathError from None


def _texts(values: Column) -> Column:
    try:
        deque(map(str.encode, values), maxlen=0)  # one by one: descriptions may be large
    except (TypeError, ValueError):
        raise SlowPathError from None
    return values


def _counts(values: Column) -> Column:
    try:
        found = [*map(row_validation.integer, values)]
    except ValueError:
        raise SlowPathError from None
    if min(found) < 0:
        raise SlowPathError
    return found


def _optional(convert: Callable[[Column], Column]) -> Callable[[Column], Column]:
    """Convert all values but NULL."""

    def converted(values: Column) -> Column:
        present = convert([value for value in values if value is not None])
        if len(present) == len(values):
            return present
        shown = iter(present)
        return [None if value is None else next(shown) for value in values]

    return converted


def _one_of(choices: frozenset[Any]) -> Callable[[Column], Column]:
    def checked(values: Column) -> Column:
        try:
            if choices.issuperset(values):
                return values
        except TypeError:
            pass
        raise SlowPathError

    return checked


def _reasons(values: Column) -> Column:
    return [reason if reason and reason.strip() else None for reason in _optional(_texts)(values)]


def _amounts(values: Column) -> Column:
    return batch_validation.numbers(values, 0, MAX_FLOAT)


_CONVERT: Final[Mapping[str, Callable[[Column], Column]]] = {
    "id": batch_validation.uuids,
    "question": _texts,
    "description": _optional(_texts),
    "status": _one_of(frozenset(contract.MARKET_STATUSES)),
    "prob": lambda values: batch_validation.numbers(values, 0, 1),
    "volume": _amounts,
    "pool_yes": _amounts,
    "pool_no": _amounts,
    "close_time": batch_validation.timestamps,
    "resolution": _one_of(_RESOLUTIONS),
    "created_at": batch_validation.timestamps,
    "resolved_at": _optional(batch_validation.timestamps),
    "last_activity_at": batch_validation.timestamps,
    "trader_count": _counts,
    "trading_pause_reason": _reasons,
    "creation_source": _optional(_texts),
    "sponsor": _optional(_texts),
}
