"""What a build would make, and what of it is new: rendered in memory, counted, thrown away. Nothing is written."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from generator.builder import artifacts
from generator.config.settings import Config
from generator.cost import estimate
from generator.cost.estimate import Change, Cost, ListSize, Site
from generator.markets import detail
from generator.markets.catalog import Catalog
from generator.markets.quarantine import Quarantine
from generator.progress import Progress
from generator.source.reader import Reader
from generator.tree import blocklist, files, layouts, manifest
from generator.tree.artifact import Artifact
from generator.tree.folder import read_only
from generator.tree.manifest import Manifest
from generator.tree.pages import ItemList


@dataclass(frozen=True)
class Measured:
    """A build that was not made: its catalog, its size, what it would change since `previous`."""

    catalog: Catalog
    site: Site
    change: Change
    previous: Manifest | None


@dataclass(frozen=True)
class Left:
    """What the last build left: its manifest, the markets that are kept out, its estimate."""

    previous: Manifest | None = None
    blocked: frozenset[str] = frozenset()
    cost: Cost | None = None

    @classmethod
    def within(cls, root: Path) -> "Left":
        """Read it from an output folder."""
        with read_only(root) as folder:
            cost = estimate.of_report(folder.read(files.REPORT))
            return cls(folder.manifest(), blocklist.load(folder).ids(), cost)


@dataclass(frozen=True)
class Measurement:
    """Measures for one configuration, against what the last build left. Bad rows go to the quarantine."""

    config: Config
    left: Left
    quarantine: Quarantine
    progress: Progress

    def of(self, reader: Reader, as_of: datetime) -> Measured:
        """Measure what a build would make of the database now."""
        catalog = reader.catalog(as_of).without(self.left.blocked)
        categories = artifacts.offered(catalog, self.config)
        lists = artifacts.lists(catalog, categories)
        self.progress.start(len(catalog.markets) + len(lists))
        previous = self.left.previous
        count = _Count(previous.objects if previous else {})
        for artifact in self._mutable(reader, catalog, lists, categories):
            count.add(artifact)
        sizes = tuple(ListSize(one.name, len(one.items), sum(map(len, one.items))) for one in lists)
        site = Site(sizes, count.objects, count.bytes)
        change = self._change(previous, catalog, lists, count.changed) if previous else estimate.everything(site)
        return Measured(catalog, site, change, previous)

    def _mutable(
        self, reader: Reader, catalog: Catalog, lists: Iterable[ItemList], categories: Mapping[str, str]
    ) -> Iterator[Artifact]:
        """Every object that belongs to no list."""
        for shown in reader.details(catalog):
            yield from artifacts.market_detail(detail.from_rows(shown, self.config, self.quarantine))
            self.progress.advance()
        yield from artifacts.documents(catalog, self.config)
        yield artifacts.build_json(catalog, self.config, {one.name: len(one.items) for one in lists}, categories)

    def _change(self, previous: Manifest, catalog: Catalog, lists: Iterable[ItemList], objects: int) -> Change:
        new, new_first_pages, new_chunks = set(), set(), dict[str, int | None]()
        known = previous.generations()
        there = layouts.chunk_keys(known)
        for items in lists:
            generation = layouts.make(self.config.layout, items)
            current = previous.lists.get(items.name)
            if (items.name, generation.name) not in known:
                new.add(items.name)
                new_chunks[items.name] = layouts.new_chunks(generation, there)
            if current is None or current.generation != generation.name:
                new_first_pages.add(items.name)
            self.progress.advance()
        minutes = manifest.minutes_between(previous.as_of, catalog.as_of)
        return Change(frozenset(new), frozenset(new_first_pages), objects, minutes, new_chunks)


class _Count:
    """Counts objects, their bytes, and those that differ from what is `known`, digests by key."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self.objects = self.bytes = self.changed = 0

    def add(self, artifact: Artifact) -> None:
        self.objects += 1
        self.bytes += len(artifact.body)
        self.changed += self._known.get(artifact.key) != manifest.digest(artifact.key, artifact.body)
