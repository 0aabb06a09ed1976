"""Walks through lists, and through what searches find."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from generator.api import contract, keys
from generator.api.contract import ErrorResponse, PublicMarketList
from generator.verify.answers import parsed
from generator.verify.inquiry import Inquiry, are_sorted, of_items, stale
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteAnswer

#: The limits of pages, in turn.
LIMITS: Final = (20, 100, 1, 7, 50, 33, 99, 2)
#: What edges that cannot search say of `q`.
_NO_SEARCH: Final = contract.EXTENDED_ERRORS["q"]


@dataclass(frozen=True)
class Walk:
    """A walk through a list, or what a search finds in it, whose limit changes; over `longest` pages at most."""

    name: str
    turn: int
    longest: int | None
    q: str = ""

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare page after page, up to the first mismatch."""
        if self.name not in asked.site.lists:
            return  # of a category whose last market is gone meanwhile
        items = asked.site.found(self.name, self.q) if self.q else asked.site.lists[self.name]
        place, cursor = 0, dict[str, str]()
        for number in range(self.longest or len(items) + 1):
            limit = LIMITS[(self.turn + number) % len(LIMITS)]
            answer = asked.reader.get(keys.MARKETS, {**self._parameters(), "limit": limit, **cursor})
            if self.q and _cannot_search(answer):
                return
            page, broken = parsed(answer, PublicMarketList)
            # A later page may hold fewer markets than its limit, and so may one of a search.
            sizes = range(1 if cursor or self.q else limit, limit + 1)
            wrong = list(broken)
            if page is not None:
                wrong += self._of_page(asked, answer, page, items[place:], sizes)
            yield from wrong
            if wrong or page is None or page.next_cursor is None:
                return
            place += len(page.items)
            cursor = {"cursor": page.next_cursor}

    def _parameters(self) -> dict[str, str]:
        filtered, _, sort = self.name.partition("/")
        status, _, category = filtered.partition(keys.CATEGORY_SEPARATOR)
        chosen = {"status": status, "sort": sort, "category": category, "q": self.q}
        return {name: value for name, value in chosen.items() if value}

    def _of_page(
        self, asked: Inquiry, answer: SiteAnswer, page: PublicMarketList, rest: Sequence[bytes], sizes: range
    ) -> list[Mismatch]:
        """What is wrong with a page: it has one of these sizes if more follow, and the first of the `rest`."""
        shown = from_json(answer.body)["items"]
        has_more = page.next_cursor is not None
        wanted = [from_json(item) for item in (rest[: sizes[-1]] if has_more else rest)]
        has_right_size = len(shown) in sizes if has_more else len(shown) <= sizes[-1]
        sort: Any = self.name.partition("/")[2]
        can_be_stale = has_right_size and are_sorted(page.items, sort)
        if shown != wanted[: len(shown)]:
            return [of_items(asked, answer, shown, wanted, can_be_stale=can_be_stale)]
        if has_right_size and has_more == (len(shown) < len(rest)):
            return []
        since = asked.earlier.since(shown, wanted) if can_be_stale else None
        if since:
            return [stale(asked, answer, since)]
        follows = "says that more follow" if has_more else "is the last"
        text = f"has {len(shown)} items and {follows}, of {len(rest)} that are left; its limit is {sizes[-1]}"
        return [Mismatch(Verdict.WRONG, answer.target, text)]


def _cannot_search(answer: SiteAnswer) -> bool:
    """Whether the edge says that it has no search, although the site has an index."""
    if answer.status != HTTPStatus.BAD_REQUEST:
        return False
    try:
        details = ErrorResponse.model_validate_json(answer.body).details or ()
    except ValidationError:
        return False
    return any(one.path == ["q"] and one.message == _NO_SEARCH for one in details)
