"""Finds the files of a folder that its manifest does not name, as killed runs leave them."""

import os
from collections.abc import Iterator
from pathlib import Path

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.tree import families
from generator.tree.manifest import Manifest


def paths(root: Path, known: Manifest) -> Iterator[Path]:
    """Every path under `v1/` that the manifest does not name; symbolic links to folders are never ours."""
    chunks = families.chunk_keys(known.generations())
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
