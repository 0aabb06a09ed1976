"""What a build changes since the previous one, before it is made and after. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from generator.api import keys
from generator.builder.report_file import DownloadCounts
from generator.cost.sizes import NO_DOWNLOADS, NO_INDEX, Change, Downloads, Site
from generator.search.generation import Generation as Index
from generator.tree import layouts, manifest
from generator.tree.generation import ItemList, Weight
from generator.tree.manifest import Manifest
from generator.tree.staging import Rendered, StagedList


def expected(
    previous: Manifest | None, as_of: str, layout: str, lists: Iterable[ItemList]
) -> tuple[Change, dict[str, str]]:
    """What building these lists will change, and the name of each list's generation."""
    known = previous.generations() if previous else {}
    current = previous.current() if previous else {}
    existing = layouts.chunk_keys(known)
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
        for key in layouts.object_keys(name, generation)
    }
    is_current = previous is not None and previous.search is not None and previous.search.generation == index.name
    return index.weight({*existing, *(key for key, _ in index.first_pages() if is_current)})


def made(previous: Manifest | None, rendered: Rendered) -> Change | None:
    """What a build changed; None when that says nothing about later builds."""
    if previous is None or not previous.complete or not (rendered.staged.changed or rendered.new_parts()):
        return None
    minutes = manifest.minutes_between(previous.as_of, rendered.manifest.as_of)
    if minutes <= 0:
        return None
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.changed)
    new_generations = frozenset(staged.name for staged in rendered.new_lists())
    new_first_pages = frozenset(staged.name for staged in rendered.lists if staged.first_pages.changed)
    # A new generation has a new index, which is not a chunk.
    chunks = {staged.name: staged.new.objects - 1 for staged in rendered.lists if staged.new and staged.current.chunks}
    index = rendered.index.written() if rendered.index else NO_INDEX
    downloads = sum((download.written() for download in rendered.downloads), NO_DOWNLOADS)
    return Change(
        new_generations, new_first_pages, objects, minutes, chunks, index, downloads, _step_bytes(rendered.downloads)
    )


def site_of(lists: Sequence[ItemList], rendered: Rendered, counts: DownloadCounts | None) -> Site:
    """The size of a site with these lists, as it was staged; `counts` are those of its downloads."""
    objects = sum(not keys.is_first_page(key) for key in rendered.staged.objects)
    index = rendered.index.weight() if rendered.index else NO_INDEX
    weight = sum((download.weight() for download in rendered.downloads), NO_DOWNLOADS)
    first_pages = sum(staged_list.first_pages.size for staged_list in rendered.lists)
    size = rendered.staged.size - first_pages - index.mutable_bytes - weight.mutable_bytes
    found = counts or DownloadCounts()
    daily = Weight(found.history_files, found.history_bytes, 0, 0)
    downloads = Downloads(weight, found.ndjson_bytes, found.steps, found.steps_bytes, daily)
    return replace(Site.of(lists, objects, size, index), downloads=downloads)


def _step_bytes(staged: Iterable[StagedList]) -> int:
    """The bytes of the steps that were staged: all new files of the feed but its index, as long as its head."""
    feeds = (feed for feed in staged if feed.name == keys.CHANGES and feed.new)
    return sum(feed.written().immutable_bytes - feed.first_pages.size for feed in feeds)
