"""Fills: the most recent ones for a market's detail, and their number in a time window. Pure.

They arrive as streams in any order; `recent` keeps a bounded number.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import compress, groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from generator.api import forms
from generator.findings import Finding
from generator.markets import batch_validation, faults, row_validation
from generator.markets.batch_validation import CollectRows, RelationRows, SlowPathError, Valid, ignored
from generator.markets.quarantine import Quarantine
from generator.markets.row_validation import MAX_FLOAT

#: How far back fills are counted.
WINDOW: Final = timedelta(days=1)
#: With it, a fill leaves the window at the moment when it is a WINDOW old.
NO_STEP: Final = timedelta(0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: After every wire timestamp.
_LATEST: Final = "~"
_REPEATED: Final = Finding(column="id", text="another fill has the same", remedy=faults.REPEATED)
#: A market's id, then id, amount, shares, price and time of the fill, as the driver delivers them.
RawFill: TypeAlias = Sequence[Any]
#: The values of a `Fill`.
Values: TypeAlias = tuple[str, str, float, float, float | None]


class Fill(NamedTuple):
    """A fill in wire values, as described by PublicRecentFill."""

    timestamp: str
    id: str
    amount: float
    shares: float
    price: float | None


#: The values of a fill in the order of PublicRecentFill.
in_wire_order: Final = itemgetter(*map(Fill._fields.index, ("id", "amount", "shares", "price", "timestamp")))


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


class Trades(NamedTuple):
    """A market's fills around the last build: what is newer, with its lowest and highest price, and what is older.

    The prices are None if no newer fill has one. `older` counts each id once, up to the limit of the `TradeCounter`.
    """

    has_newer: bool = False
    lowest: float | None = None
    highest: float | None = None
    older: int = 0


NO_TRADES: Final = Trades()


class TradeCounter:
    """Counts the fills of one market: those later than the wire timestamp `since`, and the first `limit` older ones."""

    def __init__(self, since: str, limit: int) -> None:
        self._since, self._limit = since, limit
        self._older = set[str]()
        self._trades = Trades()

    def add(self, values: Iterable[Values]) -> None:
        """Count valid fills, in any order; ids may repeat."""
        newer = list[float | None]()
        for stamp, fill_id, _, _, price in values:
            if stamp > self._since:
                newer.append(price)
            elif len(self._older) < self._limit:
                self._older.add(fill_id)
        if newer:
            prices = [price for price in (*newer, self._trades.lowest, self._trades.highest) if price is not None]
            self._trades = Trades(has_newer=True, lowest=min(prices, default=None), highest=max(prices, default=None))

    def trades(self) -> Trades:
        """What was counted."""
        return self._trades._replace(older=len(self._older))


def converted(batch: Sequence[RawFill]) -> Valid:
    """Convert fills of one or several markets at once: columns of `Values`. Raises SlowPathError if one is odd."""
    _, ids, amounts, shares, prices, times = zip(*batch, strict=True)
    return Valid(
        (
            batch_validation.timestamps(times),
            batch_validation.uuids(ids),
            batch_validation.numbers(amounts, 0, MAX_FLOAT),
            batch_validation.numbers(shares, 0, MAX_FLOAT),
            batch_validation.fill_prices(prices),
        )
    )


def _read(batch: Sequence[RawFill], quarantine: Quarantine) -> Iterable[Values]:
    try:
        return zip(*converted(batch).columns, strict=True)
    except SlowPathError:
        return _read_one_by_one(batch, quarantine)


def _read_one_by_one(batch: Sequence[RawFill], quarantine: Quarantine) -> list[Values]:
    found = list[Values]()
    for row in batch:
        try:
            fill = row_validation.fill(row)
        except ValidationError as error:
            quarantine.reject("fills", row[0] if row[1] is None else row[1], *faults.of(error))
        else:
            found.append((fill.timestamp, fill.id, fill.amount, fill.shares, fill.price))
    return found


def recent(fills: RelationRows, limit: int, quarantine: Quarantine, collect: CollectRows = ignored) -> list[Fill]:
    """The newest `limit` fills, newest first; ties are broken by id, then by all other values, ascending.

    `collect` is given every valid fill, in batches of any order; some may have the same id.
    """
    if limit == 0:
        return []
    if isinstance(fills, Valid):
        stamps, ids, *_ = fills.columns
        found = [*zip(*fills.columns, strict=True)]
        collect(found)
        newest = _in_order(found, stamps, ids, quarantine)
        return [*map(Fill._make, newest[:limit])]
    kept, oldest = list[Values](), ""
    for batch in batch_validation.batches(fills):
        read = [*_read(batch, quarantine)]
        collect(read)
        kept += (fill for fill in read if fill[0] >= oldest) if oldest else read
        if len(kept) > limit:
            kept = _newest(kept, quarantine)[:limit]
            oldest = kept[-1][0] if len(kept) == limit else ""
    return [*map(Fill._make, _newest(kept, quarantine))]


def _newest(fills: list[Values], quarantine: Quarantine) -> list[Values]:
    """The fills in order, each id once."""
    return _in_order(fills, [fill[0] for fill in fills], [fill[1] for fill in fills], quarantine)


def _in_order(fills: list[Values], stamps: Iterable[str], ids: Iterable[str], quarantine: Quarantine) -> list[Values]:
    """The same for fills whose times and ids are given."""
    if len({*stamps}) == len({*ids}) == len(fills):
        fills.sort(key=itemgetter(0), reverse=True)
        return fills
    fills.sort(key=_tie)
    fills.sort(key=itemgetter(0), reverse=True)  # stable
    unique: dict[str, Values] = {}
    for fill in fills:
        if unique.setdefault(fill[1], fill) is not fill:
            quarantine.reject("fills", fill[1], _REPEATED)
    return list(unique.values())


def _tie(fill: Values) -> tuple[str, float, float, bool, float]:
    """Its rank among fills of one instant: by all values, as the order of rows must not show."""
    _, fill_id, amount, shares, price = fill
    return fill_id, amount, shares, price is None, price or 0.0


def windows(fills: Iterable[RawFill], start: str, end: str, step: timedelta = NO_STEP) -> dict[Any, Window]:
    """Count each market's distinct valid fills in (start, end], by the market's id as it is in the rows.

    Both are wire timestamps, and `start` is the `opening` of `end`. The rows of a market follow each other; one without
    fills after `start` is left out.
    """
    counts, firsts, nexts = dict[Any, int](), dict[Any, str](), dict[Any, str]()
    last: Any = None
    seen = set[str]()
    for batch in batch_validation.batches(fills):
        # Whole batches: markets have few fills each, and a call per column and market would cost more than the rows.
        owners, ids, stamps = _valid(batch, start)
        place = 0
        for owner, same in groupby(owners):
            part = slice(place, place := place + len([*same]))
            last, seen = owner, (seen if owner == last else set())
            own, known = stamps[part], ids[part]
            if max(own) > end:
                nexts[owner] = min(stamp for stamp in (*own, nexts.get(owner, _LATEST)) if stamp > end)
                known = [fill_id for fill_id, stamp in zip(known, own, strict=True) if stamp <= end]
                own = [stamp for stamp in own if stamp <= end]
            if own:
                seen.update(known)
                counts[owner] = len(seen)
                firsts[owner] = min(*own, firsts.get(owner, _LATEST))
    return {
        owner: _window(counts.get(owner, 0), firsts.get(owner), nexts.get(owner), step) for owner in {**firsts, **nexts}
    }


def _window(count: int, first: str | None, following: str | None, step: timedelta) -> Window:
    ends = [following] if following else []
    if first:
        ends.append(forms.instant(_leaving(datetime.fromisoformat(first), step)))
    return Window(count, min(ends))


def _valid(batch: Sequence[RawFill], start: str) -> tuple[Sequence[Any], Sequence[str], Sequence[str]]:
    """Market, id and time of every valid fill after `start`."""
    created = [row[-1] for row in batch]
    try:
        stamps = batch_validation.timestamps(created)
        late = [stamp > start for stamp in stamps]
        if not any(late):
            return (), (), ()
        owners, ids, amounts, shares, prices, _ = zip(*compress(batch, late), strict=True)
        batch_validation.numbers(amounts, 0, MAX_FLOAT)
        batch_validation.numbers(shares, 0, MAX_FLOAT)
        batch_validation.fill_prices(prices)
        return owners, batch_validation.uuids(ids), [*compress(stamps, late)]
    except SlowPathError:
        return _valid_one_by_one(batch, start)


def _valid_one_by_one(batch: Sequence[RawFill], start: str) -> tuple[Sequence[Any], Sequence[str], Sequence[str]]:
    discarded = Quarantine()  # the market's detail reports the same rows
    owners, ids, stamps = list[Any](), list[str](), list[str]()
    for owner, rows in groupby(batch, key=itemgetter(0)):
        late = [fill for fill in _read([*rows], discarded) if fill[0] > start]
        owners += [owner] * len(late)
        stamps += [fill[0] for fill in late]
        ids += [fill[1] for fill in late]
    return owners, ids, stamps
