"""`output/` → store: the blocked list and the record are read, accidents refused, the protocol carried through."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from generator.config.settings import Config
from generator.cost import estimate, prices
from generator.errors import StoreError
from generator.metrics import Samples, sample
from generator.progress import Progress
from generator.publish import blocklist as store_blocklist
from generator.publish import guards, withdrawal
from generator.publish.apply import Tally
from generator.publish.guards import LiftedGuards
from generator.publish.lease import Lease
from generator.publish.plan import Plan
from generator.publish.protocol import Content, Publisher, Target
from generator.publish.stores.store import DryRun, Store, UnavailableError
from generator.tree import files, layouts, staging
from generator.tree.blocklist import KEY, BlockedList, load
from generator.tree.folder import Output
from generator.tree.manifest import Manifest

#: To tell what is left without them would take a folder to work them out of.
_PLANNED_WITH_BARRED: Final = (
    "the build holds markets that were taken down since; publish leaves them out, which these steps do not show"
)


@dataclass(frozen=True)
class Options:
    """What a run is to do beside publishing, and which guards are lifted."""

    allowed: LiftedGuards = field(default_factory=LiftedGuards)
    is_dry: bool = False
    is_verifying: bool = False
    purges_retired: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a publish did; `objects` are those of the build, under `v1/`."""

    target: str
    as_of: str
    markets: int
    objects: int
    requests: int
    tally: Tally

    def summary(self) -> str:
        """The line that ends a publish; its words are a contract."""
        done = self.tally
        return (
            f"published {self.markets} markets as of {self.as_of} to {self.target}: {done.uploaded} objects uploaded "
            f"({done.uploaded_bytes} bytes), {max(0, self.objects - done.uploaded)} unchanged, {done.deleted} deleted, "
            f"{done.retained} retained, {self.requests} requests"
        )

    def samples(self) -> Samples:
        """What Prometheus is to know of it."""
        return {
            sample("published_as_of_timestamp_seconds"): datetime.fromisoformat(self.as_of).timestamp(),
            sample("uploaded_objects"): self.tally.uploaded,
            sample("deleted_objects"): self.tally.deleted,
            sample("requests"): self.requests,
        }


@contextmanager
def answering(store: Store) -> Iterator[None]:
    """Turn a store that does not answer, however often it is asked, into one sentence."""
    try:
        yield
    except UnavailableError as error:
        raise StoreError(
            f"{store.name}: does not answer ({error}); what is published stays whole, the next run finishes the work"
        ) from error


def recall(folder: Output, store: Store) -> BlockedList:
    """Bring the blocked lists of folder and store together: a build must leave out what was taken down elsewhere."""
    local = load(folder)
    with answering(store):
        merged = store_blocklist.merge(store, local)
    if merged != local:
        folder.save(KEY, merged.encoded())
    return merged


def foretell(folder: Output, store: Store) -> BlockedList:
    """What the two blocked lists say together; nothing is changed."""
    with answering(store):
        return load(folder).merged(store_blocklist.read(store))


@dataclass(frozen=True)
class Publication:
    """One publish: from the folder to the store, `shape` being the settings that shape what is built now.

    `barred` are the markets kept out; None when the blocked lists were not brought together yet.
    """

    folder: Output
    store: Store
    config: Config
    shape: Mapping[str, str]
    options: Options
    barred: frozenset[str] | None = None

    def run(self, progress: Progress, show: Callable[[Plan], None]) -> Outcome:
        """Bring the store to the state of the folder; `show` is given the plan before anything is done."""
        built = guards.refuse_unfit(self.folder.manifest(), self.folder, self.shape)
        barred = self._recall() if self.barred is None else self.barred
        if barred & built.markets.keys() and not self.options.is_dry:
            built = self._without(barred)
        self._refuse_costly(built)
        if self.options.purges_retired and not self.options.is_dry:
            built = staging.purge_retired(self.folder, built)
        store = DryRun(self.store) if self.options.is_dry else self.store
        with answering(store):
            ledger = Lease(store, self.config.publish.lease)
            published = ledger.read(is_doubted=self.options.is_verifying)
            ledger.refuse_if_busy()
            if published:
                guards.refuse_accidents(built, published, self.config, self.options.allowed, barred)

            def review(plan: Plan) -> None:
                guards.refuse_torn(plan, built, self.folder)
                show(plan)

            target = Target(store, ledger, self.config, is_dry=self.options.is_dry)
            publisher = Publisher(target, Content(self.folder, built, self._without), progress, review)
            publisher.prepare(is_verifying=self.options.is_verifying)
            publisher.publish(is_verifying=self.options.is_verifying, purge=self.options.purges_retired)
        if barred & built.markets.keys():
            publisher.tally.warnings.append(_PLANNED_WITH_BARRED)
        return self._outcome(publisher.tally)

    def _refuse_costly(self, built: Manifest) -> None:
        if not self.options.allowed.cost:
            cost = estimate.of_report(self.folder.read(files.REPORT))
            known = prices.load(self.config)
            guards.refuse_costly(cost, self.config, known, frozenset(built.markets))

    def _recall(self) -> frozenset[str]:
        together = foretell if self.options.is_dry else recall
        return together(self.folder, self.store).ids()

    def _without(self, barred: frozenset[str]) -> Manifest:
        withdrawal.from_folder(self.folder, barred, self.config.cursor.lifetime)
        return guards.refuse_unfit(self.folder.manifest(), self.folder, self.shape)

    def _outcome(self, tally: Tally) -> Outcome:
        built = guards.refuse_unfit(self.folder.manifest(), self.folder, self.shape)
        objects = len(built.objects) + layouts.total(built.current())
        return Outcome(self.store.name, built.as_of, len(built.markets), objects, self.store.requests, tally)
