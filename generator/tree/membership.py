"""Which lists show a market, or a question: what determines it, for each. Pure."""

from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import Annotated, TypeAlias

from pydantic import StringConstraints

from generator.api import keys
from generator.api.contract import MARKET_STATUSES, SORTS, STATES_OF_FILTER, MarketStatus

#: What determines the lists that show a market: its status, and `<status>.<category>` per category that has lists;
#: with `questions/` before it, the same of the row that shows it in lists of questions.
Membership: TypeAlias = Annotated[
    str, StringConstraints(pattern=rf"^({keys.OF_QUESTIONS})?({'|'.join(MARKET_STATUSES)})(\.[a-z0-9-]+)?$")
]
#: The memberships of every public market, by id, and question, by its reference; none for a market that no list holds.
Memberships: TypeAlias = Mapping[str, tuple[Membership, ...]]


def memberships_of(state: MarketStatus, categories: Iterable[str], of: str = "") -> tuple[Membership, ...]:
    """The memberships of what lists show; `categories` (slugs) are those of its categories that have lists.

    `of` begins the names of the lists: nothing for markets.
    """
    return _memberships_of(of + state, tuple(sorted(categories)))


@lru_cache(maxsize=10_000)
def _memberships_of(state: str, categories: tuple[str, ...]) -> tuple[Membership, ...]:
    """One object for all markets that are in the same lists."""
    return (state, *(f"{state}{keys.CATEGORY_SEPARATOR}{category}" for category in categories))


def lists_of(memberships: Iterable[Membership]) -> frozenset[str]:
    """The names of all lists that hold a market with one of these memberships; search index and downloads hold all.

    Those of a question are in lists of questions alone.
    """
    found = frozenset[str]().union(*map(_lists_of, set(memberships)))
    is_market = any(not name.startswith(keys.OF_QUESTIONS) for name in found)
    return found | {*keys.INDEXED} if is_market else found


@cache
def _lists_of(membership: Membership) -> frozenset[str]:
    of = keys.OF_QUESTIONS if membership.startswith(keys.OF_QUESTIONS) else ""
    state, _, category = membership.removeprefix(of).partition(keys.CATEGORY_SEPARATOR)
    return frozenset(
        of + keys.list_name(status, sort, category or None)
        for status, selected in STATES_OF_FILTER.items()
        for sort in SORTS
        if state in selected
    )


def in_lists(memberships: Iterable[Membership], lists: Collection[str]) -> tuple[Membership, ...]:
    """Those of the memberships by which a market may be in one of the lists."""
    return tuple(membership for membership in memberships if not _lists_of(membership).isdisjoint(lists))


@lru_cache(maxsize=10_000)
def merged(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """The values of both in order: one object for all markets that have the same."""
    return tuple(sorted({*some, *others}))
