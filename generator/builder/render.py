"""Renders a catalog and stages what is not in place yet: lists and details in forked workers, then the documents."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias, TypeVar

from generator import __version__
from generator.api import keys
from generator.builder import artifacts, disk_space, notices, search_index, worker_pool
from generator.builder.detail_staging import Reuse, StagedRange, Stager
from generator.builder.detail_workers import Details
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.notices import Remark
from generator.builder.report_file import SearchCounts
from generator.config.settings import Config
from generator.cost.sizes import NO_INDEX, Site
from generator.errors import FalseVersionsError
from generator.markets.catalog import Catalog, Market
from generator.markets.quarantine import Quarantine
from generator.progress import Progress, Stopwatch
from generator.source.address import shape
from generator.source.queries import Range
from generator.source.reader import Reader
from generator.tree import membership, staging
from generator.tree.artifact import Artifact
from generator.tree.fingerprints import Fingerprints, Made
from generator.tree.folder import Output
from generator.tree.generation import ItemList
from generator.tree.manifest import Manifest
from generator.tree.membership import Membership, Memberships
from generator.tree.staging import Rendered, Staged, StagedList

Result = TypeVar("Result")
#: What a worker stages at a time.
Unit: TypeAlias = ItemList | Range


@dataclass(frozen=True)
class Rendering:
    """What was rendered, its size, and what its search index has, if there is one."""

    state: Rendered
    site: Site
    search: SearchCounts | None


@dataclass(frozen=True)
class Renderer:
    """Renders into a locked folder; `previous` is its manifest. `is_clock_set`: the operator chose the as-of.

    Bad rows found on the way go to `quarantine`, odd ones that are published to `remarks`. `stopwatch` measures what is
    done: `render`, `index` where there is one for searches, and the beginning of `place`.
    """

    config: Config
    folder: Output
    previous: Manifest | None
    is_clock_set: bool
    quarantine: Quarantine
    remarks: list[Remark]
    reuse: Reuse
    stopwatch: Stopwatch
    progress: Progress

    def render(self, catalog: Catalog, reader: Reader, excerpts: Excerpts) -> Rendering:
        """Stage everything, in publication order. Raises FalseVersionsError if an audit finds some."""
        with self.stopwatch.stage("render"):
            categories = artifacts.offered(catalog, self.config)
            lists = artifacts.lists(catalog, categories)
            disk_space.Plan(self.config, catalog, lists, categories, self.previous).require(self.folder.path(""))
            latest = notices.latest_time(catalog.as_of)
            stager = Stager(self.config, self.folder, excerpts, self.reuse, latest)
            details = Details(self.config, catalog, reader, stager)
            # Before the workers are forked: then every object of the catalog that is touched is copied with its page.
            documents = [*artifacts.documents(catalog, self.config)]
            self.progress.start(len(lists) + details.count() + self.config.can_search)
            staged_lists, ranges = self._stage(lists, details)
            staged, fingerprints = self._collected(ranges, documents, catalog, excerpts)
        index, search = None, None
        if self.config.can_search:
            with self.stopwatch.stage("index"):
                index, search = self._advanced(self._index(catalog, categories, staged_lists))
        with self.stopwatch.stage("place"):
            for part in (*staged_lists, *([index] if index else [])):
                staged.add(part.first_pages)
            counts = {staged_list.name: staged_list.current.count for staged_list in staged_lists}
            staged.put(self.folder, artifacts.build_json(catalog, self.config, counts, categories))
            is_demo = self.config.source.is_default or reader.is_demo()
            built = self._manifest(catalog, staged_lists, index, staged, is_demo=is_demo)
            memberships = _memberships(catalog, categories)
            rendered = Rendered(staged_lists, index, staged, built, memberships, fingerprints)
            return Rendering(rendered, _site(lists, rendered), search)

    def _collected(
        self, ranges: Iterable[StagedRange], documents: Iterable[Artifact], catalog: Catalog, excerpts: Excerpts
    ) -> tuple[Staged, Fingerprints]:
        """The staged details and documents, what was found in the details, and what they are made of."""
        last, staged, made, false_versions = self.reuse.last, Staged(), dict[str, Made](), list[str]()
        markets = catalog.by_id()
        for part in ranges:
            staged.add(part.staged)
            self.quarantine.add(part.quarantine)
            self.remarks.extend(part.remarks)
            excerpts.keep(part.excerpts)
            self.reuse.counts.add(part.counts)
            made |= part.made
            made |= {market_id: last.keep(markets[market_id], staged) for market_id in part.kept}
            false_versions += part.false_versions
        if false_versions:
            raise FalseVersionsError(false_versions)
        for artifact in documents:
            staged.put(self.folder, artifact)
        return staged, Fingerprints(as_of=catalog.as_of, shape=last.shape, details=dict(sorted(made.items())))

    def _stage(self, lists: list[ItemList], details: Details) -> tuple[list[StagedList], list[StagedRange]]:
        """Stage lists and details, in forked workers as far as possible."""
        known = self.previous.generations() if self.previous else {}
        staged_lists, ranges = list[StagedList](), list[StagedRange]()

        def stage(unit: Unit) -> StagedList | StagedRange | Range:
            if isinstance(unit, Range):
                return details.stage_in_worker(unit)
            return staging.stage_list(self.folder, self.config.layout, known, unit)

        units: list[Unit] = [*lists, *details.ranges()]
        pool = worker_pool.WorkerPool(stage, units, _work, worker_pool.available(), details.close)
        with pool, self.folder.written_ahead() as ahead:
            if not details.ranges():
                ranges += map(self._advanced, details.stage_rest(ranges))
            for result in map(self._advanced, pool.results()):
                if isinstance(result, StagedList):
                    staged_lists.append(result)
                    if result.first_pages.changed:
                        ahead.begin()
                elif isinstance(result, StagedRange):
                    ranges.append(result)
        ranges += details.stage_rest(ranges)
        staged_lists.sort(key=lambda staged: staged.name)
        return staged_lists, details.in_order(ranges)

    def _advanced(self, result: Result) -> Result:
        self.progress.advance()
        return result

    def _index(
        self, catalog: Catalog, offered: Collection[str], lists: Sequence[StagedList]
    ) -> tuple[StagedList, SearchCounts]:
        """Stage the search index, which leads into the lists."""
        generations = {staged_list.name: staged_list.current.generation for staged_list in lists}
        index = search_index.make(catalog, offered, self.config.layout, generations)
        known = self.previous.generations() if self.previous else {}
        return staging.stage_generation(self.folder, known, index), SearchCounts.of(index)

    def _manifest(
        self,
        catalog: Catalog,
        lists: list[StagedList],
        index: StagedList | None,
        staged: Staged,
        *,
        is_demo: bool,
    ) -> Manifest:
        # Large mappings are set unvalidated: validation would copy them.
        objects = {key: staged.objects[key] for key in sorted(staged.objects)}
        slugs = {market.id: (market.slug,) for market in catalog.markets if market.slug is not None}
        staged.objects = objects
        built = Manifest(
            complete=True,
            as_of=catalog.as_of,
            is_clock_set=self.is_clock_set,
            is_demo=is_demo,
            version=__version__,
            variant=self.config.variant,
            layout=self.config.layout,
            settings=shape(self.config),
            lists={staged_list.name: staged_list.current for staged_list in lists},
            search=index.current if index else None,
            retired=(),
            objects={},
            markets={},
        )
        return built.model_copy(update={"objects": objects, "slugs": slugs})


def _site(lists: Sequence[ItemList], rendered: Rendered) -> Site:
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.objects)
    size = rendered.staged.size - sum(staged_list.first_pages.size for staged_list in rendered.lists)
    index = rendered.index.weight() if rendered.index else NO_INDEX
    return Site.of(lists, objects, size - index.mutable_bytes, index)


def _work(unit: Unit) -> float:
    """The relative cost of a unit. Details go first: a list may turn out to cost nothing."""
    return inf if isinstance(unit, Range) else len(unit.items)


def _memberships(catalog: Catalog, offered: Collection[str]) -> Memberships:
    return {market.id: _of_market(market, offered) for market in catalog.markets}


def _of_market(market: Market, offered: Collection[str]) -> tuple[Membership, ...]:
    if market.fx:
        return ()
    return membership.memberships_of(market.status, (slug for slug in market.categories if slug in offered))
