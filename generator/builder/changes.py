"""What a build changes since the previous one, before it is made and after. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from generator.api import keys
from generator.builder.report_file import DownloadCounts
from generator.cost.sizes import Change, Downloads, Site
from generator.search.generation import Generation as Index
from generator.tree import families, layouts, manifest
from generator.tree.generation import ItemList, Weight
from generator.tree.manifest import Manifest
from generator.tree.staging import Rendered, StagedFamily


def expected(
    previous: Manifest | None, as_of: str, layout: str, lists: Iterable[ItemList]
) -> tuple[Change, dict[str, str]]:
    """What building these lists will change, and the name of each list's generation."""
    known = previous.generations() if previous else {}
    current = previous.current_generations() if previous else {}
    existing = families.chunk_keys(known)
    names, new_first_pages, new_chunks = dict[str, str](), set[str](), dict[str, int | None]()
    for items in lists:
        generation = layouts.make(layout, items)
        names[items.name] = generation.name
        pair = (items.name, generation.name)
        if pair not in current:
            new_first_pages.add(items.name)
        if pair not in known:
            new_chunks[items.name] = layouts.new_chunks(generation, existing)
    minutes = manifest.minutes_between(previous.as_of, as_of) if previous else 0
    return Change(frozenset(new_chunks), frozenset(new_first_pages), 0, minutes, new_chunks), names


def expected_of_index(previous: Manifest | None, index: Index) -> Weight:
    """The part of a search index that building it will write."""
    known = previous.generations() if previous else {}
    existing = {
        key
        for (name, _), generation in known.items()
        if name == keys.SEARCH
        for key in families.object_keys(name, generation)
    }
    is_current = previous is not None and (keys.SEARCH, index.name) in previous.current_generations()
    return index.weight({*existing, *(key for key, _ in index.first_pages() if is_current)})


def made(previous: Manifest | None, rendered: Rendered) -> Change | None:
    """What a build changed; None when that says nothing about later builds."""
    if previous is None or not previous.complete or not (rendered.staged.changed or rendered.new_generations()):
        return None
    minutes = manifest.minutes_between(previous.as_of, rendered.manifest.as_of)
    if minutes <= 0:
        return None
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.changed)
    lists = rendered.lists()
    new_generations = frozenset(staged.name for staged in lists if staged.new)
    new_first_pages = frozenset(staged.name for staged in lists if staged.first_pages.changed)
    # A new generation has a new index, which is not a chunk.
    chunks = {staged.name: staged.new.objects - 1 for staged in lists if staged.new and staged.current.chunks}
    index = _total(rendered, [keys.SEARCH], StagedFamily.written)
    downloads = _total(rendered, keys.DOWNLOADS, StagedFamily.written)
    return Change(new_generations, new_first_pages, objects, minutes, chunks, index, downloads, _step_bytes(rendered))


def site_of(lists: Sequence[ItemList], rendered: Rendered, counts: DownloadCounts | None) -> Site:
    """The size of a site with these lists, as it was staged; `counts` are those of its downloads."""
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.objects)
    index = _total(rendered, [keys.SEARCH], StagedFamily.weight)
    weight = _total(rendered, keys.DOWNLOADS, StagedFamily.weight)
    size = rendered.staged.size - sum(staged.first_pages.size for staged in rendered.families.values())
    found = counts or DownloadCounts()
    daily = Weight(found.history_files, found.history_bytes, 0, 0)
    downloads = Downloads(weight, found.ndjson_bytes, found.steps, found.steps_bytes, daily)
    return replace(Site.of(lists, objects, size, index), downloads=downloads)


def _total(rendered: Rendered, names: Iterable[str], weight: Callable[[StagedFamily], Weight]) -> Weight:
    """The weight of these families together."""
    staged = (rendered.families[name] for name in names if name in rendered.families)
    return sum(map(weight, staged), Weight(0, 0, 0, 0))


def _step_bytes(rendered: Rendered) -> int:
    """The bytes of the steps that were staged: all new files of the feed but its index, as long as its head."""
    feed = rendered.families.get(keys.CHANGES)
    return feed.written().immutable_bytes - feed.first_pages.size if feed and feed.new else 0
