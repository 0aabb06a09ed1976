"""Fills: the newest ones that a market's detail shows, and how many there were in a window. Pure.

They arrive as streams in any order; what is kept of them is bounded.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError

from generator.markets import batch_validation, row_validation
from generator.markets.batch_validation import GREATEST, UnusualError
from generator.markets.quarantine import Quarantine

#: A market's id, then id, amount, shares, price and time of the fill, as the database has them.
Row: TypeAlias = Sequence[Any]
Reject: TypeAlias = Callable[[Row, ValidationError], None]


class Fill(NamedTuple):
    """A fill with the values of the wire; PublicRecentFill is what describes it."""

    timestamp: str
    id: str
    amount: float
    shares: float
    price: float | None

    def wire(self) -> dict[str, Any]:
        """The resource, as JSON values."""
        return {
            "id": self.id,
            "amount": self.amount,
            "shares": self.shares,
            "price": self.price,
            "timestamp": self.timestamp,
        }


def _read(batch: Sequence[Row], reject: Reject) -> list[Fill]:
    """The fills of some rows; those that break the contract are rejected."""
    _, ids, amounts, shares, prices, times = zip(*batch, strict=True)
    try:
        return list(
            map(
                Fill,
                batch_validation.timestamps(times),
                batch_validation.uuids(ids),
                batch_validation.numbers(amounts, 0, GREATEST),
                batch_validation.numbers(shares, 0, GREATEST),
                batch_validation.prices(prices),
            )
        )
    except UnusualError:
        return _read_one_by_one(batch, reject)


def _read_one_by_one(batch: Sequence[Row], reject: Reject) -> list[Fill]:
    found = []
    for row in batch:
        try:
            fill = row_validation.fill(row)
        except ValidationError as error:
            reject(row, error)
        else:
            found.append(Fill(fill.timestamp, fill.id, fill.amount, fill.shares, fill.price))
    return found


def recent(fills: Iterable[Row], limit: int, quarantine: Quarantine) -> list[Fill]:
    """The newest `limit` fills, newest first; equal times end with the id ascending."""
    if limit == 0:
        return []
    kept, oldest = list[Fill](), ""

    def reject(row: Row, error: ValidationError) -> None:
        quarantine.reject("fills", row[1], row_validation.reason(error))

    for batch in batch_validation.batches(fills):
        kept += (fill for fill in _read(batch, reject) if fill.timestamp >= oldest)
        if len(kept) > limit:
            kept = _newest(kept, quarantine)[:limit]
            oldest = kept[-1].timestamp if len(kept) == limit else ""
    return _newest(kept, quarantine)


def _newest(fills: list[Fill], quarantine: Quarantine) -> list[Fill]:
    """All of them in order, each id once."""
    fills.sort(key=attrgetter("id"))
    fills.sort(key=attrgetter("timestamp"), reverse=True)  # stable
    unique: dict[str, Fill] = {}
    for fill in fills:
        if unique.setdefault(fill.id, fill) is not fill:
            quarantine.reject("fills", fill.id, "id: another fill has the same")
    return list(unique.values())


def count_window(fills: Iterable[Row], start: str, end: str) -> int:
    """How many different fills, of those that keep the contract, lie in (start, end]; both are wire timestamps."""

    def reported_with_the_detail(row: Row, error: ValidationError) -> None:
        """Nothing: when the market's detail is read, the same row is rejected."""

    return len(
        {
            fill.id
            for batch in batch_validation.batches(fills)
            for fill in _read(batch, reported_with_the_detail)
            if start < fill.timestamp <= end
        }
    )
