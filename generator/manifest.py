"""The record of a build: which generations exist, what is current, what is retired and since when. Pure.

What the manifest does not name does not exist: a generation on disk that it does not know is a leftover.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from generator import keys
from generator.contract import SORTS, STATES_OF_FILTER, MarketStatus

#: Raised when an older program could misread the file.
FORMAT: Final = 1
_DIGEST_LENGTH: Final = 32


Lists: TypeAlias = Mapping[str, "Current"]
#: The states of every public market by which lists hold it, by id; none for one that no list holds.
States: TypeAlias = Mapping[str, tuple[MarketStatus, ...]]


class Record(BaseModel):
    """Base of what is kept as JSON: camel case, nothing unknown, nothing changed later."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_alias=True, validate_by_name=True
    )


class Current(Record):
    """The generation a list's first pages lead to: `count` items, `bytes` in its immutable pages."""

    generation: str
    count: int
    bytes: int


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


class Manifest(Record):
    """One state of the output folder. `complete` is false from the moment a build begins to replace files to its end.

    `settings` are those that shape what is published. `is_clock_set` tells that somebody set `as_of` by hand.
    `objects` maps the key of every mutable object to a digest of its bytes and headers. `markets` maps the id of every
    public market to the states it has had in the generations that exist, which tells the lists that may hold it.
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
    markets: Mapping[str, tuple[MarketStatus, ...]]

    def emptied(self) -> "Manifest":
        """The record of a folder in which nothing was built yet, otherwise like this one."""
        nothing = {"complete": False, "lists": {}, "retired": (), "objects": {}, "markets": {}}
        return self.model_copy(update=nothing)

    def generations(self) -> dict[tuple[str, str], Current]:
        """Every generation that exists, by list and name."""
        retired: dict[tuple[str, str], Current] = {(one.list, one.generation): one for one in self.retired}
        return retired | {(name, one.generation): one for name, one in self.lists.items()}

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


def intend(previous: Manifest, lists: Lists, states: States, now: str) -> Manifest:
    """Record, before anything leads to them, the generations a build is about to make reachable.

    A build that is killed after this leaves generations that first pages may lead to; noted as retired, they are kept
    for the walks in them and deleted in time, like any other.
    """
    known = previous.generations()
    new = {name: one for name, one in lists.items() if (name, one.generation) not in known}
    had = {market_id: {*before} for market_id, before in previous.markets.items()}
    for market_id, held in states.items():
        had.setdefault(market_id, set()).update(held)
    return previous.model_copy(
        update={
            "complete": False,
            "retired": (*previous.retired, *_retired(new, now, partial=True)),
            "markets": _sorted(had),
        }
    )


def settle(previous: Manifest, built: Manifest, states: States, lifetime: timedelta, now: str) -> Manifest:
    """Complete the record of a build with what the previous one leaves behind: retired generations, old states.

    `now` is the clock that ages are counted by: the build's own instant in a folder, the store's clock in a store.
    """
    retired = tuple(one for one in _retirements(previous, built, states, now) if not one.is_due(now, lifetime))
    retained = {one.list for one in retired}
    had = {market_id: {*held} for market_id, held in states.items()}
    for market_id in had.keys() & previous.markets.keys():
        had[market_id].update(state for state in previous.markets[market_id] if retained & lists_of([state]))
    return built.model_copy(update={"complete": True, "retired": retired, "markets": _sorted(had)})


def _retirements(previous: Manifest, built: Manifest, states: States, now: str) -> Iterator[Retired]:
    gone = previous.markets.keys() - states.keys()
    withdrawn = lists_of(state for market_id in gone for state in previous.markets[market_id])
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


def _sorted(had: Mapping[str, set[MarketStatus]]) -> dict[str, tuple[MarketStatus, ...]]:
    return {market_id: tuple(sorted(states)) for market_id, states in sorted(had.items())}


def minutes_between(earlier: str, later: str) -> float:
    """The time from one instant to another; negative when they are the other way round."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / 60


def lists_of(states: Iterable[MarketStatus]) -> frozenset[str]:
    """The names of all lists that hold markets of one of these states."""
    wanted = set(states)
    return frozenset(
        keys.list_name(status, sort)
        for status, selected in STATES_OF_FILTER.items()
        for sort in SORTS
        if not wanted.isdisjoint(selected)
    )
