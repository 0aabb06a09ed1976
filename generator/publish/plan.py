"""What a publish will do, and why: a pure function of what was built and what the store's record says.

For a mutable object, by its key:

    in the build        in the record     unfinished or doubted    →
    yes                 no                -                        upload: new
    yes                 same digest       no                       skip
    yes                 other digest      no                       upload: changed
    yes                 any               yes                      upload: unfinished
    no, a detail        yes               -                        delete: withdrawn
    no, another         yes               -                        delete: gone
    no                  no                yes                      delete: unfinished

For a generation:

    in the build        in the record     →
    current             whole             skip
    current             no                upload: new
    current             doomed            upload: new
    current             partial, broken   upload: unfinished
    no                  current           retain
    no                  retired           retain, or delete: expired, withdrawn, purged, broken
    no                  doomed            delete: unfinished
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from generator.api import keys
from generator.publish.record import Published
from generator.tree import layouts, manifest
from generator.tree.manifest import Current, Manifest, Retired


class Reason(StrEnum):
    """Why an object is uploaded or deleted."""

    NEW = "new"
    CHANGED = "changed"
    UNFINISHED = "left in doubt by a publisher that ended early, or found altered"
    WITHDRAWN = "its market is not public any more"
    GONE = "no longer part of the build"
    EXPIRED = "retired for longer than cursor.lifetime"
    PURGED = "retired, and --purge-retired asks for it"


@dataclass(frozen=True)
class Step:
    """One mutable object to upload or delete."""

    key: str
    reason: Reason


@dataclass(frozen=True)
class GenerationStep:
    """One generation to upload or delete, as a whole, but for the chunks (keys) it shares with others that stay."""

    list_name: str
    one: Current
    reason: Reason
    shared: frozenset[str] = frozenset()

    def object_keys(self) -> Iterator[str]:
        """The objects to upload or delete."""
        everything = layouts.object_keys(self.list_name, self.one)
        return (key for key in everything if key not in self.shared)

    @property
    def objects(self) -> int:
        """How many there are."""
        return layouts.object_count(self.one) - len(self.shared)

    @property
    def place(self) -> str:
        """Where they are, for people."""
        return f"{keys.generation_prefix(self.list_name, self.one.generation)}/ ({self.objects} objects)"


@dataclass(frozen=True)
class Plan:
    """All that a publish will do, in groups that follow one another; `final` is the manifest of the outcome.

    `withdrawn` markets disappear; `purges` asks for the end of copies in caches.
    """

    final: Manifest
    withdrawals: tuple[Step, ...]
    generations: tuple[GenerationStep, ...]
    uploads: tuple[Step, ...]
    deletions: tuple[Step, ...]
    doomed: tuple[GenerationStep, ...]
    withdrawn: frozenset[str]
    purges: bool

    def touched(self) -> tuple[str, ...]:
        """Every mutable object that is uploaded or deleted."""
        return tuple(step.key for step in (*self.withdrawals, *self.uploads, *self.deletions))

    @property
    def shows_markets(self) -> bool:
        """Whether anything is uploaded that can show a market."""
        return bool(self.generations) or any(step.key != keys.BUILD for step in self.uploads)

    @property
    def steps(self) -> int:
        """How many objects are uploaded or deleted."""
        pages = sum(step.objects for step in (*self.generations, *self.doomed))
        return pages + len(self.touched())

    def is_empty(self, published: Published) -> bool:
        """Whether the store is as it should be already, and its record, too."""
        return not self.steps and not self.purges and self.final == published.built

    def lines(self) -> Iterator[str]:
        """The plan for people, in the order in which it is carried out."""
        yield from (f"delete {step.key}: {step.reason}" for step in self.withdrawals)
        yield from (f"upload {one.place}: {one.reason}" for one in self.generations)
        yield from (f"upload {step.key}: {step.reason}" for step in self.uploads)
        yield from (f"delete {step.key}: {step.reason}" for step in self.deletions)
        yield from (f"delete {one.place}: {one.reason}" for one in self.doomed)


@dataclass(frozen=True)
class Doubts:
    """What a look at the store itself brought up: altered or unknown mutable objects, damaged generations."""

    keys: frozenset[str] = frozenset()
    generations: frozenset[tuple[str, str]] = frozenset()


NO_DOUBTS: Final = Doubts()


@dataclass(frozen=True)
class Rules:
    """How retirement is judged: by the clock `now`, for `lifetime`, or not at all; and what is doubted."""

    now: str
    lifetime: timedelta
    purges: bool = False
    doubts: Doubts = NO_DOUBTS


def plan(built: Manifest, record: Published, rules: Rules) -> Plan:
    """Compare what was built with what the store's record says."""
    before = record.built
    final = _final(built, before, rules)
    uncertain = record.unfinished() | rules.doubts.keys
    uploads = sorted(_uploads(built, before, uncertain), key=lambda step: (keys.rank(step.key), step.key))
    deletions = [*_deletions(built, before, uncertain)]
    withdrawn = frozenset(before.markets.keys() - built.markets.keys())
    first = {key for market_id in withdrawn for key in before.details(market_id)}
    return Plan(
        final=final,
        withdrawals=tuple(step for step in deletions if step.key in first),
        generations=tuple(_generations(built, before, rules.doubts.generations)),
        uploads=tuple(uploads),
        deletions=tuple(step for step in deletions if step.key not in first),
        doomed=tuple(_doomed(final, record, rules)),
        withdrawn=withdrawn,
        purges=bool(withdrawn) or rules.purges or record.are_caches_stale,
    )


