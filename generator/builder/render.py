"""Renders lists, documents and index of a catalog, and stages what is not in place yet."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from generator import __version__
from generator.api import keys
from generator.builder import artifacts, disk_space, downloads, search_index, worker_pool
from generator.builder.collecting import Collected
from generator.builder.downloads import StagedDownloads
from generator.builder.listed import Listed
from generator.builder.report_file import DownloadCounts, SearchCounts
from generator.config.settings import Config
from generator.cost.sizes import NO_DOWNLOADS, NO_INDEX, Downloads, Site
from generator.markets.catalog import Catalog, Market
from generator.progress import Progress, Stopwatch
from generator.source.address import shape
from generator.tree import membership, staging
from generator.tree.folder import Output
from generator.tree.generation import ItemList, Weight
from generator.tree.manifest import Manifest
from generator.tree.membership import Membership, Memberships
from generator.tree.staging import Rendered, Staged, StagedList

Result = TypeVar("Result")


@dataclass(frozen=True)
class Rendering:
    """What was rendered, its size, what its search index has, if there is one, and its downloads."""

    state: Rendered
    site: Site
    search: SearchCounts | None
    downloads: StagedDownloads


@dataclass(frozen=True)
class Renderer:
    """Renders into a locked folder; `previous` is its manifest.

    `is_clock_set`: the operator chose the as-of; `is_demo`: all markets are made up. `stopwatch` measures what is done:
    `render`, `index` where there is one for searches, and the beginning of `place`.
    """

    config: Config
    folder: Output
    previous: Manifest | None
    is_clock_set: bool
    is_demo: bool
    stopwatch: Stopwatch
    progress: Progress

    def render(self, catalog: Catalog, collected: Collected) -> Rendering:
        """Stage everything but the details, which were `collected`, in publication order."""
        staged = collected.staged
        with self.stopwatch.stage("render"):
            categories = artifacts.offered(catalog, self.config)
            lists = artifacts.lists(catalog, categories)
            disk_space.Plan(self.config, catalog, lists, categories, self.previous, staged).require(
                self.folder.path("")
            )
            # Before the workers are forked: from then on, touching an object of the catalog copies its memory page.
            documents = [*artifacts.documents(catalog, lists, self.config, self.folder.read)]
            self.progress.expect(len(lists) + self.config.can_search + self.config.dumps.ndjson)
            self.progress.describe("lists")
            staged_lists, made = self._stage(lists, self._listed(catalog, staged))
            for artifact in documents:
                staged.put(self.folder, artifact)
        index, search = None, None
        if self.config.can_search:
            with self.stopwatch.stage("index"):
                index, search = self._advanced(self._index(catalog, categories, staged_lists))
        with self.stopwatch.stage("place"):
            for part in (*staged_lists, *([index] if index else []), *made.lists):
                staged.add(part.first_pages)
            counts = {staged_list.name: staged_list.current.count for staged_list in staged_lists}
            staged.put(self.folder, artifacts.build_json(catalog, self.config, counts, categories))
            built = self._manifest(catalog, staged_lists, index, staged, made)
            rendered = Rendered(
                staged_lists, index, staged, built, _memberships(catalog, categories), collected.fingerprints,
                made.lists, made.side_file,
            )  # fmt: skip
            return Rendering(rendered, _site(lists, rendered, made), search, made)

    def _listed(self, catalog: Catalog, staged: Staged) -> Listed | None:
        """What downloads are made from; None if there are none."""
        if not self.config.dumps.ndjson:
            return None
        ids = [market.id for market in catalog.listed()]
        if self.previous is None or not self.previous.complete:
            changed = frozenset(ids)
        else:
            changed = frozenset(filter(None, map(keys.market_id, staged.changed)))
        return Listed(catalog, ids, changed, staged.objects)

    def _stage(self, lists: Sequence[ItemList], listed: Listed | None) -> tuple[list[StagedList], StagedDownloads]:
        """Stage lists and downloads in forked workers, the longest first."""
        known = self.previous.generations() if self.previous else {}

        def stage(unit: ItemList | Listed) -> StagedList | StagedDownloads:
            if isinstance(unit, Listed):
                return downloads.stage(self.folder, self.config, unit, known)
            return staging.stage_list(self.folder, self.config.layout, known, unit)

        units: list[ItemList | Listed] = [*lists, *([listed] if listed else [])]
        pool = worker_pool.WorkerPool(stage, units, _work_of, worker_pool.available())
        staged_lists, made = list[StagedList](), downloads.NONE
        with pool, self.folder.written_ahead() as ahead:
            for staged in map(self._advanced, pool.results()):
                if isinstance(staged, StagedDownloads):
                    made = staged
                    continue
                staged_lists.append(staged)
                if staged.first_pages.changed:
                    ahead.begin()
        return sorted(staged_lists, key=lambda staged: staged.name), made

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
        made: StagedDownloads,
    ) -> Manifest:
        # Large mappings are set unvalidated: validation would copy them.
        objects = {key: staged.objects[key] for key in sorted(staged.objects)}
        slugs = {market.id: (market.slug,) for market in catalog.markets if market.slug is not None}
        staged.objects = objects
        built = Manifest(
            complete=True,
            as_of=catalog.as_of,
            is_clock_set=self.is_clock_set,
            is_demo=self.is_demo,
            version=__version__,
            variant=self.config.variant,
            layout=self.config.layout,
            settings=shape(self.config),
            lists={staged_list.name: staged_list.current for staged_list in lists},
            search=index.current if index else None,
            downloads={download.name: download.current for download in made.lists},
            retired=(),
            objects={},
            markets={},
        )
        return built.model_copy(update={"objects": objects, "slugs": slugs})


def _work_of(unit: ItemList | Listed) -> float:
    """A rough measure of how long a unit takes to stage: downloads take longer than any list."""
    return math.inf if isinstance(unit, Listed) else len(unit.items)


def _site(lists: Sequence[ItemList], rendered: Rendered, made: StagedDownloads) -> Site:
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.objects)
    index = rendered.index.weight() if rendered.index else NO_INDEX
    weight = sum((download.weight() for download in made.lists), NO_DOWNLOADS)
    first_pages = sum(staged_list.first_pages.size for staged_list in rendered.lists)
    size = rendered.staged.size - first_pages - index.mutable_bytes - weight.mutable_bytes
    counts = made.counts or DownloadCounts()
    daily = Weight(counts.history_files, counts.history_bytes, 0, 0)
    downloads = Downloads(weight, counts.ndjson_bytes, counts.steps, counts.steps_bytes, daily)
    return replace(Site.of(lists, objects, size, index), downloads=downloads)


def _memberships(catalog: Catalog, offered: Collection[str]) -> Memberships:
    return {market.id: _of_market(market, offered) for market in catalog.markets}


def _of_market(market: Market, offered: Collection[str]) -> tuple[Membership, ...]:
    if market.fx:
        return ()
    return membership.memberships_of(market.status, (slug for slug in market.categories if slug in offered))
