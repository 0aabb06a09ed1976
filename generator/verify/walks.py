"""Walks through lists, and through what searches find; and the pages of a list at random positions."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from pydantic import ValidationError

from generator.api import contract, cursors, keys
from generator.api.contract import LIMIT_MAX, ErrorResponse, PublicMarketList
from generator.verify import list_pages
from generator.verify.answers import parsed
from generator.verify.inquiry import Inquiry
from generator.verify.list_pages import ListPage
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteAnswer

#: The limits of pages, in turn, of walks in which they change; and of those in which they are as large as can be.
LIMITS: Final = (20, 100, 1, 7, 50, 33, 99, 2)
LARGEST: Final = (LIMIT_MAX,)
#: What edges that cannot search say of `q`.
_NO_SEARCH: Final = contract.EXTENDED_ERRORS["q"]


def pages_of(count: int) -> int:
    """The pages of a list of `count` items, each as large as can be."""
    return max(1, -(-count // LIMIT_MAX))


@dataclass(frozen=True)
class Walk:
    """A walk through a list, or what a search finds in it, with these limits in turn; over `longest` pages at most."""

    name: str
    limits: tuple[int, ...]
    longest: int | None
    q: str = ""

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare page after page, up to the first mismatch."""
        if self.name not in asked.site.lists:
            return  # of a category whose last market is gone meanwhile
        items = asked.site.found(self.name, self.q) if self.q else asked.site.lists[self.name]
        place, cursor = 0, dict[str, str]()
        for number in range(self.longest or len(items) + 1):
            limit = self.limits[number % len(self.limits)]
            answer = asked.reader.get(
                keys.MARKETS, {**list_pages.parameters(self.name, self.q), "limit": limit, **cursor}
            )
            if self.q and _cannot_search(answer):
                return
            page, broken = parsed(answer, PublicMarketList)
            # A later page may hold fewer markets than its limit, and so may one of a search.
            sizes = range(1 if cursor or self.q else limit, limit + 1)
            wrong = list(broken)
            if page is not None:
                wrong += list_pages.unlike(asked, ListPage(self.name, answer, page), items[place:], sizes)
            yield from wrong
            if wrong or page is None or page.next_cursor is None:
                return
            place += len(page.items)
            cursor = {"cursor": page.next_cursor}


@dataclass(frozen=True)
class RandomPages:
    """The first page of a list, and others at random positions: so many `pages` in all, as large as can be."""

    name: str
    pages: int
    seed: int

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare them, and where each says that the next one begins; or walk, if the list is not the newest one."""
        later = range(1, pages_of(len(asked.site.lists[self.name])))
        rng = random.Random(f"{self.seed} {self.name}")  # noqa: S311 - which ones is no secret
        for number in (0, *sorted(rng.sample(later, min(len(later), self.pages - 1)))):
            answer = asked.reader.get(keys.MARKETS, self._parameters(asked, number * LIMIT_MAX))
            page, broken = parsed(answer, PublicMarketList)
            if not number and (page is None or not list_pages.is_newest(asked, self.name, page.next_cursor)):
                # Positions in an earlier state are others, and what changed is found only from its beginning on.
                yield from Walk(self.name, LARGEST, self.pages)(asked)
                return
            yield from broken
            if page is not None:
                yield from self._unlike(asked, number * LIMIT_MAX, ListPage(self.name, answer, page))

    def _parameters(self, asked: Inquiry, position: int) -> dict[str, object]:
        """What asks for the page at a position: its cursor is made of what is published."""
        cursor = {"cursor": cursors.mint(self.name, asked.site.generation(self.name), position)} if position else {}
        return {**list_pages.parameters(self.name), "limit": LIMIT_MAX, **cursor}

    def _unlike(self, asked: Inquiry, position: int, page: ListPage) -> Iterator[Mismatch]:
        sizes = range(1 if position else LIMIT_MAX, LIMIT_MAX + 1)
        wrong = list_pages.unlike(asked, page, asked.site.lists[self.name][position:], sizes)
        yield from wrong
        end = position + len(page.content.items)
        leads_on = page.content.next_cursor in (None, cursors.mint(self.name, asked.site.generation(self.name), end))
        if not wrong and not leads_on:
            yield Mismatch(Verdict.WRONG, page.answer.target, f"its nextCursor does not lead to item {end + 1}")


def _cannot_search(answer: SiteAnswer) -> bool:
    """Whether the edge says that it has no search, although the site has an index."""
    if answer.status != HTTPStatus.BAD_REQUEST:
        return False
    try:
        details = ErrorResponse.model_validate_json(answer.body).details or ()
    except ValidationError:
        return False
    return any(one.path == ["q"] and one.message == _NO_SEARCH for one in details)
