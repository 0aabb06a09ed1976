"""The manifest of a build: which generations exist, which are current, and which are retired since when. Pure.

What the manifest does not name does not exist: any other generation on disk is a leftover.
"""

import hashlib
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter

from generator.api import keys
from generator.api.contract import Variant
from generator.errors import DamageError
from generator.models import replaced
from generator.tree.membership import Memberships, in_lists, lists_of, merged
from generator.tree.stored import Instant, StoredModel


def union(before: Mapping[str, Iterable[str]], now: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """The values of both, by key; keys and values are sorted."""
    found = {key: merged((), tuple(values)) for key, values in now.items()}
    for key, values in before.items():
        found[key] = merged(found.get(key, ()), tuple(values))
    order = sorted(found)
    return found if order == [*found] else {key: found[key] for key in order}


#: Increase it when an older program could misread the file.
FORMAT: Final = 2
#: In it, a state may have had an archive of days.
OLDEST_FORMAT: Final = 1
_DIGEST_LENGTH: Final = 32


#: The slugs under which a detail may be found besides its id, by the market's id, or the question's reference.
Slugs: TypeAlias = Mapping[str, tuple[str, ...]]
#: The key that the operator's site has for a market or question, by the same. It is private.
SiteKeyOf: TypeAlias = Mapping[str, str]


class Current(StoredModel):
    """The generation that a list's first pages lead to: `count` items, `bytes` in its immutable objects.

    `chunks` are the names of its chunks in order, in the layout that has them.
    """

    generation: str
    count: int
    bytes: int
    chunks: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)

    def with_chunks(self, names: tuple[str, ...]) -> Self:
        """The same generation with these chunk names."""
        return self if self.chunks == names else replaced(self, chunks=names)

    def as_current(self) -> "Current":
        """The same generation without the fields of a subclass."""
        return Current.model_validate({name: getattr(self, name) for name in Current.model_fields})


#: The current generations of all families by name; those of the former archive are left out.
CurrentGenerations: TypeAlias = Annotated[
    Mapping[str, Current], AfterValidator(lambda found: {name: found[name] for name in found if name != keys.ARCHIVE})
]


class Retired(Current):
    """A generation that walks may still be in.

    `withdrawn`: it holds a market that is no longer public. `partial`: its run was killed, so it may be incomplete.
    `may_be_current`: a run that has not ended may have led first pages there.
    """

    list: str
    retired_at: Instant
    withdrawn: bool = False
    partial: bool = False
    may_be_current: bool = Field(default=False, exclude_if=operator.not_)

    @property
    def pair(self) -> tuple[str, str]:
        """The list and the generation's name."""
        return self.list, self.generation

    def is_due(self, now: str, lifetime: timedelta) -> bool:
        """Whether the generation may be deleted: retired for longer than the lifetime of cursors, or withdrawn."""
        age = datetime.fromisoformat(now) - datetime.fromisoformat(self.retired_at)
        return self.withdrawn or age > lifetime


#: Retired generations, without those of the former archive.
RetiredGenerations: TypeAlias = Annotated[
    tuple[Retired, ...], AfterValidator(lambda found: tuple(entry for entry in found if entry.list != keys.ARCHIVE))
]


