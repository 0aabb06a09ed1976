"""Whether a disk has room for a build, checked before anything is written.

The need is a lower bound, so that no build is refused that would fit: exact for the pages or chunks of lists with a new
generation; of details it counts those of new markets, each at least as long as its item in a list. Objects that stay
need nothing; a replaced object exists twice for a moment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.builder import changes
from generator.config.settings import Config
from generator.cost import sizes
from generator.cost.sizes import Change, Site
from generator.errors import OutputError
from generator.markets.catalog import Catalog
from generator.tree import layouts
from generator.tree.generation import ItemList
from generator.tree.manifest import Manifest
from generator.wording import counted

_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_THOUSAND: Final = 1000


@dataclass(frozen=True)
class Need:
    """Files, including folders, and bytes."""

    files: int
    bytes: int

    def lacking(self, folder: Path) -> str | None:
        """What the folder's file system has too little of, as a sentence; None when there is room."""
        free = filesystem.room(folder)
        # On average, half of a file's last block is unused; more of a short page's.
        size = self.bytes + self.files * free.block // 2
        lacks_files, lacks_bytes = free.files is not None and self.files > free.files, size > free.bytes
        if not lacks_files and not lacks_bytes:
            return None
        available = (
            f"{counted(free.files or 0, 'file', ',')} (df -i)" if lacks_files else f"{_shown(free.bytes)} (df -h)"
        )
        return (
            f"{folder}: no space left on device for this build: it needs {counted(self.files, 'file', ',')} and "
            f"{_shown(size)}, and there is room for {available}"
        )


def require(folder: Path, config: Config, catalog: Catalog, lists: Sequence[ItemList], before: Manifest | None) -> None:
    """Raise OutputError when a build of these lists has no room in the folder."""
    everything = _need(config, catalog, lists, before, dict.fromkeys(items.name for items in lists))
    # Naming the generations means hashing everything, so look closer only when space is short.
    if everything.lacking(folder) is None:
        return
    lacking = _need(config, catalog, lists, before, _new(config.layout, catalog, lists, before)).lacking(folder)
    if lacking:
        raise OutputError(f"{lacking}; {remedy(config)}")


def _new(layout: str, catalog: Catalog, lists: Sequence[ItemList], before: Manifest | None) -> Mapping[str, int | None]:
    """The lists that get a new generation, each with its number of new chunks."""
    generations = (layouts.make(layout, items) for items in lists)
    return changes.expected(before, catalog.as_of, generations, 0).chunks


def remedy(config: Config) -> str:
    """What to do when space is short."""
    ways = ["free some space", "choose another folder with --set output=…"]
    ways += ["restrict `categories`"] if config.variant == "extended" else []
    ways += [f"set `layout: {layouts.COMPACT}`"] if config.layout != layouts.COMPACT else []
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def needed(site: Site, change: Change, layout: str) -> Need:
    """The space that a change needs."""
    files, size = sizes.written(site, change, layout)
    counts = (items.count for items in site.lists if items.name in change.new_generations)
    return Need(files + sum(layouts.folder_count(layout, count) for count in counts), size)


def _need(
    config: Config, catalog: Catalog, lists: Sequence[ItemList], before: Manifest | None, new: Mapping[str, int | None]
) -> Need:
    known = before.markets.keys() if before else ()
    details = [
        len(market.body)
        for market in catalog.markets
        if market.item.id not in known
        for _ in keys.details(market.item.id, market.item.slug)
    ]
    names = frozenset(new)
    site = Site.of(lists, len(details), sum(details))
    return needed(site, Change(names, names, len(details), 0, new), config.layout)


def _shown(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _THOUSAND:
            return f"{size:.3g} {unit}"
        size /= _THOUSAND
    return f"{size:.3g} {_UNITS[-1]}"
