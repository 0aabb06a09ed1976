"""How the details that a build makes differ from those in place: what the guards on content look at. Pure.

Only a market that is in both builds is compared, and only if its detail is new: all others count as before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final, NamedTuple

from pydantic import BaseModel, Field

from generator.markets import detail
from generator.markets.detail import RowCounts
from generator.wording import counted

#: A probability that moved further than this jumped.
LEAP: Final = 0.3
#: How many differences are named.
EXAMPLES: Final = 3
_OPEN: Final = "open"


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
    `fills` and `points` that would go, of any market. `jumps`: markets open in both builds whose probability jumped;
    `ends`: those the newest point of whose history jumped, of those that have one. `questions` that changed. `members`
    of FX families that are in none now, and `categorised` markets that have no category now.
    """

    levels: Differences = field(default_factory=Differences)
    fills: Differences = field(default_factory=Differences)
    points: Differences = field(default_factory=Differences)
    jumps: Differences = field(default_factory=Differences)
    ends: Differences = field(default_factory=Differences)
    questions: Differences = field(default_factory=Differences)
    members: Differences = field(default_factory=Differences)
    categorised: Differences = field(default_factory=Differences)

    def add(self, other: "Comparison") -> None:
        """Add the differences of other markets."""
        for name, mine in vars(self).items():
            mine.add(getattr(other, name))

    def compare(self, before: bytes | None, after: bytes, *, is_thinned: bool = False) -> None:
        """Compare the body of a market's detail with the one in place, if there is one.

        `is_thinned`: the database has more points than the new one shows, so that fewer say nothing.
        """
        then, now = _Shown.of(before), _Shown.of(after)
        if now and not then:
            self.levels.number -= now.rows.levels if now.is_open else 0
        elif now and then:
            self.add(_Pair(then, now).differences(is_thinned=is_thinned))


class _Family(BaseModel):
    title: str


class _Market(BaseModel):
    """What is compared of the market object in a detail."""

    id: str
    question: str
    prob: float
    status: str
    family: _Family | None = Field(None, alias="fxFamilyMember")
    categories: tuple[str, ...] | None = None

    def families(self) -> tuple[str, ...]:
        """The title of the family that it is in, if any."""
        return (self.family.title,) if self.family else ()


class _Shown(NamedTuple):
    """What is compared of a detail; `newest` is the last probability of its history."""

    market: _Market
    rows: RowCounts
    newest: float | None

    @property
    def is_open(self) -> bool:
        """Whether its market is open."""
        return self.market.status == _OPEN

    @classmethod
    def of(cls, body: bytes | None) -> "_Shown | None":
        """Read it from a body; None if that is missing or damaged."""
        try:
            market = _Market.model_validate_json(detail.market_object(body or b""))
            return cls(market, detail.row_counts(body or b""), detail.newest_prob(body or b""))
        except ValueError:
            return None


class _Pair(NamedTuple):
    """A detail before and now."""

    then: _Shown
    now: _Shown

    def differences(self, *, is_thinned: bool) -> Comparison:
        """The differences of this market alone."""
        then, now = self.then.rows, self.now.rows
        lost_points = 0 if is_thinned else max(0, then.points - now.points)
        found = Comparison(
            fills=self._rows("fill", then.fills, max(0, then.fills - now.fills)),
            points=self._rows("point", then.points, lost_points),
            questions=self._question(),
            members=self._left(self.then.market.families(), self.now.market.families(), "no family"),
            categorised=self._left(self.then.market.categories or (), self.now.market.categories or (), "no category"),
        )
        if self.then.is_open and self.now.is_open:
            found.levels = self._rows("order level", then.levels, then.levels - now.levels)
            found.jumps = self._jump(self.then.market.prob, self.now.market.prob)
            if self.then.newest is not None and self.now.newest is not None:
                found.ends = self._jump(self.then.newest, self.now.newest)
        return found

    def _rows(self, noun: str, before: int, lost: int) -> Differences:
        return self._differences(before, lost, lost, f"{before:,}", counted(before - lost, noun, ","))

    def _question(self) -> Differences:
        then, now = self.then.market.question, self.now.market.question
        return self._differences(1, then != now, 0, then, now)

    def _left(self, before: Sequence[str], after: Sequence[str], nothing: str) -> Differences:
        """Whether the market is in `nothing` of what it was in before."""
        return self._differences(bool(before), bool(before and not after), 0, ", ".join(before), nothing)

    def _jump(self, before: float, after: float) -> Differences:
        # In binary, 0.1 to 0.4 are a little more than 0.3.
        distance = round(abs(after - before), 9)
        return self._differences(1, distance > LEAP, distance, f"{before:.4g}", f"{after:.4g}")

    def _differences(self, total: int, number: int, weight: float, before: str, after: str) -> Differences:
        if number <= 0:
            return Differences(total, number)
        market = self.now.market
        return Differences(total, number, [Difference(weight, market.id, market.question, before, after)])