class Manifest(StoredModel):
    """One state of the output folder. `complete` is false while a build replaces files.

    `settings` are those that shape what is published, as JSON values by dotted key. `is_clock_set`: the operator chose
    `as_of`; in a state that follows another, ages count by such a clock, as every run so far had one. `is_demo`: its
    markets are made up.
    `current` maps every family (see `tree.generations`) to its current generation: each list by name, the search index,
    the dump and the change feed. `objects` maps the key of every mutable object to a digest of its bytes and headers.
    `markets` maps the id of every public market to its memberships in all generations that exist, and so to the lists
    that may hold it; and the reference of every public question to its own.

    `site_keys` are those of markets on the operator's site. Nothing published says them but the links that are made of
    them; a takedown makes these again. `members` maps the reference of a question to its markets, by their ids.
    `question_counts` are those of the last state that was completed: questions, markets in them, and labels of these
    other than their own question. While a run replaces objects, `leaving` are the questions that the state which it
    makes lacks: nobody makes them again because one of their markets goes.

    Of a large manifest, only the header is stored (see `tree.state`): `state` names the file or object that says the
    rest but the times of `retirements`, and `market_count` counts its markets. In a folder, while a build that began at
    `begun_at` replaces files, `intended` names the state that it will leave (see `intend`).
    """

    format: int = FORMAT
    complete: bool
    as_of: Instant
    is_clock_set: bool = False
    is_demo: bool = Field(default=False, exclude_if=operator.not_)
    version: str
    variant: Variant
    layout: Literal["pages", "chunks"]
    settings: Mapping[str, Any] = {}
    current: CurrentGenerations
    retired: RetiredGenerations
    objects: Mapping[str, str]
    markets: Memberships
    slugs: Slugs = Field(default_factory=dict)
    site_keys: SiteKeyOf = Field(default_factory=dict, exclude_if=operator.not_)
    members: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, exclude_if=operator.not_)
    question_counts: tuple[int, int, int] = Field(default=(0, 0, 0), exclude_if=lambda counts: not any(counts))
    leaving: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    state: str = Field(default="", exclude_if=operator.not_)
    retirements: tuple[Instant, ...] = Field(default=(), exclude_if=operator.not_)
    intended: str = Field(default="", exclude_if=operator.not_)
    begun_at: Instant | Literal[""] = Field(default="", exclude_if=operator.not_)
    market_count: int = Field(default=0, exclude_if=operator.not_)

    @property
    def is_first(self) -> bool:
        """Whether no build or publish has ended there: the first one is at work, or was cut short.

        A takedown after that removes markets, and puts no list: which these would have been, nothing tells.
        """
        # Of a record whose state is lost, only the number of its markets is known.
        return not self.lists() and not (self.complete and self.market_count)

    @property
    def may_have_archive(self) -> bool:
        """Whether a former program wrote this, so that objects of its archive of days may be there."""
        return self.format < FORMAT

    def emptied(self) -> "Manifest":
        """The manifest of a folder without a build, otherwise like this one."""
        nothing: dict[str, Any] = {"objects": {}, "markets": {}, "slugs": {}, "site_keys": {}, "members": {}}
        return replaced(self, complete=False, current={}, retired=(), question_counts=(0, 0, 0), **nothing)

    def ids(self) -> AbstractSet[str]:
        """The ids of all public markets."""
        if any(map(keys.is_question_reference, self.markets)):
            return {reference for reference in self.markets if not keys.is_question_reference(reference)}
        return self.markets.keys()

    def questions(self) -> set[str]:
        """The references of all public questions."""
        return {*filter(keys.is_question_reference, self.markets)}

    def details(self, reference: str) -> Iterator[str]:
        """Every key of the detail of a market or question, once."""
        slugs = self.slugs.get(reference, ())
        yield from dict.fromkeys(key for slug in (*slugs, None) for key in keys.details(reference, slug))

    def all_details(self, references: Iterable[str]) -> set[str]:
        """Every key of the details of these markets and questions."""
        return {key for reference in references for key in self.details(reference)}

    def questions_of(self, ids: AbstractSet[str]) -> set[str]:
        """The references of the questions that have one of these markets."""
        return {reference for reference, markets in self.members.items() if not ids.isdisjoint(markets)}

    def showing(self, references: AbstractSet[str]) -> set[str]:
        """Every key of what shows these markets and questions, and can be made again if it shows anything else.

        That are their details, and those of questions with such a market; without definitions, nothing else tells what
        such a detail says.
        """
        held = self.questions_of(references) if keys.DUMPS in self.current else set[str]()
        return self.all_details(references | held)

    def lists(self) -> dict[str, Current]:
        """The current generations of lists alone."""
        return {name: current for name, current in self.current.items() if name not in keys.INDEXED}

    def current_generations(self) -> dict[tuple[str, str], Current]:
        """Every current generation, by family and name."""
        return {(name, current.generation): current for name, current in self.current.items()}

    def generations(self) -> dict[tuple[str, str], Current]:
        """Every generation that exists, by family and name."""
        retired: dict[tuple[str, str], Current] = {generation.pair: generation for generation in self.retired}
        return retired | self.current_generations()

    def encoded(self) -> bytes:
        """The file's bytes: the same state gives the same bytes."""
        # Directly to bytes: a str would take as much memory again.
        return _MANIFEST.dump_json(self, by_alias=True, indent=1) + b"\n"


_MANIFEST: Final = TypeAdapter(Manifest)


def digest(key: str, body: bytes) -> str:
    """A digest of an object's bytes and headers: it changed when the digest did."""
    return hashlib.sha256(_head(tuple(keys.headers(key).items())) + body).hexdigest()[:_DIGEST_LENGTH]


def intact(key: str, body: bytes, wanted: str | None) -> bytes:
    """An object's bytes; raise DamageError unless they have the `wanted` digest, if that is known."""
    if wanted is not None and digest(key, body) != wanted:
        raise DamageError(key)
    return body


@cache
def _head(headers: tuple[tuple[str, str], ...]) -> bytes:
    """The headers as bytes: few differ, and every object is digested with its own."""
    return "".join(f"{name}: {value}\n" for name, value in sorted(headers)).encode() + b"\n"


