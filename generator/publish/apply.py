"""Carries out the steps of a plan: many requests at once, each under the lease, every answer checked."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Final, TypeVar

from generator.api import keys
from generator.errors import DamageError, StoreError
from generator.progress import Progress
from generator.publish import blocklist, references
from generator.publish.lease import Lease
from generator.publish.plan import GenerationStep, Plan, Reason, Step
from generator.site.families import rank
from generator.stores.requests import parallel_puts, put_until_answered, with_retries
from generator.stores.store import MOST_DELETED, Condition, ConditionFailedError, If, Store
from generator.tree import generations, manifest
from generator.tree.folder import Output

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Attempts at an object that others keep replacing.
_ATTEMPTS: Final = 5
#: Bytes of a file of a download that is uploaded alone, or many would be in memory at once and share the line until a
#: request takes too long.
_LARGE: Final = 1 << 20


@dataclass
class Tally:
    """What a publish did: counts of objects under `v1/`, bytes, warnings, and why it fails all the same."""

    uploaded: int = 0
    uploaded_bytes: int = 0
    deleted: int = 0
    #: Whether readers see something new, of which nobody was told yet.
    is_news: bool = False
    #: Whether an object was found altered by somebody else.
    found_altered: bool = False
    warnings: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Applier:
    """Carries out plans; what they upload is in `folder`."""

    store: Store
    lease: Lease
    folder: Output
    progress: Progress
    tally: Tally
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def withdraw(self, plan: Plan, blocked: Collection[str]) -> None:
        """Delete the details of withdrawn markets, before anything else; those of `blocked` ones may not exist."""
        details = [step.key for step in plan.withdrawals]
        self._delete(details, sorted({*blocked} - {*details}))

    def upload_generations(self, generations: Sequence[GenerationStep]) -> None:
        """Upload every page or chunk of these new generations; nothing leads to them yet."""
        sizes = dict.fromkeys((step.list_name for step in generations), 0)
        # One stream for all generations, so that no connection idles between two of them.
        objects = ((step, key) for step in generations for key in step.object_keys())
        for list_name, size in self._each(self._put_immutable, objects):
            sizes[list_name] += size
        for step in generations:
            if not step.shared and sizes[step.list_name] != step.entry.bytes:
                raise self._altered(keys.generation_prefix(step.list_name, step.entry.generation))
            self.tally.uploaded_bytes += sizes[step.list_name]
            self.tally.uploaded += step.objects

    def replace(self, plan: Plan) -> dict[str, str]:
        """Upload the mutable objects in publication order and delete what is gone; returns the new ETags."""
        etags: dict[str, str] = {}
        for _, group in groupby(plan.uploads, key=lambda step: rank(step.key)):
            # The next group links to what was uploaded so far.
            self.store.flush()
            for key, etag, size in self._each(partial(self._put, plan.final.objects), group):
                if etag is None:
                    continue
                etags[key] = etag
                self.tally.uploaded += 1
                self.tally.uploaded_bytes += size
        self._delete(step.key for step in plan.deletions)
        self.store.flush()
        return etags

    def sweep_early(self, generations: Sequence[GenerationStep]) -> None:
        """Delete these generations before the plan is carried out: nothing links to them."""
        for step in generations:
            self._delete(step.object_keys())
        self.store.flush()  # the record may forget them next, so after a power failure nobody would delete them again

    def sweep(self, plan: Plan) -> None:
        """Delete the generations that are due, or what is left of them; nothing links to them any more."""
        remains = {step.pair: step.shared for step in plan.leftovers}
        for step in plan.due:
            shared = remains.get(step.pair)
            self._delete(key for key in step.object_keys() if shared is None or key in shared)

    def _each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        for result in parallel_puts(self.store, work, items):
            self.progress.advance()
            self.lease.renew_if_needed()
            yield result

    def _put_immutable(self, of: tuple[GenerationStep, str]) -> tuple[str, int]:
        step, key = of
        with self._turn(step, key):
            body = self.folder.body(key)
            if not generations.is_intact(step.list_name, step.entry, key, body):
                raise self._altered(key)
            put_until_answered(self.store, key, body, If.ALWAYS, self.lease.require_valid)
            return step.list_name, len(body)

    @contextmanager
    def _turn(self, step: GenerationStep, key: str) -> Iterator[None]:
        """Wait for other large files, if this is one."""
        if not generations.of(*step.pair).has_large_files or self.folder.weight([key])[1] < _LARGE:
            yield
            return
        with self._alone:
            self.lease.renew_if_needed()  # the thread that renews it may be waiting for the last of them
            yield

    def _altered(self, place: str) -> DamageError:
        return DamageError(str(self.folder.path(place)))

    def _put(self, digests: Mapping[str, str], step: Step) -> tuple[str, str | None, int]:
        body = self.folder.body(step.key)
        if manifest.digest(step.key, body) != digests[step.key]:
            raise self._altered(step.key)
        condition = self._expected(step)
        is_gone = condition is If.ABSENT and keys.is_of_one(step.key) and self._known(step.key) is not None
        if is_gone and self._is_blocked(body):
            return step.key, None, len(body)
        return step.key, self._put_over(step.key, body, condition), len(body)

    def _put_over(self, key: str, body: bytes, condition: Condition) -> str | None:
        """Put a mutable object, whatever is in its place; returns its ETag, None if a takedown has deleted it."""
        for _ in range(_ATTEMPTS):
            try:
                return put_until_answered(self.store, key, body, condition, self.lease.require_valid)
            except ConditionFailedError:
                # Somebody edited it, or a publisher that should have stopped. The lease holds, so this run overwrites.
                self.lease.confirm_held()
                condition = self._found(key)
                if condition is If.ABSENT and keys.is_of_one(key) and self._is_blocked(body):
                    return None
                self.tally.found_altered = True
        raise StoreError(f"{self.store.name}: {key} keeps changing; find out who else writes it, then run again")

    def _is_blocked(self, body: bytes) -> bool:
        """Whether what a detail shows is blocked now: takedowns delete details whoever is at work."""
        subject = references.subject_of(body)
        shown = subject.members.union([subject.reference]) if subject else frozenset[str]()
        return bool(shown) and not shown.isdisjoint(blocklist.read(self.store).ids())

    def _expected(self, step: Step) -> Condition:
        if step.reason is Reason.UNFINISHED:
            return self._found(step.key)
        return If.ABSENT if step.reason is Reason.REMADE else self._known(step.key) or If.ABSENT

    def _known(self, key: str) -> str | None:
        """The ETag by the record."""
        return self.lease.published.etags.get(key) if self.lease.published else None

    def _found(self, key: str) -> Condition:
        return with_retries(lambda: self.store.head(key)) or If.ABSENT

    def _delete(self, object_keys: Iterable[str], uncounted: Iterable[str] = ()) -> None:
        """Delete objects; `uncounted` ones may not exist and are no steps of the plan."""
        remaining = chain(((key, True) for key in object_keys), ((key, False) for key in uncounted))
        while batch := list(islice(remaining, MOST_DELETED)):
            self.lease.renew_if_needed()
            with_retries(partial(self._delete_batch, [key for key, _ in batch]))
            for _ in filter(itemgetter(1), batch):
                self.tally.deleted += 1
                self.progress.advance()

    def _delete_batch(self, batch: list[str]) -> None:
        self.store.delete(batch, self.lease.renew_if_needed)
