"""Walks through lists, and through what searches find; and the pages of a list at random positions."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from generator.api import contract, cursors, keys
from generator.api.contract import LIMIT_MAX, ErrorResponse, PublicMarketList
from generator.api.questions import QuestionList
from generator.verify.inquiry import Inquiry, are_sorted, of_items, stale
from generator.verify.mismatches import Mismatch, Verdict, parsed
from generator.verify.reader import SiteAnswer


def parameters(name: str, q: str = "") -> dict[str, str]:
    """The parameters by which a list is asked for, or what a search finds in it."""
    filtered, _, sort = name.removeprefix(keys.OF_QUESTIONS).partition("/")
    status, _, category = filtered.partition(keys.CATEGORY_SEPARATOR)
    chosen = {"status": status, "sort": sort, "category": category, "q": q}
    return {name: value for name, value in chosen.items() if value}


class ListPage(NamedTuple):
    """A page of the list of this name: the answer, and what it holds."""

    name: str
    answer: SiteAnswer
    content: PublicMarketList | QuestionList


def asked_for(asked: Inquiry, name: str, given: Mapping[str, object]) -> SiteAnswer:
    """The answer for a page of a list, by its name and these parameters."""
    return asked.reader.get(keys.QUESTIONS if name.startswith(keys.OF_QUESTIONS) else keys.MARKETS, given)


def page_of(name: str, answer: SiteAnswer) -> tuple[PublicMarketList | QuestionList | None, list[Mismatch]]:
    """The page of the list of this name, and how it breaks the contract."""
    return parsed(answer, QuestionList) if name.startswith(keys.OF_QUESTIONS) else parsed(answer, PublicMarketList)


def unlike(asked: Inquiry, shown_page: ListPage, rest: Sequence[bytes], sizes: range) -> list[Mismatch]:
    """What is wrong with a page: it has one of these sizes if more follow, and the first of the `rest`.

    It can be stale only if its cursor is not one of the list as it must be now.
    """
    name, answer, page = shown_page
    shown = from_json(answer.body)["items"]
    has_more = page.next_cursor is not None
    wanted = [from_json(item) for item in (rest[: sizes[-1]] if has_more else rest)]
    has_right_size = len(shown) in sizes if has_more else len(shown) <= sizes[-1]
    sort: Any = name.rpartition("/")[2]
    is_alike = shown == wanted[: len(shown)]
    if is_alike and has_right_size and has_more == (len(shown) < len(rest)):
        return []
    can_be_stale = has_right_size and are_sorted(page.items, sort) and not is_newest(asked, name, page.next_cursor)
    if not is_alike:
        return [of_items(asked, answer, shown, wanted, can_be_stale=can_be_stale)]
    since = asked.earlier.since(shown, wanted) if can_be_stale else None
    if since:
        return [stale(asked, answer, since)]
    follows = "says that more follow" if has_more else "is the last"
    text = f"has {len(shown)} items and {follows}, of {len(rest)} that are left; its limit is {sizes[-1]}"
    return [Mismatch(Verdict.WRONG, answer.target, text)]


def is_newest(asked: Inquiry, name: str, cursor: str | None) -> bool:
    """Whether a cursor leads on in the list as it must be now: its generation is named by its content."""
    try:
        return cursor is not None and cursors.read(name, cursor).generation == asked.site.generation(name)
    except cursors.CursorError:  # of a search, or of another version
        return False


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
            answer = asked_for(asked, self.name, {**parameters(self.name, self.q), "limit": limit, **cursor})
            if self.q and _cannot_search(answer):
                return
            page, broken = page_of(self.name, answer)
            # A later page may hold fewer markets than its limit, and so may one of a search.
            sizes = range(1 if cursor or self.q else limit, limit + 1)
            wrong = list(broken)
            if page is not None:
                wrong += unlike(asked, ListPage(self.name, answer, page), items[place:], sizes)
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
        if self.name not in asked.site.lists:
            return  # of questions, which cannot be told any more
        later = range(1, pages_of(len(asked.site.lists[self.name])))
        rng = random.Random(f"{self.seed} {self.name}")  # noqa: S311 - which ones is no secret
        for number in (0, *sorted(rng.sample(later, min(len(later), self.pages - 1)))):
            answer = asked_for(asked, self.name, self._parameters(asked, number * LIMIT_MAX))
            page, broken = page_of(self.name, answer)
            if not number and (page is None or not is_newest(asked, self.name, page.next_cursor)):
                # Positions in an earlier state are others, and what changed is found only from its beginning on.
                yield from Walk(self.name, LARGEST, self.pages)(asked)
                return
            yield from broken
            if page is not None:
                yield from self._unlike(asked, number * LIMIT_MAX, ListPage(self.name, answer, page))

    def _parameters(self, asked: Inquiry, position: int) -> dict[str, object]:
        """What asks for the page at a position: its cursor is made of what is published."""
        cursor = {"cursor": cursors.mint(self.name, asked.site.generation(self.name), position)} if position else {}
        return {**parameters(self.name), "limit": LIMIT_MAX, **cursor}

    def _unlike(self, asked: Inquiry, position: int, page: ListPage) -> Iterator[Mismatch]:
        sizes = range(1 if position else LIMIT_MAX, LIMIT_MAX + 1)
        wrong = unlike(asked, page, asked.site.lists[self.name][position:], sizes)
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
