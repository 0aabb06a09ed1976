"""The publish protocol: readers always see a complete state, and nothing is lost when a run is cut short.

Each station takes a `Run` and returns it as it goes on; `publish` has their order, which the package's docstring draws.
A run that ends anywhere leaves a record from which the next one finishes the work. Every put of the record or of a
mutable object is conditional, so one of two concurrent publishers is refused.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from generator.api import keys
from generator.api.forms import instant
from generator.errors import DamageError, PublicMarketsError, StoreError
from generator.models import replaced
from generator.progress import Progress
from generator.publish import audit, blocklist, commands, copies, store_checks
from generator.publish import plan as planning
from generator.publish.apply import Applier, Tally
from generator.publish.audit import Audit, Doubt, stray_details
from generator.publish.copies import Copies
from generator.publish.guards import Options
from generator.publish.lease import Lease, Target
from generator.publish.plan import NO_DOUBTS, Doubts, Plan, Rules
from generator.publish.record import IN_FLIGHT, Published
from generator.publish.withdrawal import Content
from generator.site.sessions import LastPublish
from generator.stores.store import Watched
from generator.tree import manifest
from generator.tree.blocklist import BlockedList, HeldError
from generator.tree.folder import Output


@dataclass(frozen=True)
class Run:
    """A publish on its way: what is to be published, what is known of the store, and what was done so far.

    Only the `tally` changes, which all stations share; another plan is another object. `record` is the store's as last
    put, and what is to be put next. `blocked` is the blocked list as last read. `doubts` are what a listing of the
    store found and the `plan` settles; `doubt` says until when there may be more. `is_audited`: the whole store was
    compared. `is_begun`: objects may have been put.
    """

    target: Target
    content: Content
    progress: Progress
    options: Options
    blocked: BlockedList
    record: Published
    plan: Plan
    tally: Tally
    doubt: Doubt
    doubts: Doubts = NO_DOUBTS
    is_audited: bool = False
    is_begun: bool = False

    @classmethod
    def of(cls, target: Target, content: Content, progress: Progress, options: Options, blocked: BlockedList) -> Self:
        """A run that brings the target, whose record was read, to the state of the content; not compared yet."""
        published = target.lease.published
        record = published or Published(sequence=0, built=content.built.emptied(), etags={})
        plan = _plan(target, content, options, record)
        # A run that was cut short after its commit told nobody.
        tally = Tally(is_news=record.work is not None)
        return cls(target, content, progress, options, blocked, record, plan, tally, Doubt.of(target.lease))

    @property
    def lease(self) -> Lease:
        """The hold on the store's record."""
        return self.target.lease

    @property
    def store(self) -> Watched:
        """The store that is published to."""
        return self.target.watched

    @property
    def applier(self) -> Applier:
        """What carries out steps of the plan."""
        return Applier(self.store, self.lease, self.content.folder, self.progress, self.tally)

    @property
    def doubted_until(self) -> str:
        """What the record is to say of the time in which the store may hold what no record says."""
        return self.doubt.left(self.lease.now, is_unanswered=self.store.is_unanswered)

    def may_have_lost_states(self) -> bool:
        """Whether somebody may have put a state that no record names."""
        return self.doubt.is_on or self.options.is_verifying or bool(self.doubted_until)

    def blocked_details(self) -> frozenset[str]:
        """Every detail of a blocked market: a late request may have put one of which the record knows nothing."""
        return frozenset(self.record.built.all_details(self.blocked.ids()) - self.plan.final.objects.keys())

    def touched(self) -> tuple[str, ...]:
        """Every mutable object that the plan puts or deletes, and those details."""
        planned = self.plan.touched()
        return (*planned, *sorted(self.blocked_details().difference(planned)))

    def recorded(self, touched: tuple[str, ...], **update: Any) -> Self:
        """Put the record with what it says from now on, and with this run at work on the `touched` objects."""
        return replace(self, record=self.lease.take(replaced(self.record, **update), touched))

    def replanned(self, content: Content, doubts: Doubts) -> Self:
        """The run with another plan, from what was recorded last."""
        plan = _plan(self.target, content, self.options, self.record, doubts)
        return replace(self, content=content, doubts=doubts, plan=plan)

    def settling(self, found: Doubts) -> Self:
        """The run with a plan that settles what a look at the store found, unless there was one for the same before."""
        if found == NO_DOUBTS:
            return self
        run = replace(self, doubt=self.doubt.noting(found, self.lease.now))
        return run if run.doubt.unsettled else run.replanned(self.content.recovered(found), found)

    def without_blocked(self) -> Self:
        """The run with another plan if markets of this one are blocked in the list as it was read last."""
        blocked = self.blocked.ids() & self.plan.final.markets.keys()
        if not blocked:
            return self
        run = self.replanned(self.content.without(blocked), self.doubts)
        if blocked & run.plan.final.markets.keys():
            raise RuntimeError("blocked markets were taken out of what is published, and are still part of it")
        return run


