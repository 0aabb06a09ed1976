"""The protocol that keeps readers whole and loses nothing when it is cut short.

    intend    the record names everything that is about to be written, and who writes until when
    apply     details of withdrawn markets go; then generations, details, documents, first pages, `build.json` come
    commit    the record says what is there now
    look      again at the blocked list: a takedown may have come meanwhile
    sweep     what nothing leads to any more is deleted, copies in caches are ended
    release   the record says that nobody is at work

A run that ends anywhere leaves a record from which the next one finishes the work. Every put of a record or of a
mutable object is conditional, so of two publishers one is refused.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import PublicMarketsError, StoreError
from generator.progress import Progress
from generator.publish import blocklist, invalidation
from generator.publish import plan as planning
from generator.publish.apply import Applier, Tally
from generator.publish.audit import audit
from generator.publish.lease import Lease
from generator.publish.plan import NO_DOUBTS, Doubts, GenerationStep, Plan, Rules
from generator.publish.record import Published
from generator.publish.stores.requests import probe, with_retries
from generator.publish.stores.store import Store
from generator.tree import layouts, manifest
from generator.tree.folder import Output
from generator.tree.manifest import Manifest, Retired

#: How long a store is believed to keep conditions after it has shown it.
_PROBE_LIFETIME: Final = timedelta(days=7)
#: While copies in caches are waited for, the lease is renewed as often.
_STEP_S: Final = 1.0


@dataclass(frozen=True)
class Target:
    """Where is published, and the hold on its record, which was read."""

    store: Store
    ledger: Lease
    config: Config
    is_dry: bool = False


@dataclass(frozen=True)
class Content:
    """What is published: a folder, which is `built`. `without` takes markets out of it, and tells what it is then."""

    folder: Output
    built: Manifest
    without: Callable[[frozenset[str]], Manifest]


class Publisher:
    """Brings a store to the state of a folder. `review` may refuse a plan."""

    def __init__(
        self, target: Target, content: Content, progress: Progress, review: Callable[[Plan], None] = lambda _: None
    ) -> None:
        self._store, self._ledger = target.store, target.ledger
        self._config, self._is_dry = target.config, target.is_dry
        self._folder, self._built, self._without = content.folder, content.built, content.without
        self._progress = progress
        self._review = review
        self._probed_at = ""
        self.tally = Tally()
        self._applier = Applier(self._store, self._ledger, self._folder, progress, self.tally)

    def prepare(self, *, is_verifying: bool) -> None:
        """Make sure that the store keeps conditions, which everything rests on; now and then, or when asked."""
        if self._is_dry or (self._is_proven() and not is_verifying):
            return
        if self._ledger.published is None and not is_verifying:
            self._refuse_strangers()
        if not self._config.publish.single_writer and not probe(self._store):
            raise StoreError(
                f"{self._store.name}: this store ignores the conditions of a put (If-Match, If-None-Match), so two "
                "publishers could undo each other's work unnoticed; use another store, or promise that there is only "
                "one by publish.single_writer: true"
            )
        if with_retries(self._store.is_open_to_everyone):
            self.tally.warnings.append(f"{self._store.name}: everybody can write here, without credentials; close it")
        if not self._is_proven():
            self._probed_at = self._ledger.now

    def _is_proven(self) -> bool:
        published = self._ledger.published
        if published is None or not published.probed_at:
            return False
        age = datetime.fromisoformat(self._ledger.now) - datetime.fromisoformat(published.probed_at)
        return age < _PROBE_LIFETIME

    def _refuse_strangers(self) -> None:
        stranger = with_retries(lambda: next(iter(self._store.list(f"{API_VERSION}/")), None))
        if stranger:
            raise StoreError(
                f"{self._store.name}: holds {stranger.key} but no record of this program, so it may be somebody "
                f"else's; choose another target, or run publish --verify, which deletes what is under {API_VERSION}/ "
                "and unknown"
            )

    def publish(self, *, is_verifying: bool = False, purge: bool = False) -> None:
        """Carry the protocol through, from the record as it was read to its release."""
        doubts = self._audit() if is_verifying else NO_DOUBTS
        plan = self._plan(doubts, purge=purge)
        self._review(plan)
        self.tally.retained = layouts.total(plan.final.generations()) - layouts.total(plan.final.current())
        if self._is_done(plan):
            return
        self._progress.start(plan.steps)
        while True:
            self._carry_out(plan)
            barred = self._taken_down_meanwhile(plan)
            if barred:
                self._built, doubts = self._without(barred), NO_DOUBTS
            elif self.tally.is_suspect and doubts is NO_DOUBTS:
                # Somebody altered objects by hand; the record may be wrong about others, too.
                doubts = self._audit()
            else:
                break
            plan = self._plan(doubts, purge=purge)
        self._finish(plan)

    def _record(self) -> Published:
        return self._ledger.published or Published(sequence=0, built=self._built.emptied(), etags={})

    def _audit(self) -> Doubts:
        return audit(self._store, self._ledger.published, self._built, self._folder)

    def _plan(self, doubts: Doubts, *, purge: bool) -> Plan:
        # Whoever set the build's clock means it; otherwise the store's own is the one that all publishers share.
        now = self._built.as_of if self._built.is_clock_set else self._ledger.now
        rules = Rules(now, self._config.cursor.lifetime, purge, doubts)
        return planning.plan(self._built, self._record(), rules)

    def _is_done(self, plan: Plan) -> bool:
        published = self._ledger.published
        # What a probe found out must be kept, or every run would try again.
        is_settled = published is not None and published.work is None and not self._probed_at
        return is_settled and plan.is_empty(self._record())

    def _carry_out(self, plan: Plan) -> None:
        before = self._record()
        self._intend(plan, before)
        self._applier.withdraw(plan)
        self._applier.upload_generations(plan)
        etags = {**before.etags, **self._applier.replace(plan)}
        self._commit(plan, {key: etags[key] for key in plan.final.objects})

    def _intend(self, plan: Plan, before: Published) -> None:
        new = {step.list_name: step.one for step in plan.generations}
        intended = manifest.intend(before.built, new, plan.final.markets, self._ledger.now, plan.final.slugs)
        uploading = {(step.list_name, step.one.generation) for step in plan.generations}
        doomed = tuple(one for one in before.doomed if (one.list, one.generation) not in uploading)
        probed_at = self._probed_at or before.probed_at
        update = {"built": intended, "doomed": doomed, "probed_at": probed_at}
        self._ledger.hold(before.model_copy(update=update), plan.touched())

    def _commit(self, plan: Plan, etags: dict[str, str]) -> None:
        committed = self._record().model_copy(
            update={
                "built": plan.final,
                "etags": etags,
                "doomed": tuple(_doomed(step, self._ledger.now) for step in plan.doomed),
                "are_caches_stale": plan.purges,
            }
        )
        if plan.shows_markets or plan.doomed or plan.purges:
            self._ledger.hold(committed, ())
        else:
            self._ledger.release(committed)

    def _taken_down_meanwhile(self, plan: Plan) -> frozenset[str]:
        """The markets just published that a takedown has barred since; it may have found the record held."""
        if not plan.shows_markets or self._is_dry:
            return frozenset()
        return blocklist.read(self._store).ids() & plan.final.markets.keys()

    def _finish(self, plan: Plan) -> None:
        published = self._record()
        if published.work is None:
            return
        self._applier.sweep(plan.doomed)
        swept = published.model_copy(update={"doomed": ()})
        try:
            if plan.purges:
                self._end_copies()
        except PublicMarketsError:
            self._ledger.release(swept)
            raise
        self._ledger.release(swept.model_copy(update={"are_caches_stale": False}))

    def _end_copies(self) -> None:
        with_retries(partial(self._store.purge_versions, f"{API_VERSION}/"))
        if self._is_dry:
            return
        if not invalidation.are_known(self._config):
            self.tally.warnings.append(
                "copies of what was withdrawn may live on in a CDN: name it by publish.cloudfront_distribution or "
                "publish.purge_command"
            )
            return
        invalidation.invalidate(self._config)
        # An answer that the CDN fetched just before may be stored only now.
        until = time.monotonic() + self._config.publish.cache_fill.total_seconds()
        while time.monotonic() < until:
            time.sleep(min(_STEP_S, max(0.0, until - time.monotonic())))
            self._ledger.keep()
        invalidation.invalidate(self._config)


def _doomed(step: GenerationStep, now: str) -> Retired:
    return Retired(list=step.list_name, retired_at=now, **dict(step.one))
