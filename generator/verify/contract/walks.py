"""Walks through lists: pages and cursors, the filter, the order, and that no market is missing or comes twice."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from generator.api import contract
from generator.api.contract import PublicMarketList, PublicMarketListItem, Sort
from generator.api.questions import QuestionList
from generator.site.catalog import RANKS
from generator.verify.contract import answers
from generator.verify.contract.plans import LIST, ContractWalk, WalkedItem, WalkPlan
from generator.verify.contract.subject import Subject
from generator.verify.mismatches import Mismatch, broken, no_answer, note, wrong
from generator.verify.reader import NoAnswerError, SiteAnswer
from generator.wording import counted

#: The most pages of a walk.
MOST_PAGES: Final = 6
#: What the published order of each sort compares.
_COMPARED: Final[Mapping[Sort, tuple[str, ...]]] = {
    "popular": ("traderCount", "volume"),
    "activity": ("lastActivityAt",),
    "volume": ("volume",),
    "new": ("createdAt",),
    "ended": ("resolvedAt", "closeTime"),
}
#: The sorts whose names say what they compare; what is popular or has ended, the contract leaves open.
_PLAIN: Final[frozenset[Sort]] = frozenset({"activity", "volume", "new"})


def walk(asked: Subject, plan: WalkPlan) -> ContractWalk:
    """Walk through a list, over some pages at most, up to what cannot be gone on from; once in a look."""
    if plan in asked.walked:
        return asked.walked[plan]
    made = asked.walked[plan] = ContractWalk(plan)
    cursor, cursors = None, set[str]()
    for number in range(MOST_PAGES):
        try:
            answer = asked.ask(plan.page(number, cursor))
        except NoAnswerError as error:
            if asked.is_gone():
                raise
            # Of one page: all that other walks tell of each other is still worth its requests.
            made.found.append(no_answer(error))
            made.is_comparable = False
            return made
        page, faults = answers.content(answer, PublicMarketList if plan.resource == LIST else QuestionList)
        made.found += faults
        if page is None:
            made.is_comparable = False
            return made
        limit = plan.limits[number % len(plan.limits)]
        following = page["nextCursor"]
        may_be_short = number > 0 and len(plan.limits) > 1
        made.found += _size_faults(answer.target, page, limit, may_be_short=may_be_short)
        if following in cursors or (number and page["items"] == made.items[-len(page["items"]) :] != []):
            made.found.append(wrong(answer.target, "the nextCursor leads to the same page again"))
            made.is_comparable = False
            return made
        made.found += _order_faults(made, answer.target, page["items"])
        made.found += [wrong(answer.target, text) for text in _item_faults(made, page["items"])]
        made.found += _late_bets(answer, page["items"])
        made.items += page["items"]
        made.ids.update(item["id"] for item in page["items"])
        if following is None or not page["items"]:
            made.is_whole = following is None
            return made
        cursors.add(following)
        cursor = following
    return made


def _size_faults(target: str, page: Mapping[str, Any], limit: int, *, may_be_short: bool) -> Iterator[Mismatch]:
    size, is_last = len(page["items"]), page["nextCursor"] is None
    if size > limit:
        yield broken(target, f"has {size} items, more than its limit of {limit}")
    elif size == 0 and not is_last:
        yield broken(target, "has no item, yet a nextCursor")
    elif size < limit and not is_last and not may_be_short:
        # The contract says no more than "page size"; markets that are lost so, other walks miss.
        yield note(target, "has fewer items than its limit, yet a nextCursor")


def _item_faults(made: ContractWalk, items: Sequence[WalkedItem]) -> Iterator[str]:
    """What is wrong with the items of a page, seen alone and after those before it."""
    plan, shown, seen = made.plan, made.plan.shown, {one_id.lower() for one_id in made.ids}
    for item in items:
        if item["status"] not in contract.STATES_OF_FILTER[plan.status]:
            yield f"shows {shown} {item['id']}, which is {item['status']}, under status={plan.status}"
        if item["status"] in contract.UNSETTLED and item.get("resolution") is not None:
            yield f"shows {shown} {item['id']}, which is {item['status']}, with a resolution"
        if item["status"] != "open" and item["acceptingBets"]:
            yield f"shows {shown} {item['id']}, which is {item['status']}, with acceptingBets true"
        if item["id"].lower() in seen:
            yield f"shows {shown} {item['id']} again: an earlier page has it, or this one"
        seen.add(item["id"].lower())


def _late_bets(answer: SiteAnswer, items: Sequence[WalkedItem]) -> Iterator[Mismatch]:
    """Open markets that accept bets after their closing.

    A page may be as old as its newest activity, whatever the clock says: only that shows that it is not of a state
    before the closing. Rows may be dated later than now, so times after the answer's own date show nothing.
    """
    late = [item for item in items if item["status"] == "open" and item["acceptingBets"]]
    now = answers.date(answer.headers.get("date", ""))
    if not late or now is None or now.tzinfo is None:
        return
    given = [item[name] for item in items for name in ("lastActivityAt", "createdAt", "resolvedAt") if item[name]]
    newest = max((one for one in map(answers.comparable, given) if one <= now), default=None)
    for item in late:
        closing = answers.comparable(item["closeTime"])
        if newest and closing < newest:
            text = f"shows market {item['id']} with acceptingBets true after its closeTime {item['closeTime']}"
            yield wrong(answer.target, f"{text}: the same page has a time of {newest:%Y-%m-%dT%H:%M:%SZ}")
        elif closing < now:
            yield note(answer.target, "shows acceptingBets true after a closeTime, unless the page is older than that")


def _order_faults(made: ContractWalk, target: str, items: Sequence[WalkedItem]) -> Iterator[Mismatch]:
    """The first two neighbours that stand in another order than the published one; of ties, the contract is silent."""
    sort, is_noted = made.plan.sort, False
    for before, after in itertools.pairwise([*made.items[-1:], *items]):
        if before["id"] == after["id"]:
            continue
        one, other = rank(sort, before), rank(sort, after)
        if one < other:
            made.is_ordered = False
            if sort in _PLAIN:
                text = f"{made.plan.shown} {after['id']} with {_shown(sort, after)} comes after {before['id']} with "
                yield wrong(target, f"is not in the order of sort={sort}: {text}{_shown(sort, before)}")
            else:
                yield note(target, f"sort={sort} does not compare {' and '.join(_COMPARED[sort])}, greatest first")
            return
        if one == other and before["id"].lower() > after["id"].lower() and not is_noted:
            is_noted = True
            yield note(target, f"equal {made.plan.shown}s are not in the order of their ids")


def rank(sort: Sort, item: WalkedItem) -> Any:
    """What a sort compares, greatest first."""
    values = {name: answers.comparable(value) for name, value in item.items()}
    return RANKS[sort](PublicMarketListItem.model_construct(**values))


def _shown(sort: Sort, item: WalkedItem) -> str:
    return " and ".join(f"{name} {item[name]}" for name in _COMPARED[sort])


# ── walks beside each other ───────────────────────────────────────────────────────────────────────────────────────


def differences(walks: Sequence[ContractWalk]) -> Iterator[Mismatch]:
    """Markets that a walk lacks though another shows them, and values that differ from walk to walk."""
    known = dict[str, tuple[WalkedItem, WalkPlan]]()
    for made in walks:
        for item in made.items:
            other, plan = known.setdefault(item["id"], (item, made.plan))
            text = unlike(item, other)
            if text:
                yield wrong(
                    made.plan.target,
                    f"{made.plan.shown} {item['id']} has {text} in {plan}: these are of different states",
                )
    for market_id, (item, plan) in known.items():
        yield from _absences(walks, market_id, item, plan)


def unlike(shown: WalkedItem, other: WalkedItem) -> str | None:
    """The first property of the same name that has another value in another place; None if all are equal."""
    for name in shown:
        if name == "markets":
            text = _unlike_markets(shown[name], other[name]) if name in other else None
            if text:
                return text
        elif name in other and answers.comparable(shown[name]) != answers.comparable(other[name]):
            return f"{name} {shown[name]!r:.60} here, and {other[name]!r:.60}"
    return None


def _unlike_markets(shown: Sequence[WalkedItem], other: Sequence[WalkedItem]) -> str | None:
    """The same of the markets of a question."""
    for place, (one, another) in enumerate(zip(shown, other, strict=False)):
        text = unlike(one, another)
        if text:
            return f"market {one['id']!s} at place {place + 1}, which has {text}"
    return None if len(shown) == len(other) else f"{counted(len(shown), 'market')} here, and {len(other)}"


def _absences(walks: Sequence[ContractWalk], market_id: str, item: WalkedItem, plan: WalkPlan) -> Iterator[Mismatch]:
    """Walks that lack a market which `plan` shows; or that one, if nobody else shows it where several should."""
    disordered = {made.plan.sort for made in walks if not made.is_ordered}
    lacking = [
        (made, end)
        for made in walks
        if market_id not in made.ids and (end := _is_missed(made, item, is_ordered=made.plan.sort not in disordered))
    ]
    showing = [made for made in walks if market_id in made.ids]
    if len(showing) == 1 and len(lacking) > 1:
        text = f"{plan.shown} {market_id} is in {plan} alone, and not in {lacking[0][0].plan}"
        yield wrong(plan.target, f"{text}: these are of different states")
        return
    for made, end in lacking:
        what = f"{plan.shown} {market_id} with {_shown(made.plan.sort, item)}, which {plan} shows"
        yield wrong(made.plan.target, f"{end}: it lacks {what}")


def _is_missed(made: ContractWalk, item: WalkedItem, *, is_ordered: bool) -> str | None:
    """What is wrong with a walk that lacks an item, if it must have it: all before the last that it has, or all."""
    if not made.is_comparable or item["status"] not in contract.STATES_OF_FILTER[made.plan.status]:
        return None
    sort = made.plan.sort
    if is_ordered and made.items and rank(sort, item) > rank(sort, made.items[-1]):
        return f"the walk through {made.plan} has a gap"
    return f"nextCursor is null too early in the walk through {made.plan}" if made.is_whole else None
