"""Whether a disk has room for what a build puts aside, which is asked before anything is written.

What a build needs is told from below, so that none is refused that would fit: exactly for the pages or chunks of lists
that have no generation yet; of details, those of markets that were not published before, each at least as long as its
item in a list. What is in place and stays takes nothing, what is replaced is there twice for a moment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.config.settings import Config
from generator.cost import estimate
from generator.cost.estimate import Change, ListSize, Site
from generator.errors import OutputError
from generator.markets.catalog import Catalog
from generator.tree import layouts, pages
from generator.tree.manifest import Manifest
from generator.tree.pages import ItemList

_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_THOUSAND: Final = 1000


@dataclass(frozen=True)
class Need:
    """Files, folders included, and bytes."""

    files: int
    bytes: int

    def lacking(self, folder: Path) -> str | None:
        """Say what the folder's file system has too little of; None when there is room."""
        free = filesystem.room(folder)
        # The last block of a file is filled by half in the mean, and that of a short page by less.
        size = self.bytes + self.files * free.block // 2
        lacks_files, lacks_bytes = free.files is not None and self.files > free.files, size > free.bytes
        if not lacks_files and not lacks_bytes:
            return None
        there = f"{free.files:,} files (df -i)" if lacks_files else f"{_shown(free.bytes)} (df -h)"
        return (
            f"{folder}: no space left on device for this build: {self.files:,} files and {_shown(size)} are to be "
            f"written, and there is room for {there}"
        )


def require(folder: Path, config: Config, catalog: Catalog, lists: Sequence[ItemList], before: Manifest | None) -> None:
    """Raise OutputError when the build of these lists cannot be put aside in the folder."""
    everything = _need(config, catalog, lists, before, dict.fromkeys(one.name for one in lists))
    # Names of generations are digests of all there is: they are asked for only where it matters.
    if everything.lacking(folder) is None:
        return
    lacking = _need(config, catalog, lists, before, _new(config.layout, lists, before)).lacking(folder)
    if lacking:
        raise OutputError(f"{lacking}; {remedy(config)}")


def _new(layout: str, lists: Sequence[ItemList], before: Manifest | None) -> dict[str, int | None]:
    """The lists that get a generation that is not there yet, each with how many of its chunks are not."""
    known = before.generations() if before else {}
    there = layouts.chunk_keys(known)
    made = (layouts.make(layout, one) for one in lists)
    new = (one for one in made if (one.list_name, one.name) not in known)
    return {one.list_name: layouts.new_chunks(one, there) for one in new}


def remedy(config: Config) -> str:
    """What helps where there is no room."""
    ways = ["make room", "choose another folder with --set output=…"]
    ways += ["restrict `categories`"] if config.variant == "extended" else []
    ways += ["set `layout: chunks`"] if config.layout == pages.LAYOUT else []
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def needed(site: Site, change: Change, layout: str) -> Need:
    """What a change writes."""
    files, size = estimate.written(site, change, layout)
    counts = (one.count for one in site.lists if one.name in change.new_generations)
    return Need(files + (sum(map(_folders, counts)) if layout == pages.LAYOUT else 0), size)


def _need(
    config: Config, catalog: Catalog, lists: Sequence[ItemList], before: Manifest | None, new: Mapping[str, int | None]
) -> Need:
    known = before.markets.keys() if before else ()
    bodies = [
        len(market.body)
        for market in catalog.markets
        if market.item.id not in known
        for _ in keys.details(market.item.id, market.item.slug)
    ]
    sizes = tuple(ListSize(one.name, len(one.items), sum(map(len, one.items))) for one in lists)
    names = frozenset(new)
    return needed(Site(sizes, len(bodies), sum(bodies)), Change(names, names, len(bodies), 0, new), config.layout)


def _folders(count: int) -> int:
    """How many folders the pages of a list are in."""
    return sum(-(-count // (limit * keys.PAGES_PER_FOLDER)) for limit in pages.LIMITS if limit < count)


def _shown(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _THOUSAND:
            return f"{size:.3g} {unit}"
        size /= _THOUSAND
    return f"{size:.3g} {_UNITS[-1]}"
