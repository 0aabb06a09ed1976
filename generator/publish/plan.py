"""What a publish will do, and why: a pure function of what was built and what the store's record says.

For a mutable object, by its key:

    in the build        in the record     unfinished or doubted    →
    yes                 no                -                        upload: new
    yes                 same digest       no                       skip
    yes                 other digest      no                       upload: changed
    yes                 any               yes                      upload: unfinished
    yes, a question     other digest      no                       delete and upload: remade, if its market goes
    no, a detail        yes               -                        delete: withdrawn
    no, another         yes               -                        delete: gone
    no                  no                yes                      delete: unfinished

For a generation:

    in the build        in the record     →
    current             whole             skip
    current             no                upload: new
    current             due               upload: new
    current             partial, broken   upload: unfinished
    no                  current           retain
    no                  retired           retain, or delete: expired, withdrawn, purged, broken
    no                  due               delete: unfinished
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from generator.api import keys
from generator.models import replaced
from generator.publish.record import Published
from generator.site.families import rank
from generator.tree import generations, manifest
from generator.tree.manifest import Current, Manifest, Retired
from generator.wording import counted


class Reason(StrEnum):
    """Why an object is uploaded or deleted."""

    NEW = "new"
    CHANGED = "changed"
    UNFINISHED = "left by an interrupted publish, or found altered"
    WITHDRAWN = "its market is no longer public"
    REMADE = "made again without a market that is no longer public"
    GONE = "no longer part of the build"
    EXPIRED = "retired for longer than cursor.lifetime"
    PURGED = "retired, and --purge-retired was given"


@dataclass(frozen=True)
class Step:
    """One mutable object to upload or delete."""

    key: str
    reason: Reason


@dataclass(frozen=True)
class GenerationStep:
    """One generation to upload or delete, except for the chunks (by key) it shares with generations that stay."""

    list_name: str
    entry: Current
    reason: Reason
    shared: frozenset[str] = frozenset()

    @property
    def pair(self) -> tuple[str, str]:
        """The list and the generation's name."""
        return self.list_name, self.entry.generation

    def object_keys(self) -> Iterator[str]:
        """The objects to upload or delete."""
        return (key for key in generations.object_keys(self.list_name, self.entry) if key not in self.shared)

    def as_due(self, now: str) -> Retired:
        """What the record says of the generation until it is deleted."""
        return Retired(list=self.list_name, retired_at=now, **dict(self.entry))

    @property
    def objects(self) -> int:
        """The number of objects to upload or delete."""
        return generations.object_count(self.list_name, self.entry) - len(self.shared)

    @property
    def place(self) -> str:
        """The generation's folder and number of objects, for messages."""
        return f"{keys.generation_prefix(self.list_name, self.entry.generation)}/ ({counted(self.objects, 'object')})"


@dataclass(frozen=True)
class Plan:
    """Everything a publish will do, in groups carried out one after the other; `final` is the resulting manifest.

    `due` generations are deleted last; those of them that earlier runs had left to delete, the `leftovers`, first: into
    them nothing leads already. `purges` says that cached copies must be invalidated. Retirement was judged `at` an
    instant.
    """

    final: Manifest
    at: str
    withdrawals: tuple[Step, ...]
    generations: tuple[GenerationStep, ...]
    uploads: tuple[Step, ...]
    deletions: tuple[Step, ...]
    due: tuple[GenerationStep, ...]
    purges: bool
    leftovers: tuple[GenerationStep, ...] = ()

    def touched(self) -> tuple[str, ...]:
        """Every mutable object that is uploaded or deleted."""
        return tuple(dict.fromkeys(step.key for step in (*self.withdrawals, *self.uploads, *self.deletions)))

    @property
    def shows_markets(self) -> bool:
        """Whether any uploaded object can show a market."""
        return bool(self.generations) or any(step.key != keys.BUILD for step in self.uploads)

    @property
    def puts_all_generations(self) -> bool:
        """Whether every immutable object that remains is put, also if the store has it already."""
        is_all = len(self.generations) == len(self.final.current) and not self.final.retired
        return is_all and not any(step.shared for step in self.generations)

    @property
    def is_news(self) -> bool:
        """Whether readers see more than another as-of afterwards."""
        return bool(self.generations) or any(key != keys.BUILD for key in self.touched())

    @property
    def steps(self) -> int:
        """The number of objects to upload or delete."""
        immutable = sum(step.objects for step in (*self.generations, *self.due))
        return immutable + len(self.withdrawals) + len(self.uploads) + len(self.deletions)

    def is_empty(self, published: Published) -> bool:
        """Whether the store and its record are up to date already."""
        return not self.steps and not self.purges and self.final == published.built

    def lines(self) -> Iterator[str]:
        """The plan as text, a line per step, in the order in which it is carried out."""
        yield from (f"delete {step.key}: {step.reason}" for step in self.withdrawals)
        yield from (f"upload {step.place}: {step.reason}" for step in self.generations)
        yield from (f"upload {step.key}: {step.reason}" for step in self.uploads)
        yield from (f"delete {step.key}: {step.reason}" for step in self.deletions)
        yield from (f"delete {step.place}: {step.reason}" for step in self.due)