def intend(
    previous: Manifest,
    current: Mapping[str, Current],
    memberships: Memberships,
    now: str,
    built: Manifest | None = None,
) -> Manifest:
    """The manifest to save before first pages lead to the `current` generations.

    It has the slugs and keys of markets that `built` has, too. If the build is killed after this, first pages may lead
    to some of them. As retired generations they are kept for the walks in them, and deleted when due.
    """
    known = previous.generations()
    new = {name: entry for name, entry in current.items() if (name, entry.generation) not in known}
    led_to = {(name, entry.generation) for name, entry in current.items()}
    retired = tuple(
        replaced(entry, may_be_current=True) if entry.pair in led_to else entry
        for entry in (*previous.retired, *_retired(new, now, partial=True))
    )
    update: dict[str, Any] = {
        "markets": union(previous.markets, memberships),
        "leaving": tuple(sorted(previous.questions() - memberships.keys())),
    }
    if built:
        update["slugs"] = union(previous.slugs, built.slugs)
        update["site_keys"] = newest(previous.site_keys, built.site_keys)
        update["members"] = union(previous.members, built.members)
    return replaced(previous, complete=False, retired=retired, **update)


def newest(before: SiteKeyOf, now: SiteKeyOf) -> SiteKeyOf:
    """The keys of both states by market id, in order; where a market has another key now, that one."""
    return before if before == now else dict(sorted({**before, **now}.items()))


def settle(previous: Manifest, built: Manifest, memberships: Memberships, lifetime: timedelta, now: str) -> Manifest:
    """Complete the manifest of a build with what the previous one leaves: retired generations, earlier memberships.

    `now` is by the clock for ages: the operator's if `is_clock_set`; else the folder's or the store's.
    """
    built = replaced(built, is_clock_set=is_clock_set(previous, built))
    retirements = _retirements(previous, built, memberships, now)
    retired = tuple(generation for generation in retirements if not generation.is_due(now, lifetime))
    retained = {generation.list for generation in retired}
    earlier = {
        market_id: in_lists(before, retained)
        for market_id, before in previous.markets.items()
        if market_id in memberships and before != memberships[market_id]
    }
    markets = union(earlier, memberships)
    return replaced(built, complete=True, retired=retired, markets=markets)


def is_clock_set(previous: Manifest, built: Manifest) -> bool:
    """Whether ages count by the clock that the operator set: only until a run without one.

    If both clocks took turns, each would find the ages by the other unknown, and nothing would ever be due.
    """
    return previous.is_clock_set and built.is_clock_set


def retired_at(built: Manifest, planned: str, now: str) -> Manifest:
    """The manifest, or the header of one, with `now` as the time of all retirements that were `planned` for another."""
    retired = tuple(
        replaced(entry, retired_at=now) if entry.retired_at == planned else entry for entry in built.retired
    )
    times = tuple(now if time == planned else time for time in built.retirements)
    return replaced(built, retired=retired, retirements=times)


def _retirements(previous: Manifest, built: Manifest, memberships: Memberships, now: str) -> Iterator[Retired]:
    withdrawn = withdrawn_lists(previous, built, previous.markets.keys() - memberships.keys())
    current = built.current_generations()
    for retired in (*_earlier(previous, built, now), *_retired(previous.current, now)):
        if retired.pair not in current:
            yield replaced(retired, withdrawn=True) if retired.list in withdrawn else retired


def withdrawn_lists(previous: Manifest, built: Manifest, gone: Collection[str]) -> frozenset[str]:
    """The lists, by name, whose retired generations must not outlive these markets and questions.

    They may show one of them, or are those of a category that ends with it: nothing says its name any more.
    """
    showing = lists_of(state for reference in gone for state in previous.markets[reference])
    if any(map(keys.is_question_reference, gone)):
        showing |= {keys.DUMPS}  # definitions
    ended = {name for name, _ in previous.generations()} - built.current.keys() if gone else set[str]()
    return showing | ended


def _earlier(previous: Manifest, built: Manifest, now: str) -> Iterator[Retired]:
    """The generations that were retired before. Where their age is unknown, it counts from `now`."""
    # Ages by a clock that the operator set and by the real clock cannot be compared.
    is_other_clock = previous.is_clock_set != built.is_clock_set
    for retired in previous.retired:
        is_later = retired.retired_at > now  # by a clock that was ahead
        if retired.may_be_current or is_later or is_other_clock:
            yield replaced(retired, retired_at=now, may_be_current=False)
        else:
            yield retired


def _retired(current: Mapping[str, Current], now: str, *, partial: bool = False) -> list[Retired]:
    return [Retired(list=name, retired_at=now, partial=partial, **dict(entry)) for name, entry in current.items()]


def minutes_between(earlier: str, later: str) -> float:
    """The minutes from one instant to another; negative if `later` is the earlier one."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / 60
