"""A site that is staged, and not in place yet: how large it is, and what of it is new."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from generator.api import keys
from generator.builder.content_guards import ContentGuards
from generator.builder.counts import DownloadCounts
from generator.cost.sizes import Change, Downloads, Site
from generator.site.catalog import Catalog
from generator.site.make import MadeSite
from generator.tree import manifest
from generator.tree.generation import Weight

_NOTHING: Final = Weight(0, 0, 0, 0)


@dataclass(frozen=True)
class Prepared:
    """What was made of a `catalog`, to replace the build as of `since`; that is empty if there is none.

    `found` is the catalog with blocked markets, too. `guards` compare the details with those of that build.
    """

    found: Catalog
    catalog: Catalog
    made: MadeSite
    since: str
    guards: ContentGuards

    def counts(self) -> DownloadCounts | None:
        """The size of dump and change feed, if there are any."""
        downloads = self.made.downloads
        return DownloadCounts.of(downloads.dump, downloads.feed) if downloads.dump else None

    @cached_property
    def site(self) -> Site:
        """The size of everything, as it was staged."""
        rendered, found = self.made.rendered, self.counts() or DownloadCounts()
        weights = {name: family.weight() for name, family in rendered.families.items()}
        objects = sum(not keys.is_first_page(key) for key in rendered.staged.objects)
        others = rendered.staged.size - sum(weight.mutable_bytes for weight in weights.values())
        daily = Weight(found.history_files, found.history_bytes, 0, 0)
        weight = sum((weights[name] for name in keys.DOWNLOADS if name in weights), _NOTHING)
        downloads = Downloads(weight, found.ndjson_bytes, found.steps, found.steps_bytes, daily)
        of_lists = {name: weight for name, weight in weights.items() if name not in keys.INDEXED}
        site = Site.of(self.made.lists, objects, others, weights.get(keys.SEARCH, _NOTHING))
        return replace(site, downloads=downloads, made={rendered.manifest.layout: of_lists})

    @cached_property
    def change(self) -> Change:
        """What of it is new; without an earlier build, that is everything."""
        rendered, lists = self.made.rendered, self.made.rendered.lists()
        feed, built_at = rendered.families.get(keys.CHANGES), rendered.manifest.as_of
        # The new files of the feed but its index, which is as long as its head, are steps.
        steps = feed.written().immutable_bytes - feed.first_pages.size if feed and feed.new else 0
        return Change(
            new_generations=frozenset(staged.name for staged in lists if staged.new),
            new_first_pages=frozenset(staged.name for staged in lists if staged.first_pages.changed),
            objects=sum(not keys.is_first_page(key) for key in rendered.staged.changed),
            minutes=manifest.minutes_between(self.since, built_at) if self.since else 0,
            # A new generation has a new index, which is not a chunk.
            chunks={staged.name: staged.new.objects - 1 for staged in lists if staged.new and staged.current.chunks},
            index=self._written([keys.SEARCH]),
            downloads=self._written(keys.DOWNLOADS),
            step_bytes=steps,
            made={rendered.manifest.layout: self._written(staged.name for staged in lists)},
        )

    def _written(self, names: Iterable[str]) -> Weight:
        """What was staged of these families together."""
        families = self.made.rendered.families
        return sum((families[name].written() for name in names if name in families), _NOTHING)
