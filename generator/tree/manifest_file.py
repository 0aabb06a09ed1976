"""Reads the manifest of an output folder: one file, or a root and the shards that it names."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import BaseModel, Field

from generator import filesystem
from generator.errors import OutputError
from generator.tree import files, manifest, row_shards, stored
from generator.tree.manifest import Manifest, RowShards

#: Reads a file's bytes by its name; None if there is none.
ReadFile: TypeAlias = Callable[[str], bytes | None]

#: What to do with a folder whose manifest cannot be read. The blocked list is all that a build cannot make again.
_REMEDY: Final = "move the folder away and build again"
_KEPT: Final = f"keep its {files.BLOCKED}"


class _Root(BaseModel):
    """What a manifest's file says of shards."""

    row_shards: RowShards | None = Field(default=None, alias="rowShards")


def read(folder: Path, get: ReadFile | None = None, *, is_light: bool = False) -> Manifest | None:
    """The manifest in a folder; None if there is none. `is_light`: digests of details may be missing.

    `get` reads the files of folders that are not on disk, by name. Raises OutputError if anything of the manifest is
    damaged, missing or written by a newer program.
    """
    get = get or partial(_bytes, folder)
    while content := get(files.MANIFEST):
        root = decoded(folder, content)
        if root.row_shards is None:
            return root
        try:
            bodies = {name: _body(folder, get, name) for name in root.row_shards.all()}
            return row_shards.joined(root, bodies, is_light=is_light and root.complete)
        except OutputError:
            # A build that ended meanwhile has deleted the shards of the manifest that it replaced.
            if get(files.MANIFEST) == content:
                raise
    return None if content is None else decoded(folder, content)


def decoded(folder: Path, content: bytes) -> Manifest:
    """The manifest in the bytes of its file, without what shards say; raise OutputError if it cannot be read."""
    path = folder / files.MANIFEST
    try:
        stored.require_format(content, manifest.FORMAT)
        return Manifest.model_validate_json(content)
    except ValueError as error:
        raise OutputError(f"{path}: {stored.fault(error, f'{_REMEDY}; {_KEPT}')}") from error


def shards_named(content: bytes) -> RowShards:
    """The shards that a manifest names; `content` is that of a file that was decoded before; it is not validated."""
    return _Root.model_validate_json(content).row_shards or RowShards()


def _body(folder: Path, get: ReadFile, name: str) -> bytes:
    body = get(f"{files.SHARDS}{name}")
    if body is None or row_shards.name_of(body) != name:
        problem = "missing" if body is None else "altered"
        path = folder / files.SHARDS / name
        raise OutputError(f"{path}: {problem}, and part of {files.MANIFEST}; {_REMEDY}; {_KEPT}")
    return body


def _bytes(folder: Path, name: str) -> bytes | None:
    with suppress(FileNotFoundError):
        return filesystem.read(f"{folder}/{name}")
    return None
