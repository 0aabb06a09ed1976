"""The lists that are walked through, and what a walk leads to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from generator.api import keys
from generator.api.contract import Sort, StatusFilter
from generator.verify.mismatches import Mismatch

#: An item of a list, parsed.
WalkedItem = Mapping[str, Any]

LIST: Final = f"/{keys.MARKETS}"
QUESTIONS: Final = f"/{keys.QUESTIONS}"


@dataclass(frozen=True)
class WalkPlan:
    """A list, and the limits of its pages in turn."""

    status: StatusFilter
    sort: Sort
    limits: tuple[int, ...]
    resource: str = LIST

    @property
    def target(self) -> str:
        """That of its first page."""
        return self.page(0, None)

    def page(self, number: int, cursor: str | None) -> str:
        """The target of a page, by its number from 0."""
        limit = self.limits[number % len(self.limits)]
        following = "" if cursor is None else f"&cursor={quote(cursor, safe='')}"
        return f"{self.resource}?status={self.status}&sort={self.sort}&limit={limit}{following}"

    @property
    def shown(self) -> str:
        """What its items are, for people."""
        return "market" if self.resource == LIST else "row"

    def __str__(self) -> str:
        of = "" if self.resource == LIST else "questions?"
        return f"{of}status={self.status}&sort={self.sort}&limit={','.join(map(str, self.limits))}"


#: All markets.
ALL_MARKETS: Final = WalkPlan("all", "new", (100,))


#: Each sort, each filter, the same list in different pages, and limits that change in mid-walk.
PLANS: Final = (
    WalkPlan("open", "popular", (100,)),
    WalkPlan("open", "popular", (20, 7, 50, 1, 33, 100)),
    WalkPlan("open", "popular", (9,)),
    WalkPlan("open", "new", (20,)),
    WalkPlan("open", "activity", (33,)),
    WalkPlan("open", "volume", (20,)),
    WalkPlan("open", "ended", (50,)),
    ALL_MARKETS,
    WalkPlan("all", "popular", (50,)),
    WalkPlan("archive", "ended", (20,)),
    WalkPlan("closed", "volume", (7,)),
    WalkPlan("resolved", "activity", (20,)),
    WalkPlan("cancelled", "new", (7,)),
)
#: All rows of questions, and those that most readers see, in pages of several lengths.
QUESTION_PLANS: Final = (
    WalkPlan("all", "new", (100,), QUESTIONS),
    WalkPlan("open", "popular", (20, 7, 50), QUESTIONS),
    WalkPlan("archive", "ended", (50,), QUESTIONS),
)


@dataclass
class ContractWalk:
    """What a walk led to: the items in order, their ids, whether it came to the end, and what is wrong with its pages.

    It `is_comparable` unless something is so wrong that nobody can tell what else it should have, and `is_ordered`
    unless its sort compares something else than ours, or nothing.
    """

    plan: WalkPlan
    items: list[WalkedItem] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    is_whole: bool = False
    is_comparable: bool = True
    is_ordered: bool = True
    found: list[Mismatch] = field(default_factory=list)
