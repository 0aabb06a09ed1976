"""What `build` refuses because details changed more, since the last build, than markets do: views are broken. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Final

from generator.builder.comparison import Comparison, Difference, Differences
from generator.config.settings import Config
from generator.config.shape import shaping
from generator.downloads.histories import HeldRows
from generator.markets import detail
from generator.markets.detail import RowCounts
from generator.markets.market import Market
from generator.markets.quarantine import printable
from generator.tree import shrink
from generator.wording import counted

#: Of fewer open markets, questions or order levels than this, all may change in an hour.
LEAST: Final = 20
#: Largest share of the questions that may change, of open markets that may close early, and of one shift of times.
_HALF: Final = 0.5
#: So many of anything may change that never should, and this share of it.
_FEW: Final = 5
_MAX_CHANGED: Final = 0.05
_ALLOWED: Final = f"(allowed are {_FEW}, or {_MAX_CHANGED:.0%})"
_HOUR: Final = 3_600
#: The settings that decide how many rows details show. If one changed, numbers of rows say nothing.
_LEVELS, _FILLS, _POINTS = "detail.order_book", "detail.recent_fills", "detail.history_points"
#: Characters of a question to show before the first one that changed.
_CONTEXT: Final = 40


@dataclass(frozen=True)
class ContentGuards:
    """Compares a build with the last one, if there is one: `before` are its settings that shaped what it made.

    `unchanged` are the markets whose details stay as they are; `read` returns the detail of a market (id) in place. It
    is asked for only as many as tell whether a share is exceeded: usually for none. `held` is what the files of
    histories have of each market (id) that is in both builds, and what they are to have.
    """

    config: Config
    before: Mapping[str, Any]
    found: Comparison
    unchanged: Sequence[Market]
    read: Callable[[str], bytes | None]
    held: Mapping[str, tuple[HeldRows, HeldRows]] = field(default_factory=dict)

    def refusals(self, accepted: AbstractSet[str] = frozenset()) -> Iterator[str]:
        """Why the build is refused, one text for each guard that is not accepted."""
        refusals: Mapping[str, Sequence[Callable[[], Iterator[str]]]] = {
            "shrink": (self._lost_rows, self._lost_held, self._lost_levels, self._lost_relations),
            "jumps": (self._jumps, self._mirrored),
            "questions": (self._questions,),
            "outcomes": (self._outcomes,),
            "closed": (self._closed,),
            "volumes": (self._volumes,),
            "fills": (self._altered_fills, self._doubled_fills),
            "times": (self._moved_times,),
        }
        for name, guards in refusals.items():
            for guard in guards if name not in accepted else ():
                yield from guard()

    def _lost_rows(self) -> Iterator[str]:
        limit = self.config.guards.max_shrink
        verb = f"would disappear, more than guards.max_shrink ({limit:g}) allows"
        if self._is_same(_FILLS):
            fills = self._with_unchanged(self.found.fills, self.unchanged, limit, lambda rows: rows.fills)
            if _exceeds(fills, limit):
                yield _refusal(_share(fills, "recent fill"), verb, "the fills are", "shrink", fills)
        if self._is_same(_POINTS):
            points = self._with_unchanged(self.found.points, self.unchanged, limit, lambda rows: rows.points)
            if _exceeds(points, limit):
                yield _refusal(_share(points, "point"), verb, "the histories are", "shrink", points)

    def _lost_held(self) -> Iterator[str]:
        limit = self.config.guards.max_shrink
        verb = f"of histories would disappear, more than guards.max_shrink ({limit:g}) allows"
        for table, key, noun in (("fills", _FILLS, "fill"), ("history", _POINTS, "point")):
            lost = Differences()
            for market_id, (then, now) in self.held.items():
                lost.add(_fewer(market_id, getattr(then, table).rows, getattr(now, table).rows, f"{noun}s"))
            if self._is_same(key) and _exceeds(lost, limit):
                yield _refusal(_share(lost, noun), verb, "the rows are", "shrink", lost)

    def _lost_levels(self) -> Iterator[str]:
        if self._is_same(_LEVELS):
            levels = self._of_open(self.found.levels, 1, lambda rows: rows.levels)
            if levels.number >= levels.total >= LEAST:
                all_of_them = f"all {counted(levels.total, 'order level', ',')} of open markets"
                yield _refusal(all_of_them, "would disappear", "the order books are", "shrink", levels)

    def _lost_relations(self) -> Iterator[str]:
        """Families and categories of which markets lost all: their relation is empty, or its rows cannot be seen."""
        limit, found = self.config.guards.max_shrink, self.found
        than = f"more than guards.max_shrink ({limit:g}) allows"
        members = _with(found.members, sum(market.fx is not None for market in self.unchanged))
        if _exceeds(members, limit):
            leave = f"would leave their families, and so enter the lists, {than}"
            yield _refusal(_share(members, "FX member"), leave, "the families are", "shrink", members)
        categorised = _with(found.categorised, sum(bool(market.categories) for market in self.unchanged))
        if self._is_same("variant") and _exceeds(categorised, limit):
            lose = f"would have no category any more, {than}"
            yield _refusal(_share(categorised, "categorised market"), lose, "they are", "shrink", categorised)

    def _jumps(self) -> Iterator[str]:
        limit = self.config.guards.max_jumps
        verb = f"moved by more than 30 points, more than guards.max_jumps ({limit:g}) allows"
        jumps = _with(self.found.jumps, len(self._open))
        if jumps.total >= LEAST and _exceeds(jumps, limit):
            yield _refusal(_share(jumps, "open market"), verb, "the probabilities are", "jumps", jumps)
        ends = self._of_open(self.found.ends, limit, lambda rows: rows.points > 0)
        if ends.total >= LEAST and _exceeds(ends, limit):
            newest = f"the newest points of {_share(ends, 'open market')}"
            yield _refusal(newest, verb, "the histories are", "jumps", ends)

    def _mirrored(self) -> Iterator[str]:
        """Fewer open markets than those whose jumps are counted, but some at one minus what they were."""
        is_now = "1 minus what it was, and no trade explains it"
        total = self.found.jumps.total + len(self._open)
        for what, mirrored in (("probability", self.found.mirrored), ("newest point", self.found.mirrored_ends)):
            if total < LEAST and mirrored.number >= _FEW:
                markets = counted(mirrored.number, "open market")
                yield _refusal(f"the {what} of {markets}", f"is {is_now}", "the probabilities are", "jumps", mirrored)

    def _questions(self) -> Iterator[str]:
        questions = _with(self.found.questions, len(self.unchanged))
        if questions.total >= LEAST and _exceeds(questions, _HALF):
            shortened = replace(questions, examples=[*map(_where_they_differ, questions.examples)])
            yield _refusal(_share(questions, "question"), "changed, more than half", "they are", "questions", shortened)

    def _outcomes(self) -> Iterator[str]:
        outcomes = _with(self.found.outcomes, sum(market.status == "resolved" for market in self.unchanged))
        if _are_many(outcomes):
            changed = f"have another outcome than before {_ALLOWED}"
            yield _refusal(_share(outcomes, "resolved market"), changed, "the outcomes are", "outcomes", outcomes)

    def _closed(self) -> Iterator[str]:
        closed = _with(self.found.closed, len(self._open))
        if closed.total >= LEAST and _exceeds(closed, _HALF):
            stopped = "are no longer open, although their closing time is to come, more than half"
            yield _refusal(_share(closed, "open market"), stopped, "they are", "closed", closed)

    def _volumes(self) -> Iterator[str]:
        volumes = _with(self.found.volumes, len(self.unchanged))
        if _are_many(volumes):
            changed = f"changed without a trade or other activity {_ALLOWED}"
            what = f"the volumes of {_share(volumes, 'market')}"
            yield _refusal(what, changed, "the volumes are", "volumes", volumes)

    def _altered_fills(self) -> Iterator[str]:
        altered = self.found.altered
        if altered.number > _FEW:
            altered = self._with_unchanged(altered, self.unchanged, _MAX_CHANGED, lambda rows: rows.fills)
        if _are_many(altered):
            changed = f"have another price, amount, number of shares or time than before {_ALLOWED}"
            yield _refusal(_share(altered, "recent fill"), changed, "the fills are", "fills", altered)

    def _doubled_fills(self) -> Iterator[str]:
        limit, most = self.config.guards.max_shrink, self.config.detail.recent_fills
        doubled = self.found.doubled
        if doubled.number > _FEW and self._is_same(_FILLS):
            doubled = self._with_unchanged(
                doubled, self.unchanged, limit, lambda rows: rows.fills if rows.fills < most else 0
            )
            if _exceeds(doubled, limit):
                fills = counted(doubled.number, "fill", ",")
                come = f"from before the last build are new, beside {doubled.total:,}, more than guards.max_shrink"
                come += f" ({limit:g}) allows"
                yield _refusal(fills, come, "the fills are", "fills", doubled)

    def _moved_times(self) -> Iterator[str]:
        total = self.found.markets.total + len(self.unchanged)
        for seconds, moved in self.found.moved.items():
            alike, others = Differences(total=total), ""
            alike.add(replace(moved, total=0))
            # A zone with summer time moves some by an hour more.
            further = seconds + (_HOUR if seconds > 0 else -_HOUR)
            if further in self.found.moved:
                alike.add(replace(self.found.moved[further], total=0))
                others = ", or an hour more"
            if total >= LEAST and alike.number > _HALF * total:
                back = "back " if seconds < 0 else ""
                by = f"moved {back}by {timedelta(seconds=abs(seconds))}{others}, more than half of them"
                yield _refusal(f"the closing times of {_share(alike, 'market')}", by, "the times are", "times", alike)
                return

    def _is_same(self, key: str) -> bool:
        """Whether a setting is as it was in the last build."""
        return bool(self.before.get(key) == shaping(self.config)[key])

    @cached_property
    def _open(self) -> list[Market]:
        """The unchanged markets that are open."""
        return [market for market in self.unchanged if market.status == "open"]

    def _of_open(self, found: Differences, limit: float, count: Callable[[RowCounts], int]) -> Differences:
        """Differences of open markets with all unchanged ones in the total, unless too few differ."""
        return found if found.number < limit * LEAST else self._with_unchanged(found, self._open, limit, count)

    def _with_unchanged(
        self, found: Differences, unchanged: Iterable[Market], limit: float, count: Callable[[RowCounts], int]
    ) -> Differences:
        """Differences with unchanged details in the total, as far as that could keep them from being refused."""
        total, details = found.total, (self.read(market.id) or b"" for market in unchanged)
        while 0 < found.number >= limit * total and (body := next(details, None)) is not None:
            total += count(detail.row_counts(body))
        return replace(found, total=total)


def _with(found: Differences, unchanged: int) -> Differences:
    """Differences with so many unchanged ones in the total."""
    return replace(found, total=found.total + unchanged)


def _exceeds(found: Differences, limit: float) -> bool:
    return shrink.is_excessive(found.number, found.total, limit)


def _are_many(found: Differences) -> bool:
    """Whether more changed of what never should than a few corrections."""
    return found.number > _FEW and _exceeds(found, _MAX_CHANGED)


def _fewer(market_id: str, before: int, after: int, noun: str) -> Differences:
    """How many rows one market loses."""
    lost = max(0, before - after)
    texts = (f"{before:,}", f"{after:,} {noun}")
    return Differences(before, lost, [Difference(lost, market_id, "", *texts)] if lost else [])


def _share(found: Differences, noun: str) -> str:
    return f"{found.number:,} of {counted(found.total, noun, ',')}"


def _refusal(what: str, verb: str, are_right: str, guard: str, found: Differences) -> str:
    examples = "".join(f"\n  {line}" for line in _lines(found))
    return (
        f"{what} {verb}; nothing was replaced. Correct the database or its views or, if {are_right} right, pass "
        f"--accept {guard}. Such as:{examples}"
    )


def _lines(found: Differences) -> Iterator[str]:
    for one in found.examples:
        named = f"market {one.market_id} ({printable(one.question)})" if one.question else f"market {one.market_id}"
        yield f"{named}: {printable(one.before)} → {printable(one.after)}"


def _where_they_differ(texts: Difference) -> Difference:
    """The two questions without a long beginning that they have in common, so that the difference is shown."""
    pairs = enumerate(zip(texts.before, texts.after, strict=False))
    first = next((place for place, (then, now) in pairs if then != now), min(len(texts.before), len(texts.after)))
    start = max(0, first - _CONTEXT)
    cut = (f"{'…' * bool(start)}{text[start:]}" for text in (texts.before, texts.after))
    return Difference(texts.weight, texts.market_id, "", *cut)