def _final(built: Manifest, before: Manifest, rules: Rules) -> Manifest:
    settled = manifest.settle(before, built, built.markets, rules.lifetime, rules.now)
    broken = rules.doubts.generations
    kept = tuple(one for one in settled.retired if not rules.purges and (one.list, one.generation) not in broken)
    return settled.model_copy(update={"retired": kept})


def _uploads(built: Manifest, before: Manifest, uncertain: Collection[str]) -> Iterator[Step]:
    for key, digest in built.objects.items():
        if key in uncertain:
            yield Step(key, Reason.UNFINISHED)
        elif key not in before.objects:
            yield Step(key, Reason.NEW)
        elif digest != before.objects[key]:
            yield Step(key, Reason.CHANGED)


def _deletions(built: Manifest, before: Manifest, uncertain: Collection[str]) -> Iterator[Step]:
    withdrawn = before.markets.keys() - built.markets.keys()
    details = {key for market_id in withdrawn for key in before.details(market_id)}
    for key in sorted((before.objects.keys() | {*uncertain}) - built.objects.keys()):
        if key in details:
            yield Step(key, Reason.WITHDRAWN)
        else:
            yield Step(key, Reason.GONE if key in before.objects else Reason.UNFINISHED)


def _generations(built: Manifest, before: Manifest, broken: Collection[tuple[str, str]]) -> Iterator[GenerationStep]:
    known = before.generations()
    partial = {(one.list, one.generation) for one in before.retired if one.partial}
    whole = {pair: one for pair, one in known.items() if pair not in partial and pair not in broken}
    there = layouts.chunk_keys(whole)
    for pair, one in built.current().items():
        if pair not in known:
            yield _step(pair[0], one, Reason.NEW, there)
        elif pair not in whole:
            yield _step(pair[0], one, Reason.UNFINISHED, there)


def _doomed(final: Manifest, record: Published, rules: Rules) -> Iterator[GenerationStep]:
    gone = record.built.markets.keys() - final.markets.keys()
    withdrawn = manifest.lists_of(state for market_id in gone for state in record.built.markets[market_id])
    kept = final.generations()
    spoken_for = layouts.chunk_keys(kept)
    known = {(one.list, one.generation): one for one in record.doomed} | record.built.generations()
    for pair, one in known.items():
        if pair not in kept:
            reason = Reason.WITHDRAWN if pair[0] in withdrawn else _reason(one, rules)
            yield _step(pair[0], one, reason, spoken_for)
            spoken_for |= layouts.chunk_keys({pair: one})


def _reason(one: Current, rules: Rules) -> Reason:
    if isinstance(one, Retired) and one.withdrawn:
        return Reason.WITHDRAWN
    if isinstance(one, Retired) and one.is_due(rules.now, rules.lifetime):
        return Reason.EXPIRED
    return Reason.PURGED if rules.purges else Reason.UNFINISHED


def _step(name: str, one: Current, reason: Reason, others: set[str]) -> GenerationStep:
    """A step for a generation; `others` are the keys of chunks to leave alone."""
    shared = others & layouts.chunk_keys({(name, one.generation): one})
    return GenerationStep(name, one.as_current(), reason, frozenset(shared))
