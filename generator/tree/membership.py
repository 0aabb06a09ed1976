"""Memberships, which say in which lists a market is, and the names of those lists. Pure."""

from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import Annotated, TypeAlias

from pydantic import StringConstraints

from generator.api import keys
from generator.api.contract import MARKET_STATUSES, SORTS, STATES_OF_FILTER, MarketStatus

#: What determines the lists of a market: its status, and `<status>.<category>` per category that has lists.
Membership: TypeAlias = Annotated[str, StringConstraints(pattern=rf"^({'|'.join(MARKET_STATUSES)})(\.[a-z0-9-]+)?$")]
#: The memberships of every public market, by id; none for a market that no list holds.
Memberships: TypeAlias = Mapping[str, tuple[Membership, ...]]


def memberships_of(state: MarketStatus, categories: Iterable[str]) -> tuple[Membership, ...]:
    """The memberships of a market that lists show; `categories` (slugs) are those of its categories that have lists."""
    return _memberships_of(state, tuple(sorted(categories)))


@lru_cache(maxsize=10_000)
def _memberships_of(state: MarketStatus, categories: tuple[str, ...]) -> tuple[Membership, ...]:
    """One object for all markets that are in the same lists."""
    return (state, *(f"{state}{keys.CATEGORY_SEPARATOR}{category}" for category in categories))


def lists_of(memberships: Iterable[Membership]) -> frozenset[str]:
    """The names of all lists that hold a market with one of these memberships; search index and downloads hold all."""
    found = frozenset[str]().union(*map(_lists_of, set(memberships)))
    return found | {*keys.INDEXED} if found else found


@cache
def _lists_of(membership: Membership) -> frozenset[str]:
    state, _, category = membership.partition(keys.CATEGORY_SEPARATOR)
    return frozenset(
        keys.list_name(status, sort, category or None)
        for status, selected in STATES_OF_FILTER.items()
        for sort in SORTS
        if state in selected
    )


def in_lists(memberships: Iterable[Membership], lists: Collection[str]) -> tuple[Membership, ...]:
    """Those of the memberships by which a market may be in one of the lists."""
    return tuple(membership for membership in memberships if not _lists_of(membership).isdisjoint(lists))


def union(before: Mapping[str, Iterable[str]], now: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """The values of both, by key; keys and values are sorted."""
    found = {key: _merged((), tuple(values)) for key, values in now.items()}
    for key, values in before.items():
        found[key] = _merged(found.get(key, ()), tuple(values))
    order = sorted(found)
    return found if order == [*found] else {key: found[key] for key in order}


@lru_cache(maxsize=10_000)
def _merged(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """The values of both in order: one object for all markets that have the same."""
    return tuple(sorted({*some, *others}))