@dataclass(frozen=True)
class Doubts:
    """What an audit of the store found: altered or unknown mutable objects, damaged generations.

    `missing` are the keys of immutable objects that are gone or altered. `show_withdrawn`: what was found may have
    shown markets that are not public, and caches may have copies.
    """

    keys: frozenset[str] = frozenset()
    generations: frozenset[tuple[str, str]] = frozenset()
    missing: frozenset[str] = frozenset()
    show_withdrawn: bool = False

    def merged(self, other: "Doubts") -> "Doubts":
        """What either says."""
        return Doubts(
            self.keys | other.keys, self.generations | other.generations, self.missing | other.missing,
            self.show_withdrawn or other.show_withdrawn,
        )  # fmt: skip


NO_DOUBTS: Final = Doubts()


@dataclass(frozen=True)
class Rules:
    """Retired generations are due `lifetime` before `now`, or at once if `purges`; `doubts` are uploaded again.

    `has_cdn` says that the settings name a CDN, which can be invalidated.
    """

    now: str
    lifetime: timedelta
    purges: bool = False
    doubts: Doubts = NO_DOUBTS
    has_cdn: bool = False


def plan(built: Manifest, record: Published, rules: Rules) -> Plan:
    """Compare what was built with what the store's record says."""
    before = record.built
    final = _final(built, before, rules)
    uncertain = record.unfinished() | rules.doubts.keys
    withdrawn = before.markets.keys() - built.markets.keys()
    details = before.showing(withdrawn)
    held = frozenset(filter(keys.is_question, details & before.objects.keys()))
    uploads = sorted(_uploads(built, before, uncertain, held), key=lambda step: (rank(step.key), step.key))
    deletions = [*_deletions(built, before, uncertain, details)]
    due = tuple(_due(final, record, rules, manifest.withdrawn_lists(before, built, withdrawn)))
    first = details | {step.key for step in deletions if keys.is_of_one(step.key) and step.key not in before.objects}
    return Plan(
        final=final,
        at=rules.now,
        withdrawals=tuple(_withdrawals((step for step in deletions if step.key in first), uploads, held)),
        generations=tuple(_generations(built, before, rules.doubts)),
        uploads=tuple(uploads),
        deletions=tuple(step for step in deletions if step.key not in first),
        due=due,
        purges=_purges(withdrawn, record, rules),
        leftovers=tuple(_leftovers(due, final, record)),
    )


def _purges(withdrawn: Collection[str], record: Published, rules: Rules) -> bool:
    is_asked = bool(withdrawn) or rules.purges or rules.doubts.show_withdrawn
    return is_asked or record.holds_copies(has_cdn=rules.has_cdn)


