"""How large a site is, as it was staged, and what a build changes of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from generator.api import keys
from generator.builder.report_file import DownloadCounts
from generator.cost.sizes import Change, Downloads, Site
from generator.tree import manifest
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


def size(rendered: Rendered, lists: Sequence[ItemList], counts: DownloadCounts | None) -> Site:
    """The size of a site with these lists, as it was staged; `counts` are those of its downloads."""
    nothing, weights = Weight(0, 0, 0, 0), {name: family.weight() for name, family in rendered.families.items()}
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.objects)
    others = rendered.staged.size - sum(weight.mutable_bytes for weight in weights.values())
    found = counts or DownloadCounts()
    daily = Weight(found.history_files, found.history_bytes, 0, 0)
    weight = sum((weights[name] for name in keys.DOWNLOADS if name in weights), nothing)
    downloads = Downloads(weight, found.ndjson_bytes, found.steps, found.steps_bytes, daily)
    of_lists = {name: weight for name, weight in weights.items() if name not in keys.INDEXED}
    site = Site.of(lists, objects, others, weights.get(keys.SEARCH, nothing))
    return replace(site, downloads=downloads, made={rendered.manifest.layout: of_lists})


def _total(rendered: Rendered, names: Iterable[str], weight: Callable[[StagedFamily], Weight]) -> Weight:
    """The weight of these families together."""
    staged = (rendered.families[name] for name in names if name in rendered.families)
    return sum(map(weight, staged), Weight(0, 0, 0, 0))


def _step_bytes(rendered: Rendered) -> int:
    """The bytes of the steps that were staged: all new files of the feed but its index, as long as its head."""
    feed = rendered.families.get(keys.CHANGES)
    return feed.written().immutable_bytes - feed.first_pages.size if feed and feed.new else 0
