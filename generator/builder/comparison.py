"""How the details that a build makes differ from those in place: what the guards on content look at. Pure.

Only a market that is in both builds is compared, and only if its detail is new: all others count as before.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from heapq import nsmallest
from math import isclose
from typing import Final, NamedTuple

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter

from generator.markets import detail
from generator.markets.detail import RowCounts
from generator.markets.fills import NO_TRADES, Trades
from generator.wording import counted

#: A probability that moved further than this jumped.
LEAP: Final = 0.3
#: A trade explains a jump if its price is no further than this from where the probability jumped to.
_NEAR: Final = 0.1
#: A probability may be mirrored if it was further than this from the middle, and is now about one minus what it was.
_MIDDLE: Final = 0.5
_ASIDE: Final = 0.1
_SAME: Final = 0.02
#: Numbers that differ by less than this share are equal: the order of a sum's terms is the database's choice.
_ROUNDING: Final = 1e-9
#: How many differences are named.
EXAMPLES: Final = 3
_OPEN: Final = "open"
_RESOLVED: Final = "resolved"


class Interval(NamedTuple):
    """From shortly before the last build to this one, wire timestamps; and how many fills details show."""

    since: str
    now: str
    most_fills: int


class RowsRead(NamedTuple):
    """What a market's rows say beside its detail: its trades, and whether the detail shows only some of its points."""

    trades: Trades = NO_TRADES
    is_thinned: bool = False


NOT_READ: Final = RowsRead()


class Difference(NamedTuple):
    """How one market (id) differs, in words; its `weight` says how much."""

    weight: float
    market_id: str
    question: str
    before: str
    after: str


@dataclass
class Differences:
    """How many of a `total` differ, with those that differ most as examples."""

    total: int = 0
    number: int = 0
    examples: list[Difference] = field(default_factory=list)

    def add(self, other: "Differences") -> None:
        """Add those of other markets. In whatever order they come, the same examples stay."""
        self.total += other.total
        self.number += other.number
        if other.examples:
            self.examples = nsmallest(EXAMPLES, [*self.examples, *other.examples], key=_rank)


def _rank(difference: Difference) -> tuple[float, str]:
    return -difference.weight, difference.market_id


@dataclass
class Comparison:
    """The differences between new details and those in place.

    `levels` that would go of the order books of markets open in both builds; those of new markets make up for them.
    `fills` and `points` that would go, of any market. `jumps`: markets open in both builds whose probability jumped
    and no trade explains it; `ends`: those the newest point of whose history jumped so, of those that have one;
    `mirrored` and `mirrored_ends`: those that are at one minus what they were, likewise. `questions` that changed.
    `members` of FX families that are in none now, and `categorised` markets that have no category now. `outcomes` that
    changed, of markets resolved in both builds. Markets that `closed`, although they were open and their closing time
    is to come. `volumes` that changed, of markets without trade or activity. `altered` fills, of those shown twice.
    `doubled`: fills that are older than the last build and new, of markets that showed all of theirs. `moved`: closing
    times that moved, by the number of seconds, of all `markets`.
    """

    markets: Differences = field(default_factory=Differences)
    levels: Differences = field(default_factory=Differences)
    fills: Differences = field(default_factory=Differences)
    points: Differences = field(default_factory=Differences)
    jumps: Differences = field(default_factory=Differences)
    ends: Differences = field(default_factory=Differences)
    mirrored: Differences = field(default_factory=Differences)
    mirrored_ends: Differences = field(default_factory=Differences)
    questions: Differences = field(default_factory=Differences)
    members: Differences = field(default_factory=Differences)
    categorised: Differences = field(default_factory=Differences)
    outcomes: Differences = field(default_factory=Differences)
    closed: Differences = field(default_factory=Differences)
    volumes: Differences = field(default_factory=Differences)
    altered: Differences = field(default_factory=Differences)
    doubled: Differences = field(default_factory=Differences)
    moved: defaultdict[int, Differences] = field(default_factory=lambda: defaultdict(Differences))

    def add(self, other: "Comparison") -> None:
        """Add the differences of other markets."""
        for seconds, differences in other.moved.items():
            self.moved[seconds].add(differences)
        for name, mine in vars(self).items():
            if isinstance(mine, Differences):
                mine.add(getattr(other, name))

    def compare(self, before: bytes | None, after: bytes, interval: Interval, rows: RowsRead = NOT_READ) -> None:
        """Compare the body of a market's detail with the one in place, if there is one."""
        then, now = _Shown.of(before), _Shown.of(after)
        if now and not then:
            self.levels.number -= now.rows.levels if now.is_open else 0
        elif now and then:
            self.add(_Pair(then, now, interval, rows).differences())


