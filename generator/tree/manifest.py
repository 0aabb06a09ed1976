"""The record of a build: which generations exist, what is current, what is retired and since when. Pure.

What the manifest does not name does not exist: a generation on disk that it does not know is a leftover.
"""

import hashlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from generator.api import keys
from generator.api.contract import MARKET_STATUSES, SORTS, STATES_OF_FILTER, MarketStatus

#: Raised when an older program could misread the file.
FORMAT: Final = 1
_DIGEST_LENGTH: Final = 32
_NONE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})


Lists: TypeAlias = Mapping[str, "Current"]
#: What decides which lists hold a market: its state, and `<state>.<category>` for each of its categories with lists.
Membership: TypeAlias = Annotated[str, StringConstraints(pattern=rf"^({'|'.join(MARKET_STATUSES)})(\.[a-z0-9-]+)?$")]
#: The memberships of every public market, by id; none for a market that no list holds.
Memberships: TypeAlias = Mapping[str, tuple[Membership, ...]]
#: The slugs under which a market's detail may be found besides its id, by the market's id.
Slugs: TypeAlias = Mapping[str, tuple[str, ...]]


class StoredModel(BaseModel):
    """Base of what is kept as JSON: camel case, nothing unknown, nothing changed later."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_alias=True, validate_by_name=True
    )


class Current(StoredModel):
    """The generation a list's first pages lead to: `count` items, `bytes` in its immutable objects.

    `chunks` are the names of its chunks, in order, in the layout that has them.
    """

    generation: str
    count: int
    bytes: int
    chunks: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)

    def as_current(self) -> "Current":
        """The same generation, without what it is besides."""
        return Current(generation=self.generation, count=self.count, bytes=self.bytes, chunks=self.chunks)


class Retired(Current):
    """A generation that walks may still be in.

    `withdrawn`: it holds a market that must not be public any more. `partial`: the run that wrote it did not end, so
    it may be incomplete.
    """

    list: str
    retired_at: str
    withdrawn: bool = False
    partial: bool = False

    def is_due(self, now: str, lifetime: timedelta) -> bool:
        """Whether the generation may be deleted: its cursors are older than their lifetime, or it was withdrawn."""
        age = datetime.fromisoformat(now) - datetime.fromisoformat(self.retired_at)
        return self.withdrawn or age > lifetime


class _Format(BaseModel):
    format: int


class Manifest(StoredModel):
    """One state of the output folder. `complete` is false from the moment a build begins to replace files to its end.

    `settings` are those that shape what is published. `is_clock_set` tells that somebody set `as_of` by hand.
    `objects` maps the key of every mutable object to a digest of its bytes and headers. `markets` maps the id of every
    public market to the memberships it has had in the generations that exist, which tells the lists that may hold it.
    """

    format: int = FORMAT
    complete: bool
    as_of: str
    is_clock_set: bool = False
    version: str
    variant: str
    layout: str
    settings: Mapping[str, str] = {}
    lists: Mapping[str, Current]
    retired: tuple[Retired, ...]
    objects: Mapping[str, str]
    markets: Memberships
    slugs: Slugs = Field(default_factory=dict)

    def emptied(self) -> "Manifest":
        """The record of a folder in which nothing was built yet, otherwise like this one."""
        nothing = {"complete": False, "lists": {}, "retired": (), "objects": {}, "markets": {}, "slugs": {}}
        return self.model_copy(update=nothing)

    def details(self, market_id: str) -> Iterator[str]:
        """Every key under which the market's detail may be found."""
        yield keys.detail(market_id)
        yield from (keys.detail_by_slug(slug) for slug in self.slugs.get(market_id, ()))

    def current(self) -> dict[tuple[str, str], Current]:
        """Every generation that first pages lead to, by list and name."""
        return {(name, one.generation): one for name, one in self.lists.items()}

    def generations(self) -> dict[tuple[str, str], Current]:
        """Every generation that exists, by list and name."""
        retired: dict[tuple[str, str], Current] = {(one.list, one.generation): one for one in self.retired}
        return retired | self.current()

    def encoded(self) -> bytes:
        """The file's bytes: the same state gives the same bytes."""
        return self.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def format_of(content: bytes) -> int:
    """The format of a file, of which a newer one may hold anything else; raise ValidationError when it has none."""
    return _Format.model_validate_json(content).format


