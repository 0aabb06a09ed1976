"""Fills: the most recent ones for a market's detail, and their number in a time window. Pure.

They arrive as streams in any order; `recent` keeps a bounded number.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError

from generator.markets import batch_validation, faults, row_validation
from generator.markets.batch_validation import MAX_FLOAT, SlowPathError
from generator.markets.quarantine import Fault, Quarantine

#: A market's id, then id, amount, shares, price and time of the fill, as the driver delivers them.
Row: TypeAlias = Sequence[Any]


class Fill(NamedTuple):
    """A fill in wire values, as described by PublicRecentFill."""

    timestamp: str
    id: str
    amount: float
    shares: float
    price: float | None

    def wire(self) -> dict[str, Any]:
        """The fill as JSON values."""
        return {
            "id": self.id,
            "amount": self.amount,
            "shares": self.shares,
            "price": self.price,
            "timestamp": self.timestamp,
        }


def _read(batch: Sequence[Row], quarantine: Quarantine) -> list[Fill]:
    _, ids, amounts, shares, prices, times = zip(*batch, strict=True)
    try:
        return list(
            map(
                Fill,
                batch_validation.timestamps(times),
                batch_validation.uuids(ids),
                batch_validation.numbers(amounts, 0, MAX_FLOAT),
                batch_validation.numbers(shares, 0, MAX_FLOAT),
                batch_validation.fill_prices(prices),
            )
        )
    except SlowPathError:
        return _read_one_by_one(batch, quarantine)


def _read_one_by_one(batch: Sequence[Row], quarantine: Quarantine) -> list[Fill]:
    found = []
    for row in batch:
        try:
            fill = row_validation.fill(row)
        except ValidationError as error:
            quarantine.reject("fills", row[1], *faults.of(error))
        else:
            found.append(Fill(fill.timestamp, fill.id, fill.amount, fill.shares, fill.price))
    return found


def recent(fills: Iterable[Row], limit: int, quarantine: Quarantine) -> list[Fill]:
    """The newest `limit` fills, newest first; ties are broken by id, ascending."""
    if limit == 0:
        return []
    kept, oldest = list[Fill](), ""
    for batch in batch_validation.batches(fills):
        kept += (fill for fill in _read(batch, quarantine) if fill.timestamp >= oldest)
        if len(kept) > limit:
            kept = _newest(kept, quarantine)[:limit]
            oldest = kept[-1].timestamp if len(kept) == limit else ""
    return _newest(kept, quarantine)


def _newest(fills: list[Fill], quarantine: Quarantine) -> list[Fill]:
    """The fills in order, each id once."""
    fills.sort(key=attrgetter("id"))
    fills.sort(key=attrgetter("timestamp"), reverse=True)  # stable
    unique: dict[str, Fill] = {}
    for fill in fills:
        if unique.setdefault(fill.id, fill) is not fill:
            quarantine.reject("fills", fill.id, Fault("id", "another fill has the same"))
    return list(unique.values())


def count_window(fills: Iterable[Row], start: str, end: str) -> int:
    """Count the distinct valid fills in (start, end]; both are wire timestamps."""
    discarded = Quarantine()  # the market's detail reports the same rows
    return len(
        {
            fill.id
            for batch in batch_validation.batches(fills)
            for fill in _read(batch, discarded)
            if start < fill.timestamp <= end
        }
    )
