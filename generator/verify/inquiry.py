"""Who is asked and what is expected; and how bad it is that other items are shown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeAlias

from generator.api.contract import Sort
from generator.site.catalog import RANKS
from generator.verify.earlier_states import EarlierStates
from generator.verify.expected import ExpectedSite
from generator.verify.expected_questions import is_question
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteAnswer, SiteReader
from generator.wording import counted

#: Items as they are on the wire.
Items: TypeAlias = Sequence[Mapping[str, Any]]

_MISSING: Final = object()


@dataclass(frozen=True)
class Inquiry:
    """Who is asked, what must be answered, and the earlier states by which a stale answer is known.

    `flaws` are what was wrong already with what those were read from.
    """

    reader: SiteReader
    site: ExpectedSite
    earlier: EarlierStates
    flaws: Sequence[Mismatch] = ()


#: Asks, and yields what is wrong with the answers.
Check = Callable[[Inquiry], Iterator[Mismatch]]


def are_sorted(items: Sequence[Any], sort: Sort) -> bool:
    """Whether items of a list, or markets, are in the order of the sort; no two can have one id."""
    return in_order(items, sorted(sorted(items, key=attrgetter("id")), key=RANKS[sort], reverse=True))


def in_order(items: Sequence[Any], ordered: Sequence[Any]) -> bool:
    """Whether items are in the order of the second ones, which are the same; no two can have one id."""
    ids = [item.id for item in items]
    return ids == [item.id for item in ordered] and len({*ids}) == len(ids)


def of_items(asked: Inquiry, answer: SiteAnswer, shown: Items, wanted: Items, *, can_be_stale: bool) -> Mismatch:
    """How bad it is that these items are not those that are wanted, or the first of them."""
    gone = next(filter(None, map(asked.site.unpublished, shown)), None)
    since = asked.earlier.since(shown, wanted) if can_be_stale else None
    if gone:
        told = f", as it was before {since}" if since else ""
        text = f"shows {gone}, which {asked.site.basis} does not have{told}{answer.age}"
        return Mismatch(Verdict.WITHDRAWN, answer.target, text)
    if since:
        return stale(asked, answer, since)
    for place, (one, other) in enumerate(zip(shown, [*wanted, *[{}] * len(shown)], strict=False)):
        if one != other:
            text = f"item {place + 1} {unlike(one, other, asked.site.basis)}{answer.age}"
            return Mismatch(Verdict.WRONG, answer.target, text)
    text = f"has {len(shown)} items; {asked.site.basis} says {len(wanted)}{answer.age}"
    return Mismatch(Verdict.WRONG, answer.target, text)


def stale(asked: Inquiry, answer: SiteAnswer, since: str) -> Mismatch:
    """An answer that was right until then."""
    text = f"is out of date since {since}; what is published is as of {asked.site.build.as_of}{answer.age}"
    return Mismatch(Verdict.STALE, answer.target, text)


def unlike(shown: Mapping[str, Any], wanted: Mapping[str, Any], basis: str) -> str:
    """In what an object differs from the one that is wanted."""
    if shown.get("id") != wanted.get("id"):
        kind = "question" if is_question(shown) else "market"
        return f"is {kind} {shown.get('id')}; {basis} and the order say {wanted.get('id', 'that there is none')}"
    differing = (name for name in {**wanted, **shown} if shown.get(name, _MISSING) != wanted.get(name, _MISSING))
    name = next(differing, "")
    if name == "markets":
        return _unlike_markets(shown.get(name, ()), wanted.get(name, ()), basis)
    if name == "market":
        return f"has a market that {unlike(shown.get(name, {}), wanted.get(name, {}), basis)}"
    has = f"has {name} {shown[name]!r:.80}" if name in shown else f"has no {name}"
    return f"{has}; {basis} {f'says {wanted[name]!r:.80}' if name in wanted else 'has none'}"


def _unlike_markets(shown: Items, wanted: Items, basis: str) -> str:
    """In what the markets of a question differ from those that are wanted."""
    for place, (one, other) in enumerate(zip(shown, wanted, strict=False)):
        if one != other:
            return f"shows its market {place + 1}, which {unlike(one, other, basis)}"
    return f"shows {counted(len(shown), 'market')}; {basis} says {len(wanted)}"
