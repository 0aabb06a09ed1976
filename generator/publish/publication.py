"""`output/` → store: read both sides, apply the guards, plan, and carry out the plan. Start with `Publication`."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from generator.config.settings import Config
from generator.cost import estimate, prices
from generator.metrics import Samples, sample
from generator.models import replaced
from generator.progress import Progress
from generator.publish import blocklist, decisions, guards, protocol
from generator.publish.apply import Tally
from generator.publish.guards import LiftedGuards, Options
from generator.publish.lease import Target
from generator.publish.protocol import Run
from generator.publish.record import Published
from generator.publish.withdrawal import BuiltFolder, sync_blocked
from generator.stores.requests import body_of, explaining_outage
from generator.stores.store import Store
from generator.tree import files, generations
from generator.tree.blocklist import BlockedList
from generator.tree.folder import Output
from generator.tree.hold_metrics import NO_HOLD
from generator.tree.manifest_file import UnreadableManifestError
from generator.wording import counted


@dataclass(frozen=True)
class Outcome:
    """What a publish did. `objects` counts those of the build, under `v1/`, `retained` those of retired generations."""

    target: str
    as_of: str
    markets: int
    objects: int
    retained: int
    requests: int
    tally: Tally

    def summary(self) -> str:
        """The line that ends a publish; its wording is a contract."""
        done = self.tally
        return (
            f"published {counted(self.markets, 'market')} as of {self.as_of} to {self.target}: "
            f"{counted(done.uploaded, 'object')} uploaded ({counted(done.uploaded_bytes, 'byte')}), "
            f"{max(0, self.objects - done.uploaded)} unchanged, {done.deleted} deleted, {self.retained} retained, "
            f"{counted(self.requests, 'request')}"
        )

    def forecast(self) -> str:
        """The line that ends a dry run."""
        would = self.tally
        return (
            f"dry run, nothing was changed; would publish {counted(self.markets, 'market')} as of {self.as_of} to "
            f"{self.target}: upload {counted(would.uploaded, 'object')} ({counted(would.uploaded_bytes, 'byte')}), "
            f"leave {max(0, self.objects - would.uploaded)} unchanged, delete {would.deleted}, retain {self.retained}"
        )

    def samples(self) -> Samples:
        """The metrics of the publish."""
        return {
            sample("published_as_of_timestamp_seconds"): datetime.fromisoformat(self.as_of).timestamp(),
            sample("uploaded_objects"): self.tally.uploaded,
            sample("deleted_objects"): self.tally.deleted,
            sample("requests"): self.requests,
            **NO_HOLD,
        }


def refuse_other_site(folder: Output, store: Store, config: Config, lifted: LiftedGuards) -> None:
    """Raise OtherSiteError if the store holds the site of another base_url, before a build for it begins.

    A folder that holds this site already takes no harm from a build, so `Publication.plan` asks the store in time: an
    unchanged rebuild stays as cheap as it is.
    """
    built = None
    with suppress(UnreadableManifestError):  # the build refuses it, or makes it anew
        built = folder.manifest()
    if lifted.other_site or (built and not guards.is_other_site(built, config)):
        return
    with explaining_outage(store):
        published = Target.of(store, config).lease.read(is_doubted=True, is_brief=True)
    guards.refuse_other_site(published, config, lifted)


@dataclass(frozen=True)
class Publication:
    """One publish from a locked folder to a store. `shape` are the settings that shape what a build makes now.

    `blocked` are the blocked markets; None if the blocked lists of folder and store were not merged yet.
    """

    folder: Output
    store: Store
    config: Config
    shape: Mapping[str, Any]
    options: Options
    blocked: BlockedList | None = None

    def plan(self, progress: Progress) -> Run:
        """Read folder and store, raise GuardError for what looks like an accident, and plan; then `publish`."""
        store, config, options = self.store, self.config, self.options
        content = BuiltFolder.opened(self.folder, self.shape, config.cursor.lifetime)
        guards.refuse_demo(content.built, config, options.lifted)
        with explaining_outage(store):
            target = Target.of(store, config, self.folder)
            published = target.lease.read(is_doubted=options.is_verifying)
            guards.refuse_other_site(published, config, options.lifted)
            # Only now: another site's blocked list is none of this one's business.
            blocked = self._blocked(published)
            warnings = blocklist.refuse_held(store, blocked.hold, is_dry=options.is_dry)
            content = content.without(blocked.ids())
            if not options.lifted.cost:
                cost = estimate.of_report(self.folder.read(files.REPORT))
                guards.refuse_costly(cost, config, prices.load(), frozenset(content.built.markets))
            target.lease.refuse_if_busy()
            if published:
                guards.refuse_accidents(content.built, published, config, options.lifted, blocked.ids())
            content = content.leading_on(published.built if published else None, partial(body_of, store))
            if options.purges_retired:
                content = content.purged()
            run = protocol.prove(Run.of(target, content, progress, options, blocked))
            unblocked = decisions.unblocked_since(self.folder.read(files.REPORT), content.built.markets, blocked.ids())
            run.tally.warnings += (*warnings, *unblocked, *guards.ahead(content.built, target.lease.now))
            run = protocol.compare(run)
            guards.refuse_altered(run.plan, content.built, self.folder)
        return run

    def publish(self, run: Run) -> Outcome:
        """Bring the store to the state of the folder, by the plan of the run."""
        published = run.lease.published
        is_published = published is not None and published.built.complete
        with blocklist.explaining_hold(self.store), explaining_outage(self.store, is_published=is_published):
            run = protocol.publish(run)
        built, store = run.content.built, self.store
        current = generations.total(built.current_generations())
        retained = generations.total(run.plan.final.generations()) - current
        objects = len(built.objects) + current
        return Outcome(store.name, built.as_of, len(built.ids()), objects, retained, store.requests, run.tally)

    def _blocked(self, published: Published | None) -> BlockedList:
        """The store's blocked list; with the hold of a record that a former program put there."""
        is_read = self.blocked is not None and not (published and published.is_held)
        blocked = self.blocked if self.blocked is not None and is_read else sync_blocked(self.folder, self.store)
        former = published.hold if published else None
        return replaced(blocked, hold=blocked.hold or former)
