"""Walks through lists: pages and cursors, the filter, the order, and that no market is missing or comes twice."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from generator.api import contract
from generator.api.contract import PublicMarketList, PublicMarketListItem, Sort, StatusFilter
from generator.site.catalog import RANKS
from generator.verify.contract import answers
from generator.verify.contract.subject import LIST, Subject, broken, wrong
from generator.verify.mismatches import Mismatch

#: An item of a list, parsed.
WalkedItem = Mapping[str, Any]

#: The most pages of a walk.
_MOST_PAGES: Final = 6
#: What the published order of each sort compares.
_COMPARED: Final[Mapping[Sort, tuple[str, ...]]] = {
    "popular": ("traderCount", "volume"),
    "activity": ("lastActivityAt",),
    "volume": ("volume",),
    "new": ("createdAt",),
    "ended": ("resolvedAt", "closeTime"),
}


@dataclass(frozen=True)
class WalkPlan:
    """A list, and the limits of its pages in turn."""

    status: StatusFilter
    sort: Sort
    limits: tuple[int, ...]

    @property
    def target(self) -> str:
        """That of its first page."""
        return self.page(0, None)

    def page(self, number: int, cursor: str | None) -> str:
        """The target of a page, by its number from 0."""
        limit = self.limits[number % len(self.limits)]
        following = "" if cursor is None else f"&cursor={quote(cursor, safe='')}"
        return f"{LIST}?status={self.status}&sort={self.sort}&limit={limit}{following}"

    def __str__(self) -> str:
        return f"status={self.status}&sort={self.sort}&limit={','.join(map(str, self.limits))}"


#: Each sort, each filter, the same list in different pages, and limits that change in mid-walk.
PLANS: Final = (
    WalkPlan("open", "popular", (100,)),
    WalkPlan("open", "popular", (20, 7, 50, 1, 33, 100)),
    WalkPlan("open", "popular", (9,)),
    WalkPlan("open", "new", (20,)),
    WalkPlan("open", "activity", (33,)),
    WalkPlan("open", "volume", (20,)),
    WalkPlan("open", "ended", (50,)),
    WalkPlan("all", "new", (100,)),
    WalkPlan("all", "popular", (50,)),
    WalkPlan("archive", "ended", (20,)),
    WalkPlan("closed", "volume", (7,)),
    WalkPlan("resolved", "activity", (20,)),
    WalkPlan("cancelled", "new", (7,)),
)


@dataclass
class ContractWalk:
    """What a walk found: the items in order, whether it came to the end, and what is wrong with its pages.

    It `is_comparable` unless something is so wrong that nobody can tell what else it should have.
    """

    plan: WalkPlan
    items: list[WalkedItem] = field(default_factory=list)
    is_whole: bool = False
    is_comparable: bool = True
    found: list[Mismatch] = field(default_factory=list)

    @property
    def ids(self) -> set[str]:
        """The ids of its items."""
        return {item["id"] for item in self.items}


def walk(asked: Subject, plan: WalkPlan) -> ContractWalk:
    """Walk through a list, over some pages at most, up to what cannot be gone on from."""
    made = ContractWalk(plan)
    cursor, cursors = None, set[str]()
    for number in range(_MOST_PAGES):
        answer = asked.ask(plan.page(number, cursor))
        page, faults = answers.content(answer, PublicMarketList)
        made.found += [broken(answer.target, text) for text in faults]
        if page is None:
            made.is_comparable = False
            return made
        limit = plan.limits[number % len(plan.limits)]
        following = page["nextCursor"]
        may_be_short = number > 0 and len(plan.limits) > 1
        sizes = _size_faults(page, limit, may_be_short=may_be_short)
        made.found += [broken(answer.target, text) for text in sizes]
        if following in cursors or (number and page["items"] == made.items[-len(page["items"]) :] != []):
            made.found.append(wrong(answer.target, "the nextCursor leads to the same page again"))
            made.is_comparable = False
            return made
        disorder = [*_order_faults([*made.items[-1:], *page["items"]], plan.sort)]
        made.is_comparable = made.is_comparable and not disorder
        made.found += [wrong(answer.target, text) for text in (*disorder, *_item_faults(made, page["items"]))]
        made.items += page["items"]
        if following is None or not page["items"]:
            made.is_whole = following is None
            return made
        cursors.add(following)
        cursor = following
    return made


def _size_faults(page: Mapping[str, Any], limit: int, *, may_be_short: bool) -> Iterator[str]:
    size, is_last = len(page["items"]), page["nextCursor"] is None
    if size > limit:
        yield f"has {size} items, more than its limit of {limit}"
    elif size == 0 and not is_last:
        yield "has no item, yet a nextCursor"
    elif size < limit and not is_last and not may_be_short:
        yield f"has {size} items of {limit}, yet a nextCursor: its limit is not kept"


def _item_faults(made: ContractWalk, items: Sequence[WalkedItem]) -> Iterator[str]:
    """What is wrong with the items of a page, seen alone and after those before it."""
    plan, known = made.plan, made.ids
    for item in items:
        if item["status"] not in contract.STATES_OF_FILTER[plan.status]:
            yield f"shows market {item['id']}, which is {item['status']}, under status={plan.status}"
        if item["status"] in contract.UNSETTLED and item["resolution"] is not None:
            yield f"shows market {item['id']}, which is {item['status']}, with a resolution"
        if item["id"] in known:
            yield f"shows market {item['id']} again: an earlier page has it"
        known.add(item["id"])


def _order_faults(items: Sequence[WalkedItem], sort: Sort) -> Iterator[str]:
    """The first two neighbours that stand in another order than the published one."""
    for before, after in itertools.pairwise(items):
        if before["id"] == after["id"]:
            continue
        one, other = rank(sort, before), rank(sort, after)
        if one < other:
            yield (
                f"is not in the order of sort={sort}: market {after['id']} with {_shown(sort, after)} comes after "
                f"{before['id']} with {_shown(sort, before)}"
            )
            return
        if one == other and before["id"].lower() > after["id"].lower():
            yield (
                f"equal markets are not in the order of their ids: {after['id']} comes after {before['id']}, both with "
                f"{_shown(sort, after)}"
            )
            return


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
                    made.plan.target, f"market {item['id']} has {text} in {plan}: these are of different states"
                )
    for market_id, (item, plan) in known.items():
        yield from _absences(walks, market_id, item, plan)


def unlike(shown: WalkedItem, other: WalkedItem) -> str | None:
    """The first property of the same name that has another value in another place; None if all are equal."""
    for name in shown:
        if name in other and answers.comparable(shown[name]) != answers.comparable(other[name]):
            return f"{name} {shown[name]!r:.60} here, and {other[name]!r:.60}"
    return None


def _absences(walks: Sequence[ContractWalk], market_id: str, item: WalkedItem, plan: WalkPlan) -> Iterator[Mismatch]:
    """Walks that lack a market which `plan` shows; or that one, if nobody else shows it where several should."""
    lacking = [(made, end) for made in walks if market_id not in made.ids and (end := _is_missed(made, item))]
    showing = [made for made in walks if market_id in made.ids]
    if len(showing) == 1 and len(lacking) > 1:
        text = f"market {market_id} is in {plan} alone, and not in {lacking[0][0].plan}: these are of different states"
        yield wrong(plan.target, text)
        return
    for made, end in lacking:
        what = f"market {market_id} with {_shown(made.plan.sort, item)}, which {plan} shows"
        yield wrong(made.plan.target, f"{end}: it lacks {what}")


def _is_missed(made: ContractWalk, item: WalkedItem) -> str | None:
    """What is wrong with a walk that lacks an item, if it must have it: all before the last that it has, or all."""
    if not made.is_comparable or item["status"] not in contract.STATES_OF_FILTER[made.plan.status]:
        return None
    sort = made.plan.sort
    if made.items and rank(sort, item) > rank(sort, made.items[-1]):
        return f"the walk through {made.plan} has a gap"
    return f"nextCursor is null too early in the walk through {made.plan}" if made.is_whole else None
