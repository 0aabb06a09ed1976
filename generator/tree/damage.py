"""What of a folder is not as its manifest says: files that it does not name, and generations that are damaged."""

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeAlias

from generator import filesystem
from generator.api import keys
from generator.api.contract import API_VERSION
from generator.tree import pages
from generator.tree.generations import chunk_keys, has_index, is_index
from generator.tree.manifest import Current, Manifest


def unknown_paths(root: Path, known: Manifest) -> Iterator[Path]:
    """Every path under `v1/` that the manifest does not name; symbolic links to folders are never ours."""
    chunks = chunk_keys(known.generations())
    prefixes = {keys.generation_prefix(*pair) for pair in known.generations()}
    for folder, folders, names in os.walk(root / API_VERSION):
        place = Path(folder).relative_to(root).as_posix()
        for name in [name for name in folders if keys.is_generation(f"{place}/{name}")]:
            folders.remove(name)
            if f"{place}/{name}" not in prefixes:
                yield Path(folder, name)
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
        found = [f"{place}/{name}" for name in names]
        yield from (root / key for key in found if key not in known.objects and key not in chunks)


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
        if not has_index(name, entry.generation):
            return _are_pages_whole(path_of, name, entry)
        index = filesystem.read(path_of(keys.index(name, entry.generation)))
        chunks = [key for chunk in entry.chunks if (key := keys.chunk(name, chunk)) not in mended]
        return is_index(name, entry.generation, index) and all(
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