def _plan(target: Target, content: Content, options: Options, published: Published, doubts: Doubts = NO_DOUBTS) -> Plan:
    built, config = content.built, target.config
    # The operator's clock, or the store's, which all publishers share.
    now = built.as_of if manifest.is_clock_set(published.built, built) else target.lease.now
    has_cdn = copies.is_configured(config)
    rules = Rules(now, config.cursor.lifetime, options.purges_retired, doubts, has_cdn=has_cdn)
    return planning.plan(built, published, rules)


# Before anything is written


def prove(run: Run) -> Run:
    """Refuse a store that ignores conditional puts: checked once a week, and when verifying. The record notes it."""
    lease, is_verifying = run.lease, run.options.is_verifying
    proof = store_checks.proof(run.store, lease.published, run.target.config, lease.now, is_verifying=is_verifying)
    run.tally.warnings += proof.warnings
    return replace(run, record=replaced(run.record, probed_at=proof.probed_at or run.record.probed_at))


def compare(run: Run) -> Run:
    """Compare the store with its record when verifying or in doubt, and plan to settle what differs."""
    is_verifying = run.options.is_verifying
    run = replace(run, is_audited=is_verifying).settling(
        _compared_whole(run) if is_verifying else _compared_in_doubt(run)
    )
    if run.plan.is_empty(run.record):
        # Any other plan deletes the details of all blocked markets, which takes one request.
        stray = stray_details(run.store, run.record, run.blocked.ids())
        if stray != NO_DOUBTS:
            return run.replanned(run.content.recovered(stray), run.doubts.merged(stray))
    return run


def _compared_whole(run: Run) -> Doubts:
    """Compare all of the store with the record; when verifying, with the folder, too."""
    if not run.options.is_verifying:
        return _compared(run)
    doubts = _compared(run, folder=run.content.folder)
    if run.record.are_copies_long and run.target.config.publish.is_unpurged:
        # Their headers are wrong, which no listing shows.
        return replace(doubts, generations=frozenset(run.record.built.generations()))
    return doubts


def _compared_in_doubt(run: Run) -> Doubts:
    """Compare the store with the record if requests of other runs may have taken effect since."""
    # A takedown deletes details without a lease. If it was killed then, or if such a request took effect late, no
    # record says so; if the takedown was undone, a publish of later data has looked after that.
    now = datetime.fromisoformat(run.lease.now)
    since = min(now, datetime.fromisoformat(run.record.built.as_of)) - IN_FLIGHT
    is_undone = run.blocked.undone_between(instant(since), instant(now + IN_FLIGHT))
    is_doubted = run.doubt.is_on or is_undone
    return _compared(run, audit.parts(run.record, run.lease.now)) if is_doubted else NO_DOUBTS


def _compared(run: Run, prefixes: tuple[str, ...] = audit.EVERYTHING, folder: Output | None = None) -> Doubts:
    built = run.content.built.current_generations()
    return Audit(run.store, run.record, built, prefixes, folder, run.lease.renew_if_held).doubts()


# The stations


def publish(run: Run) -> Run:
    """Carry out the plan, and those for what comes up in the meantime; then clean up and release the record."""
    if _is_done(run):
        if run.options.is_verifying:
            run.lease.look_for_states(purges=False)
        return run
    run.progress.start(run.plan.steps)
    try:
        while (latest := _pass(run)).plan is not run.plan:
            run = latest
    except (DamageError, HeldError):
        run.lease.give_up()  # the run goes on from here at once: with another build, or with a withdrawal
        raise
    run.tally.warnings += run.content.warnings
    try:
        latest = release(sweep(latest))
    except PublicMarketsError:
        notify(latest)  # what failed came after the commit
        raise
    notify(latest)
    run.tally.faults += latest.doubt.faults(run.store)
    if run.tally.faults:
        raise StoreError("; ".join(run.tally.faults))
    return latest


def _is_done(run: Run) -> bool:
    published = run.lease.published
    if published is None or not published.is_settled(run.lease.now):
        return False
    # A new probe must be recorded, or every run would probe again.
    return published.probed_at == run.record.probed_at and run.plan.is_empty(run.record)


def _pass(run: Run) -> Run:
    """Take a plan through the stations; the run that comes out has another plan if there is more to do."""
    looked = look(intend(run))
    return looked if looked.plan is not run.plan else check(commit(apply(looked)))


def intend(run: Run) -> Run:
    """Name in the record whatever is about to be written, and who writes until when."""
    before, plan = run.record, run.plan
    uploading = {step.pair for step in plan.generations}
    is_long = bool(uploading) and copies.is_configured(run.target.config)
    run = run.recorded(
        run.touched(),
        built=manifest.intend(before.built, plan.final.current, plan.final.markets, run.lease.now, plan.final),
        due=tuple(entry for entry in before.due if entry.pair not in uploading),
        doubted_until=run.doubted_until,
        are_copies_long=before.are_copies_long or is_long,
        is_held=before.is_held and not run.content.is_build,
    )
    run.lease.sweep()
    return run