def digest(key: str, body: bytes) -> str:
    """What decides whether an object changed: its bytes and its headers."""
    headers = "\n".join(f"{name}: {value}" for name, value in sorted(keys.headers(key).items()))
    return hashlib.sha256(f"{headers}\n\n".encode() + body).hexdigest()[:_DIGEST_LENGTH]


def intend(previous: Manifest, lists: Lists, memberships: Memberships, now: str, slugs: Slugs = _NONE) -> Manifest:
    """Record, before anything leads to them, the generations a build is about to make reachable.

    A build that is killed after this leaves generations that first pages may lead to; noted as retired, they are kept
    for the walks in them and deleted in time, like any other.
    """
    known = previous.generations()
    new = {name: one for name, one in lists.items() if (name, one.generation) not in known}
    markets, found_by = _union(previous.markets, memberships), _union(previous.slugs, slugs)
    retired = (*previous.retired, *_retired(new, now, partial=True))
    return previous.model_copy(update={"complete": False, "retired": retired, "markets": markets, "slugs": found_by})


def settle(previous: Manifest, built: Manifest, memberships: Memberships, lifetime: timedelta, now: str) -> Manifest:
    """Complete the record of a build with what the previous one leaves behind: retired generations, old states.

    `now` is the clock that ages are counted by: the build's own instant in a folder, the store's clock in a store.
    """
    retired = tuple(one for one in _retirements(previous, built, memberships, now) if not one.is_due(now, lifetime))
    retained = {one.list for one in retired}
    had = {market_id: {*held} for market_id, held in memberships.items()}
    for market_id in had.keys() & previous.markets.keys():
        had[market_id].update(
            membership for membership in previous.markets[market_id] if not retained.isdisjoint(_lists_of(membership))
        )
    return built.model_copy(update={"complete": True, "retired": retired, "markets": _sorted(had)})


def _retirements(previous: Manifest, built: Manifest, memberships: Memberships, now: str) -> Iterator[Retired]:
    gone = previous.markets.keys() - memberships.keys()
    withdrawn = lists_of(membership for market_id in gone for membership in previous.markets[market_id])
    current = {(name, one.generation) for name, one in built.lists.items()}
    for one in (*_earlier(previous, built, now), *_retired(previous.lists, now)):
        if (one.list, one.generation) not in current:
            yield one.model_copy(update={"withdrawn": True}) if one.list in withdrawn else one


def _earlier(previous: Manifest, built: Manifest, now: str) -> Iterator[Retired]:
    """What was retired before. Lifetimes begin anew where it is not known when the last reader was led there."""
    for one in previous.retired:
        # A run that was killed may have led readers into any of its generations until now. And the age of what was
        # retired by a clock set by hand cannot be told by the real one, nor the other way round.
        is_unknown = not previous.complete or previous.is_clock_set != built.is_clock_set
        yield one.model_copy(update={"retired_at": now}) if is_unknown else one


def _retired(lists: Lists, now: str, *, partial: bool = False) -> list[Retired]:
    return [Retired(list=name, retired_at=now, partial=partial, **dict(one)) for name, one in lists.items()]


def _union(before: Mapping[str, Iterable[str]], now: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return _sorted({one: {*before.get(one, ()), *now.get(one, ())} for one in before.keys() | now.keys()})


def minutes_between(earlier: str, later: str) -> float:
    """The time from one instant to another; negative when they are the other way round."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / 60


def _sorted(had: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    return {market_id: tuple(sorted(values)) for market_id, values in sorted(had.items())}


def memberships_of(state: MarketStatus, categories: Iterable[str]) -> tuple[Membership, ...]:
    """The memberships of a market in lists; `categories` are the slugs of those it has that have lists."""
    return (state, *sorted(f"{state}{keys.CATEGORY_SEPARATOR}{category}" for category in categories))


def lists_of(memberships_: Iterable[Membership]) -> frozenset[str]:
    """The names of all lists that hold markets of one of these memberships."""
    return frozenset[str]().union(*map(_lists_of, set(memberships_)))


@cache
def _lists_of(membership: Membership) -> frozenset[str]:
    state, _, category = membership.partition(keys.CATEGORY_SEPARATOR)
    return frozenset(
        keys.list_name(status, sort, category or None)
        for status, selected in STATES_OF_FILTER.items()
        for sort in SORTS
        if state in selected
    )