def _final(built: Manifest, before: Manifest, rules: Rules) -> Manifest:
    settled = manifest.settle(before, built, built.markets, rules.lifetime, rules.now)
    kept = () if rules.purges else settled.retired
    retained = tuple(entry for entry in kept if entry.pair not in rules.doubts.generations)
    return replaced(settled, retired=retained)


def _withdrawals(details: Iterable[Step], uploads: Iterable[Step], held: Collection[str]) -> Iterator[Step]:
    """What is deleted first: `details`, and what is made again; of a question, the object by its id comes last."""
    again = (Step(step.key, Reason.WITHDRAWN) for step in uploads if step.key in held)
    yield from sorted((*details, *again), key=lambda step: (keys.question_id(step.key) is not None, step.key))


def _uploads(built: Manifest, before: Manifest, uncertain: Collection[str], held: Collection[str]) -> Iterator[Step]:
    """The objects to upload; `held` are those of questions that have a withdrawn market."""
    for key, digest in built.objects.items():
        if key in uncertain:
            yield Step(key, Reason.UNFINISHED)
        elif key not in before.objects:
            yield Step(key, Reason.NEW)
        elif digest != before.objects[key]:
            yield Step(key, Reason.REMADE if key in held else Reason.CHANGED)


def _deletions(
    built: Manifest, before: Manifest, uncertain: Collection[str], withdrawn: Collection[str]
) -> Iterator[Step]:
    """The objects to delete; `withdrawn` are the keys of the details of withdrawn markets."""
    for key in sorted((before.objects.keys() | {*uncertain}) - built.objects.keys()):
        if key in withdrawn:
            yield Step(key, Reason.WITHDRAWN)
        else:
            yield Step(key, Reason.GONE if key in before.objects else Reason.UNFINISHED)


def _generations(built: Manifest, before: Manifest, doubts: Doubts) -> Iterator[GenerationStep]:
    known = before.generations()
    partial = {entry.pair for entry in before.retired if entry.partial}
    whole = {pair: entry for pair, entry in known.items() if pair not in partial and pair not in doubts.generations}
    stored_chunks = generations.chunk_keys(whole) - doubts.missing
    for pair, entry in built.current_generations().items():
        if pair not in known:
            yield _step(pair[0], entry, Reason.NEW, stored_chunks)
        elif pair not in whole:
            yield _step(pair[0], entry, Reason.UNFINISHED, stored_chunks)


def _due(final: Manifest, record: Published, rules: Rules, withdrawn: Collection[str]) -> Iterator[GenerationStep]:
    kept = final.generations()
    other_chunks = generations.chunk_keys(kept)
    known = record.due_generations() | record.built.generations()
    for pair, entry in known.items():
        if pair not in kept:
            reason = Reason.WITHDRAWN if pair[0] in withdrawn else _reason(entry, rules)
            yield _step(pair[0], entry, reason, other_chunks)
            other_chunks |= generations.chunk_keys({pair: entry})  # deleted once, by the first generation that has them


def _leftovers(due: Iterable[GenerationStep], final: Manifest, record: Published) -> Iterator[GenerationStep]:
    """The steps for what was due before: chunks that others have, which may be due as well, are left."""
    before = record.due_generations()
    other_chunks = generations.chunk_keys(record.built.generations() | final.generations())
    for step in due:
        if step.pair in before:
            yield _step(step.list_name, step.entry, step.reason, other_chunks)
            other_chunks |= generations.chunk_keys({step.pair: step.entry})


def _reason(entry: Current, rules: Rules) -> Reason:
    if isinstance(entry, Retired) and entry.withdrawn:
        return Reason.WITHDRAWN
    if isinstance(entry, Retired) and entry.is_due(rules.now, rules.lifetime):
        return Reason.EXPIRED
    return Reason.PURGED if rules.purges else Reason.UNFINISHED


def _step(list_name: str, entry: Current, reason: Reason, others: set[str]) -> GenerationStep:
    """A step for a generation; the chunks of `others`, by key, are left alone."""
    shared = others & generations.chunk_keys({(list_name, entry.generation): entry})
    return GenerationStep(list_name, entry.as_current(), reason, frozenset(shared))
