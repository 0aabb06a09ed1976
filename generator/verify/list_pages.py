"""Whether a page of a list is the right one, and what leads to the next."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json

from generator.api import cursors, keys
from generator.api.contract import PublicMarketList
from generator.verify.inquiry import Inquiry, are_sorted, of_items, stale
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteAnswer


def parameters(name: str, q: str = "") -> dict[str, str]:
    """The parameters by which a list is asked for, or what a search finds in it."""
    filtered, _, sort = name.partition("/")
    status, _, category = filtered.partition(keys.CATEGORY_SEPARATOR)
    chosen = {"status": status, "sort": sort, "category": category, "q": q}
    return {name: value for name, value in chosen.items() if value}


class ListPage(NamedTuple):
    """A page of the list of this name: the answer, and what it holds."""

    name: str
    answer: SiteAnswer
    content: PublicMarketList


def unlike(asked: Inquiry, shown_page: ListPage, rest: Sequence[bytes], sizes: range) -> list[Mismatch]:
    """What is wrong with a page: it has one of these sizes if more follow, and the first of the `rest`.

    It can be stale only if its cursor is not one of the list as it must be now.
    """
    name, answer, page = shown_page
    shown = from_json(answer.body)["items"]
    has_more = page.next_cursor is not None
    wanted = [from_json(item) for item in (rest[: sizes[-1]] if has_more else rest)]
    has_right_size = len(shown) in sizes if has_more else len(shown) <= sizes[-1]
    sort: Any = name.partition("/")[2]
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