class _Family(BaseModel):
    title: str


class _Market(BaseModel):
    """What is compared of the market object in a detail."""

    id: str
    question: str
    prob: float
    status: str
    volume: float
    resolution: str | None
    close_time: AwareDatetime = Field(alias="closeTime")
    last_activity_at: str = Field(alias="lastActivityAt")
    family: _Family | None = Field(None, alias="fxFamilyMember")
    categories: tuple[str, ...] | None = None

    def families(self) -> tuple[str, ...]:
        """The title of the family that it is in, if any."""
        return (self.family.title,) if self.family else ()


class _Fill(BaseModel):
    """A fill that a detail shows."""

    id: str
    timestamp: str
    price: float | None
    amount: float
    shares: float

    def __str__(self) -> str:
        price = "no price" if self.price is None else f"{self.price:.15g}"
        return f"{self.amount:.15g} for {self.shares:.15g} shares at {price}, {self.timestamp}"


_FILLS: Final = TypeAdapter(list[_Fill])


@dataclass(frozen=True)
class _Shown:
    """What is compared of a detail; `newest` is the last probability of its history."""

    market: _Market
    rows: RowCounts
    newest: float | None
    fills: bytes

    @property
    def is_open(self) -> bool:
        """Whether its market is open."""
        return self.market.status == _OPEN

    @classmethod
    def of(cls, body: bytes | None) -> "_Shown | None":
        """Read it from a body; None if that is missing or damaged."""
        try:
            shown = body or b""
            market = _Market.model_validate_json(detail.market_object(shown))
            return cls(market, detail.row_counts(shown), detail.newest_prob(shown), detail.shown_fills(shown))
        except ValueError:
            return None

    @cached_property
    def by_id(self) -> dict[str, _Fill]:
        """Its fills by id; none if they are damaged."""
        try:
            return {fill.id: fill for fill in _FILLS.validate_json(self.fills)}
        except ValueError:
            return {}


