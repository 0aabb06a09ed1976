"""How much there is to publish, and how much of it a build changes: objects and bytes, in either layout. Pure."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from generator.api.contract import LIMIT_DEFAULT
from generator.api.downloads import ENTRY_SIZE
from generator.tree import layouts
from generator.tree.generation import ItemList, Weight

#: The bytes around the items of an average answer.
_ENVELOPE_BYTES: Final = 100
#: What a site without search has of an index, or without downloads of these; and what a build changes of what stays.
NOTHING: Final = Weight(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class ListSize:
    """One list: the number of its items, and their bytes in total."""

    name: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Downloads:
    """The dump and the change feed: all their objects, the bytes of one dump, and the retained steps among them.

    `daily` are the objects that are made once a day at most: tables.
    """

    weight: Weight = NOTHING
    dump_bytes: int = 0
    steps: int = 0
    steps_bytes: int = 0
    daily: Weight = NOTHING

    def without_steps(self) -> Weight:
        """All objects but steps."""
        every = self.weight
        return replace(
            every, immutable=every.immutable - self.steps, immutable_bytes=every.immutable_bytes - self.steps_bytes
        )

    def kept(self, step_bytes: float, builds: float) -> tuple[float, float]:
        """How many steps will be retained once so many builds have made one of that size, and their bytes.

        With their entries in the head, they never outweigh the dump.
        """
        steps = min(builds, self.dump_bytes // (step_bytes + ENTRY_SIZE)) if step_bytes else self.steps
        return max(self.steps, steps), max(self.steps_bytes, steps * step_bytes)


@dataclass(frozen=True)
class Site:
    """Everything that is published: the lists, the search index, the downloads, and all other objects with their bytes.

    Index and downloads are about the same in both layouts. `made` has, by layout, the weights of lists that were made
    in it: in another one they are estimated.
    """

    lists: tuple[ListSize, ...] = ()
    objects: int = 0
    bytes: int = 0
    index: Weight = NOTHING
    downloads: Downloads = field(default_factory=Downloads)
    made: Mapping[str, Mapping[str, Weight]] = field(default_factory=dict)

    @classmethod
    def of(cls, lists: Iterable[ItemList], objects: int, size: int, index: Weight = NOTHING) -> "Site":
        """The site with these lists, this search index, and `objects` of `size` bytes besides."""
        sizes = (ListSize(items.name, len(items.items), sum(map(len, items.items))) for items in lists)
        return cls(tuple(sizes), objects, size, index)

    def weights(self, layout: str) -> dict[str, Weight]:
        """What each list becomes in a layout, by its name."""
        return {**self.made[layout]} if layout in self.made else self._estimated(layout)

    def _estimated(self, layout: str) -> dict[str, Weight]:
        # All sorts of a filter are of one size.
        sizes = {(size.count, size.bytes) for size in self.lists}
        weights = {size: layouts.weight(layout, *size) for size in sizes}
        return {size.name: weights[size.count, size.bytes] for size in self.lists}

    def without(self, names: AbstractSet[str]) -> "Site":
        """The same without the lists of these names."""
        kept = tuple(size for size in self.lists if size.name not in names)
        made = {
            layout: {name: weight for name, weight in weights.items() if name not in names}
            for layout, weights in self.made.items()
        }
        return replace(self, lists=kept, made=made)

    def next_downloads(self, *, has_step: bool) -> Weight:
        """What a build replaces of downloads that changes few markets and is not the first of its day."""
        found, daily = self.downloads.without_steps(), self.downloads.daily
        return replace(
            found,
            immutable=found.immutable - daily.immutable + has_step,
            immutable_bytes=found.immutable_bytes - daily.immutable_bytes,
        )

    def page_bytes(self, limit: int = LIMIT_DEFAULT) -> int:
        """The bytes of a page of so many average items."""
        items, size = sum(size.count for size in self.lists), sum(size.bytes for size in self.lists)
        return round(limit * size / max(1, items)) + _ENVELOPE_BYTES

    def total(self, layout: str) -> tuple[int, int]:
        """All objects and their bytes in a layout."""
        parts = [*self.weights(layout).values(), self.index, self.downloads.weight]
        return self.objects + sum(part.objects for part in parts), self.bytes + sum(part.bytes for part in parts)


@dataclass(frozen=True)
class Change:
    """What a build replaced; lists are given by name.

    `objects` counts new objects outside lists, index and downloads. `minutes` have passed since the previous build.
    `chunks` holds the number of new chunks per list of `new_generations`, where known. `index` is the new part of the
    search index, `downloads` that of dump and change feed, with a step of `step_bytes`. `made` has, by layout, what was
    written of lists that were made in it.
    """

    new_generations: frozenset[str]
    new_first_pages: frozenset[str]
    objects: int
    minutes: float
    chunks: Mapping[str, int | None] = field(default_factory=dict)
    index: Weight = NOTHING
    downloads: Weight = NOTHING
    step_bytes: int = 0
    made: Mapping[str, Weight] = field(default_factory=dict)


def everything(site: Site) -> Change:
    """The change of a build that replaces everything. Its step outweighs the dump, so there is none."""
    names = frozenset(size.name for size in site.lists)
    return Change(names, names, site.objects, 0, index=site.index, downloads=site.downloads.without_steps())


def new_part(site: Site, change: Change, layout: str) -> Weight:
    """What a change writes of lists, search index and downloads; generations may share chunks with earlier ones."""
    of_lists = change.made[layout] if layout in change.made else _estimated(site, change, layout)
    return of_lists + change.index + change.downloads


def _estimated(site: Site, change: Change, layout: str) -> Weight:
    known, new = site.weights(layout), NOTHING
    for size in site.lists:
        whole = known[size.name]
        if size.name in change.new_generations:
            chunks = change.chunks.get(size.name)
            written = whole if chunks is None else layouts.weight(layout, size.count, size.bytes, chunks)
            new += replace(written, mutable=0, mutable_bytes=0)
        if size.name in change.new_first_pages:
            new += replace(whole, immutable=0, immutable_bytes=0)
    return new
