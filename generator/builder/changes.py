"""How large a site is, as it was staged or in its folder, and what a build changes of it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from generator.api import keys
from generator.builder.report_file import DownloadCounts
from generator.cost.sizes import Change, Downloads, Site
from generator.tree import families, manifest
from generator.tree.folder import Output
from generator.tree.generation import ItemList, Weight
from generator.tree.manifest import Manifest
from generator.tree.staging import Rendered, StagedFamily


def made(previous: Manifest | None, rendered: Rendered) -> Change:
    """What a build changes; without a `previous` one, that is everything."""
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.changed)
    lists = rendered.lists()
    return Change(
        new_generations=frozenset(staged.name for staged in lists if staged.new),
        new_first_pages=frozenset(staged.name for staged in lists if staged.first_pages.changed),
        objects=objects,
        minutes=manifest.minutes_between(previous.as_of, rendered.manifest.as_of) if previous else 0,
        # A new generation has a new index, which is not a chunk.
        chunks={staged.name: staged.new.objects - 1 for staged in lists if staged.new and staged.current.chunks},
        index=_total(rendered, [keys.SEARCH], StagedFamily.written),
        downloads=_total(rendered, keys.DOWNLOADS, StagedFamily.written),
        step_bytes=_step_bytes(rendered),
        made={rendered.manifest.layout: _total(rendered, [staged.name for staged in lists], StagedFamily.written)},
    )


def is_telling(previous: Manifest | None, rendered: Rendered) -> bool:
    """Whether what a build changed says something about later builds."""
    if previous is None or not previous.complete:
        return False
    return bool(rendered.staged.changed or rendered.new_generations())


@dataclass(frozen=True)
class SiteSize:
    """What a site consists of: the keys of its mutable objects, their bytes, and the weights of families by name."""

    layout: str
    objects: Collection[str]
    bytes: int
    weights: Mapping[str, Weight]

    @classmethod
    def staged(cls, rendered: Rendered) -> Self:
        """That of a site as it was staged."""
        weights = {name: family.weight() for name, family in rendered.families.items()}
        return cls(rendered.manifest.layout, rendered.staged.objects, rendered.staged.size, weights)

    @classmethod
    def in_place(cls, folder: Output, built: Manifest) -> Self:
        """That of a site in its folder."""
        weights = dict[str, Weight]()
        for name, current in built.current.items():
            first_pages = [key for _, key in families.first_pages(name, current.generation)]
            objects, size = families.object_count(name, current), current.bytes
            weights[name] = Weight(objects, size, *folder.weight(first_pages))
        return cls(built.layout, built.objects, folder.weight(built.objects)[1], weights)

    def site(self, lists: Sequence[ItemList], counts: DownloadCounts | None) -> Site:
        """The size of a site with these lists; `counts` are those of its downloads."""
        nothing = Weight(0, 0, 0, 0)
        objects = sum(not keys.is_first_page(key) for key in self.objects)
        size = self.bytes - sum(weight.mutable_bytes for weight in self.weights.values())
        found = counts or DownloadCounts()
        daily = Weight(found.history_files, found.history_bytes, 0, 0)
        weight = sum((self.weights[name] for name in keys.DOWNLOADS if name in self.weights), nothing)
        downloads = Downloads(weight, found.ndjson_bytes, found.steps, found.steps_bytes, daily)
        of_lists = {name: weight for name, weight in self.weights.items() if name not in keys.INDEXED}
        index = self.weights.get(keys.SEARCH, nothing)
        return replace(Site.of(lists, objects, size, index), downloads=downloads, made={self.layout: of_lists})


def _total(rendered: Rendered, names: Iterable[str], weight: Callable[[StagedFamily], Weight]) -> Weight:
    """The weight of these families together."""
    staged = (rendered.families[name] for name in names if name in rendered.families)
    return sum(map(weight, staged), Weight(0, 0, 0, 0))


def _step_bytes(rendered: Rendered) -> int:
    """The bytes of the steps that were staged: all new files of the feed but its index, as long as its head."""
    feed = rendered.families.get(keys.CHANGES)
    return feed.written().immutable_bytes - feed.first_pages.size if feed and feed.new else 0
