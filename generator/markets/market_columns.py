"""Makes markets from rows of `markets` column by column, in a quarter of the time that one by one takes. Pure.

Nearly all rows are valid and in the usual form. `of_rows` gives the same result for every row as
`row_validation.market`, which it calls for a few rows if one of them is invalid or in an unusual form.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, TypeAlias

from pydantic import ValidationError

from generator.api import contract
from generator.markets import batch_validation, legibility, market, row_validation
from generator.markets.batch_validation import SlowPathError
from generator.markets.columns import encoded_items
from generator.markets.fills import Window
from generator.markets.market import Fingerprint, Market, SearchWords
from generator.markets.row_validation import MAX_FLOAT, ExtendedFields, FxRow

#: Rows per batch: enough to amortise a call per column, few enough to keep memory low.
BATCH: Final = 250
#: The rows that are validated one by one for one that is bad.
_FEW: Final = 25
_RESOLUTIONS: Final = frozenset((*contract.RESOLUTIONS, None))
_WORDLESS: Final = SearchWords(())

Column: TypeAlias = Sequence[Any]


class Given(NamedTuple):
    """A row of `markets`, and what is shown besides: the row of `fx_members`, fills, fields of the extended variant.

    `version` is the digest of the row's version, if it has one.
    """

    row: Mapping[str, Any]
    fx: Mapping[str, Any] | None
    window: Window
    extended: ExtendedFields | None
    version: str | None = None


class Batch(NamedTuple):
    """Many such rows, by column; the columns of the extended variant may be missing."""

    columns: Mapping[str, Column]
    fx: Sequence[Mapping[str, Any] | None]
    windows: Sequence[Window]
    extended: Sequence[ExtendedFields | None]
    versions: Sequence[str | None]

    def part(self, rows: slice) -> Self:
        """Some of the rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return type(self)(columns, self.fx[rows], self.windows[rows], self.extended[rows], self.versions[rows])

    def column(self, name: str) -> Column:
        """The values of a column; NULL if the database does not have it."""
        return self.columns[name] if name in self.columns else [None] * len(self.fx)

    def rows(self) -> Iterator[Given]:
        """The rows, one by one."""
        rows = (dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True))
        return map(Given, rows, self.fx, self.windows, self.extended, self.versions)


def of_rows(batch: Batch, as_of: str, words: SearchWords = _WORDLESS) -> list[Market | ValidationError]:
    """The market of each row, or what is wrong with it."""
    count = len(batch.fx)
    try:
        return [*_at_once(batch, as_of, words)] if count else []
    except SlowPathError:
        if count > _FEW:
            parts = (batch.part(slice(start, start + _FEW)) for start in range(0, count, _FEW))
            return [market for part in parts for market in of_rows(part, as_of, words)]
        return [_one(given, as_of, words) for given in batch.rows()]


def _one(given: Given, as_of: str, words: SearchWords) -> Market | ValidationError:
    row, fx, window, extended, version = given
    try:
        found = row_validation.market(row, fx=fx, fills24h=window.number, as_of=as_of, extended=extended)
    except ValidationError as error:
        return error
    return Market.of(
        found,
        has_early_outcome=row_validation.has_early_outcome(row),
        words=words.of(found.question, found.description),
        version=version,
        until=window.until,
    )


def _at_once(batch: Batch, as_of: str, words: SearchWords) -> Iterator[Market]:
    """All markets, or SlowPathError."""
    is_early, columns = _without_early_outcomes(batch)
    values = {name: convert(columns[name]) for name, convert in _CONVERT.items()}
    values["fx_family_member"] = [*map(_fx, batch.fx)]
    values["fills24h"] = [window.number for window in batch.windows]
    values["accepting_bets"] = [
        status == "open" and reason is None and close_time > as_of
        for status, reason, close_time in zip(
            values["status"], values["trading_pause_reason"], values["close_time"], strict=True
        )
    ]
    extended = [shown.wire() if shown else {} for shown in batch.extended]
    values |= {name: [fields.get(name) for fields in extended] for name in row_validation.EXTENDED_WIRE}
    bodies = encoded_items(values)
    made = {
        **values,
        "body": bodies,
        # One text for all markets, not one for each.
        "status": [market.ONE[status] for status in values["status"]],
        "resolution": [market.ONE[resolution] for resolution in values["resolution"]],
        "has_visible_question": map(market.is_visible, values["question"]),
        "has_bidi_override": map(
            market.overrides_direction,
            zip(*(values[name] for name in market.TEXTS), strict=True),
            values["fx_family_member"],
            values["categories"],
        ),
        "hides_characters": map(legibility.hides_characters, values["question"]),
        "mixes_scripts": map(legibility.mixes_scripts, values["question"]),
        "fx": values["fx_family_member"],
        "categories": map(market.slugs_of, values["categories"]),
        "has_early_outcome": is_early,
        "words": map(words.of, values["question"], values["description"]),
        "fingerprint": _fingerprints(batch.versions, values, bodies),
        "until": [window.until for window in batch.windows],
    }
    return map(Market._make, zip(*(made[name] for name in Market._fields), strict=False))


def _fingerprints(
    versions: Sequence[str | None], values: Mapping[str, Column], bodies: Sequence[bytes]
) -> Iterator[Fingerprint | None]:
    rest = zip(*(values[name] for name in market.REST), strict=True)
    return (
        None if version is None else market.fingerprint(version, body, shown)
        for version, body, shown in zip(versions, bodies, rest, strict=True)
    )


def _without_early_outcomes(batch: Batch) -> tuple[Sequence[bool], dict[str, Column]]:
    """Which rows have an outcome before its time, and all columns without those outcomes."""
    names = (*row_validation.MARKET_COLUMNS, *row_validation.EXTENDED_COLUMNS)
    columns = {name: batch.column(name) for name in names}
    settlements = zip(*(columns[name] for name in row_validation.SETTLEMENT), strict=True)
    is_early = [
        status in contract.UNSETTLED and any(value is not None for value in settlement)
        for status, settlement in zip(columns["status"], settlements, strict=True)
    ]
    if any(is_early):
        for name in row_validation.SETTLEMENT:
            columns[name] = [None if early else value for early, value in zip(is_early, columns[name], strict=True)]
    return is_early, columns


def _fx(row: Mapping[str, Any] | None) -> FxRow | None:
    try:
        return None if row is None else FxRow.model_validate(row)
    except ValidationError:
        raise SlowPathError from None


def _texts(name: str) -> Callable[[Column], Column]:
    def checked(values: Column) -> Column:
        try:
            deque(map(str.encode, values), maxlen=0)  # one by one: descriptions may be large
        except (TypeError, ValueError):
            raise SlowPathError from None
        if not all(row_validation.is_publishable(name, value) for value in values):
            raise SlowPathError
        return values

    return checked


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
    found = _optional(_texts("trading_pause_reason"))(values)
    return [reason if reason and reason.strip() else None for reason in found]


def _amounts(values: Column) -> Column:
    return batch_validation.numbers(values, 0, MAX_FLOAT)


_CONVERT: Final[Mapping[str, Callable[[Column], Column]]] = {
    "id": batch_validation.uuids,
    "question": _texts("question"),
    "description": _optional(_texts("description")),
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
    "creation_source": _optional(_texts("creation_source")),
    "sponsor": _optional(_texts("sponsor")),
}
