"""What a build would make, and what of it is new: rendered in memory, counted and discarded. Nothing is written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from generator import __version__
from generator.api import cursors, keys, times
from generator.api.feeds import FEED_NAMES
from generator.builder import (
    changes,
    collecting,
    dry_downloads,
    executors,
    notices,
    part_rendering,
)
from generator.builder.dry_downloads import LastDownloads, Meter
from generator.config.settings import Config
from generator.cost import estimate, sizes
from generator.cost.estimate import Cost
from generator.cost.sizes import Change, Site
from generator.downloads import partitions
from generator.findings import Finding, in_order
from generator.markets.detail import Detail
from generator.markets.market import Market
from generator.markets.quarantine import Quarantine
from generator.progress import Progress, Stopwatch
from generator.search.generation import MOST_OBJECTS
from generator.site import documents, search_index
from generator.site.catalog import Catalog
from generator.source.reader import Reader
from generator.tree import blocklist, files, manifest
from generator.tree.artifact import Artifact
from generator.tree.folder import read_only
from generator.tree.generation import ItemList
from generator.tree.manifest import Manifest


@dataclass(frozen=True)
class Searches:
    """How many words can be found, and the most objects that a search reads."""

    words: int
    reads: int


@dataclass(frozen=True)
class DryBuild:
    """The result: the catalog, the size of the site, what a build would change since `previous`, and its remarks.

    `unmatched` names relations that have rows, but none of a public market; `is_unpriced` says that there are fills and
    none shows a price. `searches` is None without a search index. `seconds` says how long it took to read and render
    the `catalog` and the `details`. `has_versions` says whether the database has a column for these.
    """

    catalog: Catalog
    site: Site
    change: Change
    previous: Manifest | None
    remarks: list[Finding]
    unmatched: list[str]
    is_unpriced: bool
    searches: Searches | None
    seconds: Mapping[str, float]
    has_versions: bool


@dataclass(frozen=True)
class LastBuild:
    """What the last build left: its manifest, the blocked markets (ids), its estimate, its feeds by key."""

    manifest: Manifest | None = None
    blocked: frozenset[str] = frozenset()
    cost: Cost | None = None
    downloads: LastDownloads = field(default_factory=LastDownloads)
    feeds: Mapping[str, bytes | None] = field(default_factory=dict)

    @classmethod
    def within(cls, root: Path) -> "LastBuild":
        """Read it from an output folder."""
        with read_only(root) as folder:
            cost = estimate.of_report(folder.read(files.REPORT))
            downloads = LastDownloads.found_by(folder.read)
            feeds = {key: folder.read(key) for key in (keys.feed(name, "json") for name in FEED_NAMES)}
            return cls(folder.manifest(), blocklist.load(folder).ids(), cost, downloads, feeds)


@dataclass(frozen=True)
class DryBuilder:
    """Renders for one configuration, and compares with the last build. Bad rows go to `quarantine`."""

    config: Config
    last: LastBuild
    quarantine: Quarantine
    progress: Progress

    def build(self, reader: Reader, as_of: datetime) -> DryBuild:
        """Measure what a build would make of the database now."""
        stopwatch = Stopwatch()
        previous = self.last.manifest
        count = _Count(previous.objects if previous else {})
        details = _Details(self.config, self.last, count)
        catalog = self._read(reader, as_of, details, stopwatch)
        remarks = [*notices.of(catalog, self.config), *details.remarks]
        categories = documents.offered(catalog, self.config)
        lists = documents.lists(catalog, categories)
        self.progress.expect((len(lists) if previous else 0) + self.config.can_search)
        for artifact in self._documents(catalog, lists, categories):
            count.add(artifact.body, artifact.key)
        # Naming generations means hashing all lists, and matters only to what changed.
        change, names = None, dict.fromkeys((items.name for items in lists), "0" * cursors.GENERATION_LENGTH)
        if previous:
            change, names = changes.expected(previous, catalog.as_of, self.config.layout, self._advancing(lists))
            change = replace(change, objects=count.changed)
        site, searches = Site.of(lists, count.objects, count.bytes), None
        if self.config.can_search:
            index = search_index.make(catalog, categories, self.config.layout, names)
            site, searches = replace(site, index=index.weight()), Searches(index.words, MOST_OBJECTS)
            change = change and replace(change, index=changes.expected_of_index(previous, index))
            self.progress.advance()
        measured = details.downloads(catalog)
        site = replace(site, downloads=measured.site)
        change = change and replace(change, downloads=measured.new, step_bytes=measured.step_bytes)
        change = change or sizes.everything(site)
        missing = details.missing if catalog.markets else []
        unmatched = [name for name in missing if not self.quarantine.total(name) and reader.has_rows(name)]
        seconds = {name: span.seconds for name, span in stopwatch.spans.items()}
        return DryBuild(
            catalog, site, change, previous, in_order(remarks), unmatched, details.is_unpriced(), searches, seconds,
            reader.has_versions(),
        )  # fmt: skip

    def _read(self, reader: Reader, as_of: datetime, details: "_Details", stopwatch: Stopwatch) -> Catalog:
        """The catalog, without blocked markets; adds every detail to `details`."""
        with stopwatch.stage("catalog"):
            survey = reader.survey()
        latest = notices.latest_time(times.instant(as_of))
        markets, parts = list[Market](), executors.parts_of(survey, reader, executors.MOST)
        self.progress.start(len(parts))
        for part in parts:
            with stopwatch.stage("catalog"):
                found = reader.read(part.within, survey.facts_of(part), as_of)
            public = {key: market for key, market in found.public() if market.id not in self.last.blocked}
            markets += public.values()
            with stopwatch.stage("details"):
                rows = reader.details(found, public, part.within)
                for read, remarks in part_rendering.details(rows, self.config, latest, self.quarantine):
                    details.add(read, remarks)
            self.progress.advance()
        return collecting.catalog_of(survey, markets, times.instant(as_of))

    def _documents(
        self, catalog: Catalog, lists: Sequence[ItemList], categories: Mapping[str, str]
    ) -> Iterator[Artifact]:
        """Every other object outside lists."""
        yield from documents.derived(catalog, lists, self.config, self.last.feeds.get)
        yield from documents.fixed(self.config)
        counts = {items.name: len(items.items) for items in lists}
        base = Manifest(
            complete=False, as_of=catalog.as_of, version=__version__, variant=self.config.variant,
            layout=self.config.layout, current={}, retired=(), objects={}, markets={},
        )  # fmt: skip
        yield documents.build_json(base, len(catalog.markets), counts, categories)

    def _advancing(self, lists: Iterable[ItemList]) -> Iterator[ItemList]:
        for items in lists:
            yield items
            self.progress.advance()


class _Details:
    """What is made of details: objects to `count`, downloads, remarks; and the relations of which no row was seen."""

    def __init__(self, config: Config, last: LastBuild, count: "_Count") -> None:
        self._count = count
        self._meter = Meter(config, last.downloads) if config.dumps.ndjson else None
        #: The markets of the last build, by id; those in no list have no memberships.
        self._before = last.manifest.markets if last.manifest else {}
        self.remarks = list[Finding]()
        shown = config.detail
        wanted = {"orders": shown.order_book, "fills": shown.recent_fills, "probabilities": shown.history_points}
        self.missing = [name for name, is_wanted in wanted.items() if is_wanted]
        self._prices = set[bool]()

    def add(self, read: Detail, remarks: Iterable[Finding]) -> None:
        market, body = read.market, read.body()
        is_changed = self._count.add(body, *keys.details(market.id, market.slug))
        if self._meter and market.fx_family_member is None:
            partition = partitions.partition(market)
            is_new = not self._before.get(market.id)
            self._meter.add(market.id, body, partition, is_new=is_new, is_changed=is_changed)
        self.remarks += remarks
        self._prices |= {fill.price is not None for fill in read.recent_fills}
        if self.missing:
            book = read.order_book
            seen = {"orders": book.bids or book.asks, "fills": read.recent_fills, "probabilities": read.points}
            self.missing = [name for name in self.missing if not seen[name]]

    def downloads(self, catalog: Catalog) -> dry_downloads.Measured:
        if self._meter is None:
            return dry_downloads.NONE
        listed = {market.id for market in catalog.listed()}
        gone = (market_id for market_id, lists in self._before.items() if lists and market_id not in listed)
        return self._meter.measured(gone, catalog.as_of)

    def is_unpriced(self) -> bool:
        return self._prices == {False}


class _Count:
    """Counts objects, their bytes, and those that differ from `known`, digests by key."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self.objects = self.bytes = self.changed = 0

    def add(self, body: bytes, *object_keys: str) -> bool:
        """Add an object under each of these keys, which share its headers; return whether it is new or changed."""
        digest = manifest.digest(object_keys[0], body)
        self.objects += len(object_keys)
        self.bytes += len(object_keys) * len(body)
        changed = sum(self._known.get(key) != digest for key in object_keys)
        self.changed += changed
        return changed > 0
