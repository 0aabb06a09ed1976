"""Fills: the most recent ones for a market's detail, and their number in a time window. Pure.

They arrive as streams in any order; `recent` keeps a bounded number.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from generator.api import times
from generator.markets import batch_validation, faults, row_validation
from generator.markets.batch_validation import MAX_FLOAT, SlowPathError
from generator.markets.quarantine import Fault, Quarantine

#: How far back fills are counted.
WINDOW: Final = timedelta(days=1)
#: With it, a fill leaves the window at the moment when it is a WINDOW old.
NO_STEP: Final = timedelta(0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: After every wire timestamp.
_LATEST: Final = "~"
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


class Window(NamedTuple):
    """The number of fills in the window, and the wire timestamp from which on it may be another one.

    That is never if it is empty. Until then, the number holds as long as the market's fills are the same.
    """

    number: int
    until: str

    def holds_at(self, now: str) -> bool:
        """Whether the number holds at a later instant, a wire timestamp."""
        return not self.until or now < self.until


NO_FILLS: Final = Window(0, "")


def opening(as_of: datetime, step: timedelta) -> datetime:
    """When the window of an instant, an aware time, opens: a WINDOW earlier, or at the step before that.

    Steps are counted from midnight in UTC. So the window is never shorter than WINDOW: whatever the step, no fill of
    the last 24 hours is missing in a count.
    """
    moment = as_of - WINDOW
    return moment - (moment - _EPOCH) % step if step else moment


def _leaving(moment: datetime, step: timedelta) -> datetime:
    """From when on windows do not hold a fill of this moment any more."""
    return moment + WINDOW + ((_EPOCH - moment) % step if step else step)


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


def windows(fills: Iterable[Row], start: str, end: str, step: timedelta = NO_STEP) -> dict[Any, Window]:
    """Count each market's distinct valid fills in (start, end], by the market's id as it is in the rows.

    Both are wire timestamps, and `start` is the `opening` of `end`. The rows of a market follow each other; one without
    fills after `start` is left out.
    """
    counts, firsts, nexts = Counter[Any](), dict[Any, str](), dict[Any, str]()
    last: Any = None
    seen = set[tuple[Any, str]]()
    for batch in batch_validation.batches(fills):
        # Whole batches: markets have few fills each, and a call per column and market would cost more than the rows.
        known, seen = seen, set[tuple[Any, str]]()
        for owner, fill_id, stamp in _valid(batch):
            if stamp > end:
                nexts[owner] = min(stamp, nexts.get(owner, stamp))
            elif stamp > start:
                seen.add((owner, fill_id))
                if stamp < firsts.get(owner, _LATEST):
                    firsts[owner] = stamp
        counts.update(owner for owner, _ in (seen - known if batch[0][0] == last else seen))
        if batch[0][0] == batch[-1][0] == last:
            seen |= known
        last = batch[-1][0]
    return {owner: _window(counts[owner], firsts.get(owner), nexts.get(owner), step) for owner in {**firsts, **nexts}}


def _window(count: int, first: str | None, following: str | None, step: timedelta) -> Window:
    ends = [following] if following else []
    if first:
        ends.append(times.instant(_leaving(datetime.fromisoformat(first), step)))
    return Window(count, min(ends))


def _valid(batch: Sequence[Row]) -> Iterator[tuple[Any, str, str]]:
    """Market, id and time of every valid fill."""
    owners, ids, amounts, shares, prices, created = zip(*batch, strict=True)
    try:
        stamps, plain = batch_validation.timestamps(created), batch_validation.uuids(ids)
        batch_validation.numbers(amounts, 0, MAX_FLOAT)
        batch_validation.numbers(shares, 0, MAX_FLOAT)
        batch_validation.fill_prices(prices)
    except SlowPathError:
        discarded = Quarantine()  # the market's detail reports the same rows
        for owner, rows in groupby(batch, key=itemgetter(0)):
            yield from ((owner, fill.id, fill.timestamp) for fill in _read([*rows], discarded))
    else:
        yield from zip(owners, plain, stamps, strict=True)