class _Pair(NamedTuple):
    """A detail before and now."""

    then: _Shown
    now: _Shown
    interval: Interval
    read: RowsRead

    def differences(self) -> Comparison:
        """The differences of this market alone."""
        then, now = self.then.rows, self.now.rows
        lost_points = 0 if self.read.is_thinned else max(0, then.points - now.points)
        found = Comparison(
            markets=Differences(1),
            fills=self._rows("fill", then.fills, max(0, then.fills - now.fills)),
            points=self._rows("point", then.points, lost_points),
            questions=self._question(),
            members=self._left(self.then.market.families(), self.now.market.families(), "no family"),
            categorised=self._left(self.then.market.categories or (), self.now.market.categories or (), "no category"),
            outcomes=self._outcome(),
            closed=self._closed(),
            volumes=self._volume(),
            altered=self._altered(),
            doubled=self._doubled(),
        )
        if self.then.is_open and self.now.is_open:
            found.levels = self._rows("order level", then.levels, then.levels - now.levels)
            found.jumps, found.mirrored = self._moved(self.then.market.prob, self.now.market.prob)
            if self.then.newest is not None and self.now.newest is not None:
                found.ends, found.mirrored_ends = self._moved(self.then.newest, self.now.newest)
                if abs(self.now.newest - self.then.market.prob) <= _NEAR:  # the point comes after its market
                    found.ends.number, found.ends.examples = 0, []
        seconds = round((self.now.market.close_time - self.then.market.close_time).total_seconds())
        if seconds:
            times = (f"{one.market.close_time:%Y-%m-%d %H:%M:%S}" for one in (self.then, self.now))
            found.moved[seconds] = self._differences(1, 1, 0, *times)
        return found

    def _rows(self, noun: str, before: int, lost: int) -> Differences:
        return self._differences(before, lost, lost, f"{before:,}", counted(before - lost, noun, ","))

    def _question(self) -> Differences:
        then, now = self.then.market.question, self.now.market.question
        return self._differences(1, then != now, 0, then, now)

    def _left(self, before: Sequence[str], after: Sequence[str], nothing: str) -> Differences:
        """Whether the market is in `nothing` of what it was in before."""
        return self._differences(bool(before), bool(before and not after), 0, ", ".join(before), nothing)

    def _outcome(self) -> Differences:
        then, now = self.then.market, self.now.market
        if not then.status == now.status == _RESOLVED or then.resolution is None:
            return Differences()
        is_other = then.resolution != now.resolution
        return self._differences(1, is_other, 0, then.resolution, now.resolution or "no outcome")

    def _closed(self) -> Differences:
        if not self.then.is_open:
            return Differences()
        status, closing = self.now.market.status, self.now.market.close_time
        is_early = not self.now.is_open and closing > datetime.fromisoformat(self.interval.now)
        return self._differences(1, is_early, 0, _OPEN, f"{status}, although it closes at {closing:%Y-%m-%d %H:%M:%S}")

    def _volume(self) -> Differences:
        then, now = self.then.market, self.now.market
        if self.read.trades.has_newer or then.last_activity_at != now.last_activity_at:
            return Differences()
        is_other = not _is_same(then.volume, now.volume)
        if is_other and self._unseen():
            return Differences()
        by, texts = abs(now.volume - then.volume), (f"{one.volume:.15g}" for one in (then, now))
        return self._differences(1, is_other, by, *texts)

    def _altered(self) -> Differences:
        if self.then.fills == self.now.fills:
            return Differences(self.then.rows.fills)
        before, after = self.then.by_id, self.now.by_id
        both = before.keys() & after.keys()
        altered = [(before[key], after[key]) for key in sorted(both) if not _are_same(before[key], after[key])]
        if not altered:
            return Differences(len(both))
        then, now = altered[0]
        return self._differences(len(both), len(altered), len(altered), f"fill {then.id[:8]}, {then}", str(now))

    def _doubled(self) -> Differences:
        before = self.then.rows.fills
        if not 0 < before < self.interval.most_fills:
            return Differences()
        added = max(0, self.read.trades.older - before)
        older = counted(before + added, "fill", ",")
        return self._differences(before, added, added, f"{before:,}", f"{older} that are older than the last build")

    def _moved(self, before: float, after: float) -> tuple[Differences, Differences]:
        """Whether a probability jumped, and whether it is mirrored; in neither if trades explain where it is."""
        # In binary, 0.1 to 0.4 are a little more than 0.3.
        distance = round(abs(after - before), 9)
        is_aside = round(abs(before - _MIDDLE), 9) > _ASIDE
        is_mirrored = is_aside and round(abs(after - (1 - before)), 9) <= _SAME
        is_unexplained = (distance > LEAP or is_mirrored) and not self._have_led(before, after)
        weight, texts = distance, (f"{before:.4g}", f"{after:.4g}")
        return (
            self._differences(1, is_unexplained and distance > LEAP, weight, *texts),
            self._differences(1, is_unexplained and is_mirrored, weight, *texts),
        )

    def _have_led(self, before: float, after: float) -> bool:
        """Whether trades have led there: one has a price on the new side of the middle, and near `after` or beyond."""
        prices = [self.read.trades.lowest, self.read.trades.highest, *(fill.price for fill in self._unseen())]
        if after > before:
            least = round(after - _NEAR, 9)
            least = max(least, _MIDDLE) if after >= _MIDDLE else least
            return any(price is not None and price >= least for price in prices)
        most = round(after + _NEAR, 9)
        most = min(most, _MIDDLE) if after <= _MIDDLE else most
        return any(price is not None and price <= most for price in prices)

    def _unseen(self) -> list[_Fill]:
        """The fills that are shown now and were not before, whenever they were made: some may have come late."""
        if self.then.fills == self.now.fills:
            return []
        return [fill for key, fill in self.now.by_id.items() if key not in self.then.by_id]

    def _differences(self, total: int, number: int, weight: float, before: str, after: str) -> Differences:
        if number <= 0:
            return Differences(total, number)
        market = self.now.market
        return Differences(total, number, [Difference(weight, market.id, market.question, before, after)])


def _is_same(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is after
    return isclose(before, after, rel_tol=_ROUNDING)


def _are_same(before: _Fill, after: _Fill) -> bool:
    numbers = ((before.price, after.price), (before.amount, after.amount), (before.shares, after.shares))
    return before.timestamp == after.timestamp and all(_is_same(*pair) for pair in numbers)
