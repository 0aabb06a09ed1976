"""A build that ends before anything is moved into place: what it would make, and what of that is new."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from generator import garbage
from generator.api import keys
from generator.builder import guards
from generator.builder.guards import BuildOverrides
from generator.builder.preparation import Clock, Preparation, Prepared
from generator.builder.report_file import Excused
from generator.config.settings import Config
from generator.cost.sizes import Site
from generator.errors import BUILD_GUARDS
from generator.findings import Finding, error, in_order, refused
from generator.markets.quarantine import Quarantine
from generator.models import replaced
from generator.progress import Progress
from generator.search.generation import MOST_OBJECTS
from generator.search.generation import Generation as SearchIndex
from generator.site.catalog import Catalog
from generator.source.reader import Reader
from generator.tree.dry_folder import DryFolder
from generator.tree.folder import Output

#: Guards refuse nothing, as the caller tells what they would say. All details are read, and so all bad rows named.
#: Of what is in place, a trial reads no more than the next build.
_OVERRIDES: Final = BuildOverrides(accepted=frozenset(BUILD_GUARDS), full=True, compares=False)


@dataclass(frozen=True)
class DryRun:
    """The result: what was `prepared` in `folder`, and remarks about it. `blocked` are the ids of blocked markets.

    `excused` are those that the last build left out for a reason that is known. `seconds` says how long all processes
    took together to read the `survey`, `markets` and `details`; `versions` is the number of markets whose details need
    not be read again unless a version changes, `row_versions` that of those whose rows need not. `empty` are the
    relations in which a first build finds no row.
    """

    folder: Output
    prepared: Prepared
    remarks: list[Finding]
    blocked: frozenset[str]
    excused: Excused
    seconds: Mapping[str, float]
    versions: int
    row_versions: int
    empty: list[str]

    @property
    def catalog(self) -> Catalog:
        """The markets that would be published."""
        return self.prepared.catalog

    @property
    def site(self) -> Site:
        """The size of everything."""
        return self.prepared.site

    @property
    def index(self) -> SearchIndex | None:
        """The search index, if there is one."""
        return self.prepared.made.index

    @property
    def reads_per_search(self) -> int:
        """The most objects that a search reads; 0 without an index."""
        return MOST_OBJECTS if self.index else 0

    def refusals(self, config: Config, quarantine: Quarantine, *, names_faults: bool = True) -> Iterator[Finding]:
        """Why a build would be refused, with the settings of the trial; `names_faults` adds those of bad markets."""
        limits, before = config.guards, self.prepared.previous
        yield from refused(
            partial(
                guards.refuse_invalid, self.catalog, quarantine, self.blocked, limits.max_invalid,
                names_faults=names_faults,
            )
        )  # fmt: skip
        yield from refused(partial(guards.refuse_shrink, self.catalog, before, self.blocked, limits.max_shrink))
        yield from refused(partial(guards.refuse_growth, self.catalog, before, self.excused))
        yield from map(error, self.prepared.guards.refusals())

    def details(self) -> Iterator[bytes]:
        """The detail of every market."""
        return (self.folder.newest_body(keys.detail(market.id)) for market in self.prepared.catalog.markets)


def trial(folder: DryFolder, config: Config, clock: Clock, quarantine: Quarantine, progress: Progress) -> Preparation:
    """Prepare to make what a build would make now, on this machine.

    Raises OutputError if what the last build left in the folder cannot be read.
    """
    here = replaced(config, cluster=None)
    return replace(Preparation.of(folder, here, clock, _OVERRIDES, progress), quarantine=quarantine)


def dry_run(preparation: Preparation, reader: Reader) -> DryRun:
    """Make it in the folder of a trial; the reader reports to the same quarantine."""
    with garbage.uncollected():
        collected = preparation.collect(reader)
        empty = preparation.empty_relations(reader, collected)
        is_demo = preparation.config.source.is_default or reader.is_demo()
        prepared = preparation.finish(collected, is_demo=is_demo)
    spans = {"survey": preparation.stopwatch.spans["read"], **collected.reading.stopwatch.spans}
    seconds = {name: span.seconds for name, span in spans.items()}
    return DryRun(
        preparation.folder,
        prepared,
        in_order(preparation.remarks),
        preparation.blocked,
        preparation.excused(),
        seconds,
        collected.reading.versions,
        sum(bool(made.row) for made in collected.fingerprints.details.values()),
        empty,
    )