def look(run: Run) -> Run:
    """Read the blocked list: a takedown may have ended since it was read, or a hold may have been set.

    Whoever blocks a market or sets a hold from now on finds the lease held, and waits. Raise HeldError if the store is
    on hold; once a run has begun to put objects, a hold waits for it.
    """
    run = _rereading_blocked(run)
    if run.blocked.hold and run.content.is_build and not run.is_begun and not run.options.is_dry:
        raise HeldError(run.store.name, run.blocked.hold, has_target=True)
    return run.without_blocked()


def apply(run: Run) -> Run:
    """Carry out the plan, but for what is due: first the details of withdrawn markets go, then new objects come."""
    run = replace(run, is_begun=True)
    plan, touched, applier = run.plan, run.touched(), run.applier
    if run.record.work is None or run.record.work.touched != touched:
        run = run.recorded(touched)
    applier.withdraw(plan, run.blocked_details())
    if plan.leftovers:
        applier.sweep_early(plan.leftovers)
        swept = {step.pair for step in plan.leftovers}
        run = run.recorded(touched, due=tuple(entry for entry in run.record.due if entry.pair not in swept))
    applier.upload_generations(plan.generations)
    LastPublish.begin(run.content.folder, plan.final, run.target.config.publish.target)
    put, planned = applier.replace(plan), frozenset(plan.touched())
    etags = {key: etag for key, etag in {**run.record.etags, **put}.items() if key in put or key not in planned}
    return replace(run, record=replaced(run.record, etags=etags))


def commit(run: Run) -> Run:
    """Say in the record what is published now."""
    plan, published, config = run.plan, run.record, run.target.config.publish
    built = plan.final
    if not built.is_clock_set:
        # Until now, walks have begun in what this run replaced.
        built = manifest.retired_at(built, plan.at, instant(run.store.now()))
    committed = replaced(
        published,
        built=built,
        due=tuple(step.as_due(run.lease.now) for step in plan.due),
        are_caches_stale=plan.purges or published.are_caches_stale,
        are_versions_kept=plan.purges,
        are_copies_long=published.are_copies_long and not (plan.puts_all_generations and config.is_unpurged),
        doubted_until=run.doubted_until,
    )
    run.tally.is_news |= plan.is_news
    has_more = plan.shows_markets or plan.due or plan.purges or run.may_have_lost_states()
    recorded = run.lease.take(committed, ()) if has_more else run.lease.release(committed)
    LastPublish.of(built, config.target).save(run.content.folder)
    return replace(run, record=recorded, doubts=NO_DOUBTS)


def check(run: Run) -> Run:
    """Look again for what came up while the plan was carried out.

    A takedown, which deletes details at once, may wait for the lease with the rest, or have been killed while waiting.
    """
    run = _rereading_blocked(run)
    amended = run.without_blocked()
    if amended is not run:
        return amended
    if run.tally.found_altered and not run.is_audited:
        # Somebody altered objects, so the record may be wrong about others, too.
        found = _compared_whole(run)
        run = replace(run, is_audited=True)
        return run if found == NO_DOUBTS else run.replanned(run.content.recovered(found), found)
    return run.settling(_compared_in_doubt(run)) if run.record.work else run


def _rereading_blocked(run: Run) -> Run:
    """The run with the blocked list as it is now, if the plan may show what it blocks."""
    if not (run.plan.shows_markets or run.blocked.ids()):
        return run
    blocked = blocklist.read(run.store)
    if run.content.is_build:
        blocklist.require_whole(run.store, blocked)
    return replace(run, blocked=blocked)


def sweep(run: Run) -> Run:
    """Delete what is due, and end the copies of what was withdrawn, which is left to the next run if it fails."""
    if run.record.work is None:
        return run
    plan, lease = run.plan, run.lease
    run.applier.sweep(plan)
    if plan.purges or lease.has_states or run.may_have_lost_states():
        lease.look_for_states(purges=plan.purges)
    run.store.flush()  # or what was deleted might come back after a power failure, unknown to the record
    swept = replaced(run.record, due=(), doubted_until=run.doubted_until)
    try:
        if plan.purges:
            ending = Copies(run.store, lease, run.target.config, has_readers=not run.options.is_dry)
            swept = ending.end(swept)
            run.tally.warnings += ending.warnings
            run.tally.faults += ending.faults
    except PublicMarketsError:
        lease.release(swept)
        raise
    return replace(run, record=swept)


def release(run: Run) -> Run:
    """Say in the record that nobody is at work."""
    return run if run.record.work is None else replace(run, record=run.lease.release(run.record))


def notify(run: Run) -> None:
    """Tell followers that readers see something new."""
    feed = run.record.built.current.get(keys.CHANGES)
    if run.tally.is_news and not run.options.is_dry:
        run.tally.warnings += commands.notify(run.target.config, feed)
