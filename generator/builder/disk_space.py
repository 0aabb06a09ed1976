"""Whether a disk has room for a build: checked before new details are written, and again before lists and index are.

The need is a lower bound, so that no build is refused that would fit. It is exact for the search index, and for the
pages or new chunks of lists with a new generation; of details it counts those of new markets, and their rows in the
manifest's shards. A dump is new if an item of a list is, and no smaller than the items alone, a sample of which is
compressed; steps of the change feed are left out. Objects that stay, those of retired generations included, need
nothing; a replaced object exists twice for a moment.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.builder import changes
from generator.config.settings import Config
from generator.cost import sizes
from generator.cost.sizes import NO_DOWNLOADS, NO_INDEX, Change, Site
from generator.downloads import segments
from generator.errors import OutputError
from generator.markets.market import Market
from generator.site import search_index
from generator.site.catalog import Catalog
from generator.source.survey import Survey
from generator.tree import layouts, row_shards
from generator.tree.generation import ItemList, Weight
from generator.tree.manifest import Manifest
from generator.tree.staging import Staged
from generator.wording import counted

_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_THOUSAND: Final = 1000
#: No detail is shorter: the names of its fields alone are as long.
_LEAST_BYTES: Final = 500
#: Nor is the head of a download, or its index.
_LEAST_HEAD: Final = 300
#: The list that changes whenever an item does.
_OF_ALL: Final = keys.list_name("all", "new")
#: As many groups of markets are compressed to learn how large a dump will be.
_SAMPLE: Final = 16


@dataclass(frozen=True)
class Need:
    """Files, including folders, and bytes."""

    files: int
    bytes: int

    def lacking(self, folder: Path, taken: tuple[int, int] = (0, 0)) -> str | None:
        """What the folder's file system has too little of, as a sentence; None when there is room.

        `taken`: the files and bytes of the need that are on the disk already.
        """
        free = filesystem.room(folder)
        files, size = taken
        free = free._replace(
            files=None if free.files is None else free.files + files, bytes=free.bytes + size + files * free.block // 2
        )
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


@dataclass(frozen=True)
class Plan:
    """What a build is going to make of a catalog: its lists, and an index of the categories `offered` (slugs).

    Its `details` are staged already: they count towards both the need and the room.
    """

    config: Config
    catalog: Catalog
    lists: Sequence[ItemList]
    offered: Collection[str]
    before: Manifest | None
    details: Staged

    def require(self, folder: Path) -> None:
        """Raise OutputError when the build has no room in the folder."""
        # Naming the generations means hashing everything, so look closer only when space is short.
        taken = len(self.details.changed), self.details.bytes
        if self._need(self._everything()).lacking(folder, taken) is None:
            return
        lacking = self._need(self._new()).lacking(folder, taken)
        if lacking:
            raise OutputError(f"{lacking}; {remedy(self.config)}")

    def _everything(self) -> Change:
        """More than the build changes of lists, index and downloads."""
        names = frozenset(items.name for items in self.lists)
        index = search_index.at_most(self.catalog) if self.config.can_search else NO_INDEX
        return Change(names, names, 0, 0, index=index, downloads=self._at_most())

    def _at_most(self) -> Weight:
        """More than the build makes of downloads: what changed, uncompressed, is both in the dump and in a step."""
        if not self.config.dumps.ndjson:
            return NO_DOWNLOADS
        current = self.before.current if self.before else {}
        before = sum(current[name].bytes for name in keys.DOWNLOADS if name in current)
        return Weight(4, before + 2 * self.details.bytes, 2, 0)

    def _new(self) -> Change:
        """Exactly what the build changes of them."""
        change, names = changes.expected(self.before, self.catalog.as_of, self.config.layout, self.lists)
        change = replace(change, downloads=self._at_least(change))
        if not self.config.can_search:
            return change
        index = search_index.make(self.catalog, self.offered, self.config.layout, names)
        return replace(change, index=changes.expected_of_index(self.before, index))

    def _at_least(self, change: Change) -> Weight:
        """Less than the build makes of downloads that changes the lists like this."""
        before = self.before
        is_kept = (
            before
            and keys.DUMPS in before.current
            and (before.layout != self.config.layout or _OF_ALL not in change.new_generations)
        )
        if is_kept or not self.config.dumps.ndjson:
            return NO_DOWNLOADS
        heads = 1 + self.config.has_changes
        size = _least_dump(self.catalog.listed()) + heads * _LEAST_HEAD
        return Weight(1 + heads, size, heads, heads * _LEAST_HEAD)

    def _need(self, change: Change) -> Need:
        files, size = len(self.details.changed), self.details.bytes
        site = Site.of(self.lists, files, size)
        return needed(site, replace(change, objects=files), self.config.layout)


def require_details(config: Config, survey: Survey, before: Manifest | None, folder: Path) -> None:
    """Raise OutputError when the folder has no room for the details of new markets."""
    known = before.markets.keys() if before else ()
    slugs = survey.facts.slugs
    files = sum(2 if key in slugs else 1 for key in survey.keys if str(key).lower() not in known)
    lacking = Need(files, files * _LEAST_BYTES).lacking(folder)
    if lacking:
        raise OutputError(f"{lacking}; {remedy(config)}")


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
    folders = sum(layouts.folder_count(layout, count) for count in counts)
    # Each head has an index in a folder of its own.
    folders += change.downloads.mutable
    shards = _of_shards(site, change, layout)
    return Need(files + folders + shards.files, size + shards.bytes)


def _least_dump(markets: Sequence[Market]) -> int:
    """No more than the bytes of the dump of these markets: a line has all that an item has."""
    size = segments.GROUP_SIZE
    starts = range(0, len(markets), max(size, len(markets) // _SAMPLE))
    sample = [[market.body for market in markets[start : start + size]] for start in starts]
    count = sum(map(len, sample))
    return sum(len(segments.compress(b"\n".join(bodies))) for bodies in sample) * len(markets) // max(1, count)


def _of_shards(site: Site, change: Change, layout: str) -> Need:
    """The space that the manifest's shards need, if the site is large enough to have some."""
    if not row_shards.are_worth_it(max((items.count for items in site.lists), default=0), is_split=False):
        return Need(0, 0)
    files, size = row_shards.at_least(change.objects)
    return Need(files + (len(change.new_generations) if layouts.is_cut(layout) else 0), size)


def _shown(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _THOUSAND:
            return f"{size:.3g} {unit}"
        size /= _THOUSAND
    return f"{size:.3g} {_UNITS[-1]}"
