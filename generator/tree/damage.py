"""Finds generations of a folder that no build makes again, and whose files are not what they were."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

from generator import filesystem
from generator.api import keys
from generator.tree import families, pages
from generator.tree.manifest import Current, Manifest

#: The path of an object, by its key.
PathOf: TypeAlias = Callable[[str], Path]


def generations(
    path_of: PathOf, before: Manifest, made: Collection[tuple[str, str]], mended: Collection[str]
) -> frozenset[tuple[str, str]]:
    """The generations of `before`, but those just `made`, of which a file is missing or damaged.

    Objects that are about to be `mended`, by their keys, count as whole.
    """
    others = [(pair, entry) for pair, entry in before.generations().items() if pair not in made]
    return frozenset(pair for pair, entry in others if not _is_whole(path_of, pair[0], entry, mended))


def _is_whole(path_of: PathOf, name: str, entry: Current, mended: Collection[str]) -> bool:
    try:
        if not families.has_index(name, entry.generation):
            return _are_pages_whole(path_of, name, entry)
        index = filesystem.read(path_of(keys.index(name, entry.generation)))
        chunks = [key for chunk in entry.chunks if (key := keys.chunk(name, chunk)) not in mended]
        return families.is_index(name, entry.generation, index) and all(
            filesystem.digest(path_of(key)).startswith(key.rpartition("/")[2].partition(".")[0]) for key in chunks
        )
    except (OSError, ValueError):
        return False


def _are_pages_whole(path_of: PathOf, name: str, entry: Current) -> bool:
    """Whether pages agree with those of one item. Nothing tells what the first of these had."""
    singles = (keys.page(name, entry.generation, 1, place) for place in range(1, entry.count))
    items = [item for key in singles for item in pages.read(filesystem.read(path_of(key))).items]
    made = pages.remade(name, entry.generation, items)
    return len(items) == max(0, entry.count - 1) and all(filesystem.holding(path_of(key), body) for key, body in made)
