"""The publish protocol: readers always see a complete state, and nothing is lost when a run is cut short.

    intend    the record names everything about to be written, and who writes until when
    look      the blocked list as it is now, with the hold: a takedown may have ended since it was read, a build may
              have been put on hold; a later takedown or hold finds the lease
    apply     details of withdrawn markets are deleted; generations, details, documents, dump, lists, `build.json` put
    commit    the record says what is published now
    check     the blocked list again: a takedown, which deletes details at once, may wait for the lease with the rest,
              or have been killed while it waited; in doubt, a listing of the store, too
    sweep     generations that are due are deleted, cached copies invalidated
    release   the record says that nobody is at work
    notify    followers are told, by a command

A run that ends anywhere leaves a record from which the next one finishes the work. Every put of the record or of a
mutable object is conditional, so one of two concurrent publishers is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from generator.api.forms import instant
from generator.config.settings import Config
from generator.errors import DamageError, PublicMarketsError
from generator.models import replaced
from generator.progress import Progress
from generator.publish import audit, blocklist, commands, invalidation, record, store_checks
from generator.publish import plan as planning
from generator.publish.apply import Applier, Tally
from generator.publish.audit import Audit, stray_details
from generator.publish.content import Content
from generator.publish.copies import Copies
from generator.publish.doubt import Doubt
from generator.publish.lease import Lease
from generator.publish.plan import NO_DOUBTS, Doubts, GenerationStep, Plan, Rules
from generator.publish.record import Published
from generator.stores.store import Store, Watched
from generator.tree import generations, last_publish, manifest
from generator.tree.blocklist import BlockedList, HeldError
from generator.tree.folder import Output
from generator.tree.manifest import Retired


@dataclass(frozen=True)
class Target:
    """Where to publish: the store, the lease on its record (read already), and the settings."""

    store: Store
    lease: Lease
    config: Config

    @classmethod
    def of(cls, store: Store, config: Config) -> "Target":
        """A store whose record was not read yet."""
        return cls(store, Lease(store, config.publish.lease), config)


@dataclass(frozen=True)
class Extras:
    """What a run does besides publishing: audit the store, delete every retired generation now."""

    is_verifying: bool = False
    purges_retired: bool = False
    #: Readers see nothing of it, so no CDN is invalidated and no follower told.
    is_dry: bool = False


_NO_EXTRAS: Final = Extras()
_NOBODY: Final = BlockedList()


class Publisher:
    """Brings a store to the state of a content: `prepare`, `plan`, then `publish` the plan."""

    def __init__(
        self,
        target: Target,
        content: Content,
        progress: Progress,
        extras: Extras = _NO_EXTRAS,
        blocked: BlockedList = _NOBODY,
    ) -> None:
        self._store, self._lease, self._config = Watched(target.store), target.lease, target.config
        self._extras = extras
        self._progress = progress
        self._doubts = NO_DOUBTS
        self._probed_at = self._planned_at = ""
        self._blocked = blocked  # as last read
        self._doubt = Doubt(self._store, self._lease)
        self._is_audited = False
        #: Whether readers see something new, of which nobody was told.
        self._is_news = False
        self.content = content
        self.tally = Tally()
        self._applier = Applier(self._store, self._lease, content.folder, progress, self.tally)

    # Before anything is written

    def prepare(self) -> None:
        """Refuse a store that ignores conditional puts: checked once a week, and when verifying."""
        proof = store_checks.proof(
            self._store, self._lease.published, self._config, self._lease.now, is_verifying=self._extras.is_verifying
        )
        self.tally.warnings += proof.warnings
        self._probed_at = proof.probed_at

    def withdraw(self, ids: frozenset[str]) -> None:
        """Take markets out of what is to be published."""
        self.content = self.content.without(ids)

    def plan(self) -> Plan:
        """Compare the content with the record, and with the store itself when verifying."""
        found = self._audit() if self._extras.is_verifying else self._look()
        self._doubt.is_new(found)
        self._recover(found)
        plan = self._plan()
        if plan.is_empty(self._record()):
            # Any other plan deletes the details of all blocked markets, which takes one request.
            stray = stray_details(self._store, self._record(), self._blocked.ids())
            if stray != self._doubts:
                self._recover(stray)
                plan = self._plan()
        self.tally.retained = generations.total(plan.final.generations()) - generations.total(
            plan.final.current_generations()
        )
        return plan

    def _plan(self) -> Plan:
        built = self.content.built
        # The operator's clock, or the store's, which all publishers share.
        is_clock_set = manifest.is_clock_set(self._record().built, built)
        self._planned_at = now = built.as_of if is_clock_set else self._lease.now
        rules = Rules(
            now,
            self._config.cursor.lifetime,
            self._extras.purges_retired,
            self._doubts,
            has_cdn=invalidation.is_configured(self._config),
        )
        return planning.plan(built, self._record(), rules)

    def _audit(self) -> Doubts:
        """Compare all of the store with the record; when verifying, with the folder, too."""
        self._is_audited = True
        published, is_verifying = self._lease.published, self._extras.is_verifying
        found = self._compared(folder=self.content.folder if is_verifying else None)
        if is_verifying and published and published.are_copies_long and self._config.publish.is_unpurged:
            # Their headers are wrong, which no listing shows.
            return replace(found, generations=frozenset(published.built.generations()))
        return found

    def _look(self) -> Doubts:
        """Compare the store with the record if requests of other runs may have taken effect since."""
        # A takedown deletes details without a lease. If it was killed then, or if such a request took effect late, no
        # record says so; if the takedown was undone, a publish of later data has looked after that.
        published, now = self._record(), datetime.fromisoformat(self._lease.now)
        since = min(now, datetime.fromisoformat(published.built.as_of)) - record.IN_FLIGHT
        undone = self._blocked.undone_between(instant(since), instant(now + record.IN_FLIGHT))
        is_doubted = self._doubt.is_on or undone
        return self._compared(audit.parts(published, self._lease.now)) if is_doubted else NO_DOUBTS

    def _compared(self, prefixes: tuple[str, ...] = audit.EVERYTHING, folder: Output | None = None) -> Doubts:
        renew = self._lease.renew_if_held
        return Audit(self._store, self._record(), self.content.built, prefixes, folder, renew).doubts()

    def _recover(self, doubts: Doubts) -> None:
        self._doubts = doubts
        if doubts != NO_DOUBTS:
            self.content = self.content.recovered(doubts)

    def _record(self) -> Published:
        return self._lease.published or Published(sequence=0, built=self.content.built.emptied(), etags={})

    # The protocol

    def publish(self, plan: Plan) -> None:
        """Carry out the plan, and those for what comes up in the meantime; then clean up and release the record."""
        try:
            self._publish(plan)
        except (DamageError, HeldError):
            self._lease.give_up()  # the run goes on from here at once: with another build, or with a withdrawal
            raise

    def _publish(self, plan: Plan) -> None:
        if self._is_done(plan):
            if self._extras.is_verifying:
                self._lease.look_for_states(purges=False)
            return
        # A run that was cut short after its commit told nobody.
        self._is_news = self._record().work is not None
        self._progress.start(plan.steps)
        pending: Plan | None = plan
        is_begun = False
        while pending is not None:
            plan, before = pending, self._record()
            self._intend(plan, before)
            pending = self._plan_without_blocked(plan, is_begun=is_begun)
            if pending is None:
                is_begun = True
                self._commit(plan, before, self._apply(plan))
                pending = self._amended(plan)
        self.tally.warnings += self.content.warnings
        try:
            self._finish(plan)
        except PublicMarketsError:
            self._notify()  # what failed came after the commit
            raise
        self._notify()
        self._doubt.require_settled()

    def _notify(self) -> None:
        if self._is_news and not self._extras.is_dry:
            self.tally.warnings += commands.notify(self._config, self._record().built)

    def _is_done(self, plan: Plan) -> bool:
        published = self._lease.published
        # A new probe must be recorded, or every run would probe again.
        is_settled = published is not None and published.is_settled(self._lease.now) and not self._probed_at
        return is_settled and plan.is_empty(self._record())

    def _plan_without_blocked(self, plan: Plan, *, is_begun: bool) -> Plan | None:
        """Another plan if markets were blocked since this one was made: nothing of it may be put.

        Raise HeldError if the store was put on hold; once a run has begun to put objects, a hold waits for it.
        """
        # Whoever blocks a market from now on finds the lease held, and waits.
        blocked = self._blocked_since(plan)
        if self._blocked.hold and self.content.is_build and not is_begun and not self._extras.is_dry:
            raise HeldError(self._store.name, self._blocked.hold, has_target=True)
        return self._plan_without(blocked) if blocked else None

    def _plan_without(self, blocked: frozenset[str]) -> Plan:
        self.content = self.content.without(blocked)
        if blocked & (plan := self._plan()).final.markets.keys():
            raise RuntimeError("blocked markets were taken out of what is published, and are still part of it")
        return plan

    def _apply(self, plan: Plan) -> Mapping[str, str]:
        """Carry out the plan; returns the ETags of the mutable objects that were put."""
        touched = self._touched(plan)
        work = self._record().work
        if work is None or work.touched != touched:
            self._lease.take(self._record(), touched)
        self._applier.withdraw(plan, self._blocked_details(plan))
        self._sweep_leftovers(plan)
        self._applier.upload_generations(plan.generations)
        last_publish.begin(self.content.folder, plan.final, self._config.publish.target)
        return self._applier.replace(plan)

    def _sweep_leftovers(self, plan: Plan) -> None:
        if plan.leftovers:
            self._applier.sweep_early(plan.leftovers)
            swept = {step.pair for step in plan.leftovers}
            published = self._record()
            due = tuple(entry for entry in published.due if entry.pair not in swept)
            self._lease.take(replaced(published, due=due), self._touched(plan))

    def _intend(self, plan: Plan, before: Published) -> None:
        final = plan.final
        intended = manifest.intend(before.built, final.current, final.markets, self._lease.now, final)
        uploading = {step.pair for step in plan.generations}
        due = tuple(entry for entry in before.due if entry.pair not in uploading)
        probed_at = self._probed_at or before.probed_at
        is_long = bool(plan.generations) and invalidation.is_configured(self._config)
        update = {
            "built": intended,
            "due": due,
            "probed_at": probed_at,
            "doubted_until": self._doubt.until(),
            "are_copies_long": before.are_copies_long or is_long,
            "is_held": before.is_held and not self.content.is_build,
        }
        self._lease.take(replaced(before, **update), self._touched(plan))
        self._lease.sweep()

    def _commit(self, plan: Plan, before: Published, put: Mapping[str, str]) -> None:
        published, touched = self._record(), frozenset(plan.touched())
        built = plan.final
        if not built.is_clock_set:
            # Until now, walks have begun in what this run replaced.
            built = manifest.retired_at(built, self._planned_at, instant(self._store.now()))
        committed = replaced(
            published,
            built=built,
            etags={key: etag for key, etag in {**before.etags, **put}.items() if key in put or key not in touched},
            due=tuple(_as_due(step, self._lease.now) for step in plan.due),
            are_caches_stale=plan.purges or published.are_caches_stale,
            are_versions_kept=plan.purges,
            are_copies_long=published.are_copies_long
            and not (plan.puts_all_generations and self._config.publish.is_unpurged),
            doubted_until=self._doubt.until(),
        )
        self._is_news |= plan.is_news
        has_more = plan.due or plan.purges or self._may_have_lost_states()
        if plan.shows_markets or has_more:
            self._lease.take(committed, ())
        else:
            self._lease.release(committed)
        last_publish.LastPublish.of(built, self._config.publish.target).save(self.content.folder)

    def _amended(self, plan: Plan) -> Plan | None:
        """The plan for what came up while the last one was carried out; None if nothing did."""
        if blocked := self._blocked_since(plan):
            self._doubts = NO_DOUBTS
            return self._plan_without(blocked)
        if self.tally.found_altered and not self._is_audited:
            # Somebody altered objects, so the record may be wrong about others, too.
            self._doubts = self._audit()
        elif self._record().work and (doubts := self._look()) != NO_DOUBTS:
            if not self._doubt.is_new(doubts):
                return None
            self._recover(doubts)
        else:
            return None
        return self._plan()

    def _blocked_since(self, plan: Plan) -> frozenset[str]:
        """The markets of the plan that were blocked since it was made."""
        if plan.shows_markets or self._blocked.ids():
            self._blocked = blocklist.read(self._store)
            if self.content.is_build:
                blocklist.require_whole(self._store, self._blocked)
        return self._blocked.ids() & plan.final.markets.keys()

    def _blocked_details(self, plan: Plan) -> frozenset[str]:
        """Every detail of a blocked market: a late request may have put one of which the record knows nothing."""
        return frozenset(self._record().built.all_details(self._blocked.ids()) - plan.final.objects.keys())

    def _touched(self, plan: Plan) -> tuple[str, ...]:
        """Every mutable object that the plan puts or deletes, and those details."""
        return (*plan.touched(), *sorted(self._blocked_details(plan).difference(plan.touched())))

    def _may_have_lost_states(self) -> bool:
        """Whether somebody may have put a state that no record names."""
        return self._doubt.is_on or self._extras.is_verifying or bool(self._doubt.until())

    def _finish(self, plan: Plan) -> None:
        published = self._record()
        if published.work is None:
            return
        self._applier.sweep(plan)
        if plan.purges or self._lease.has_states or self._may_have_lost_states():
            self._lease.look_for_states(purges=plan.purges)
        self._store.flush()  # or what was deleted might come back after a power failure, unknown to the record
        swept = replaced(published, due=(), doubted_until=self._doubt.until())
        copies = Copies(self._store, self._lease, self._config, has_readers=not self._extras.is_dry)
        try:
            if plan.purges:
                swept = copies.end(swept)
        except PublicMarketsError:
            self._lease.release(swept)
            raise
        self._lease.release(swept)
        self.tally.warnings += copies.warnings
        copies.require_ended()


def _as_due(step: GenerationStep, now: str) -> Retired:
    return Retired(list=step.list_name, retired_at=now, **dict(step.entry))
