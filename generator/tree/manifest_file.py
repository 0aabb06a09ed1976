"""Reads the manifest of an output folder: one file, or a header and the state that it names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from generator.errors import OutputError
from generator.models import replaced
from generator.tree import files, manifest, state, stored
from generator.tree.generation import Read
from generator.tree.manifest import Manifest
from generator.tree.stored import FormatError

#: What to do with a folder whose manifest cannot be read. The blocked list is all that a build cannot make again.
_REMEDY: Final = f"move the folder away and build again; keep its {files.BLOCKED}"
_ANEW: Final = "make the folder anew with `public-markets build --full`"
_MOVING: Final = "`public-markets rebuild --verify` brings it over (`build --full` where there is no target)"


class UnreadableManifestError(OutputError):
    """The manifest in a folder is this program's, and cannot be read: another version wrote it, or it is damaged.

    The message is `cause` and `remedy`.
    """

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}; {remedy}")
        self.cause, self.remedy = cause, remedy


def read(folder: Path, get: Read, *, is_light: bool = False) -> Manifest | None:
    """The manifest in a folder; None if there is none. `is_light`: digests of details may be missing.

    `get` reads its files, by name. Raises OutputError if anything of the manifest is
    damaged, missing or written by another version; UnreadableManifestError if a version of this program wrote it.
    """
    while content := get(files.MANIFEST):
        root = decoded(folder, content)
        if not root.state and not root.intended:
            return root
        try:
            return _joined(folder, get, root, is_light=is_light)
        except OutputError:
            # A build that ended meanwhile has deleted the state of the manifest that it replaced.
            if get(files.MANIFEST) == content:
                raise
    return None if content is None else decoded(folder, content)


def recorded_settings(folder: Path) -> Mapping[str, Any]:
    """The settings that shaped what is in a folder; none if it has no manifest. Errors are those of `decoded`."""
    path = folder / files.MANIFEST
    return decoded(folder, path.read_bytes()).settings if path.is_file() else {}


def decoded(folder: Path, content: bytes) -> Manifest:
    """The manifest in the bytes of its file, without what its state says; raise OutputError if it cannot be read."""
    path = folder / files.MANIFEST
    try:
        stored.require_format(content, manifest.FORMAT, manifest.OLDEST_FORMAT)
        return Manifest.model_validate_json(content)
    except ValueError as error:
        if not stored.version_of(content):
            raise OutputError(f"{path}: {stored.fault(error, content, _REMEDY)}") from error
        remedy = stored.remedy_of(error, content, _REMEDY, _MOVING)
        if isinstance(error, FormatError):
            remedy += f", or {_ANEW}"
        raise UnreadableManifestError(f"{path}: {stored.cause(error, content)}", remedy) from error


def _joined(folder: Path, get: Read, root: Manifest, *, is_light: bool) -> Manifest:
    """The manifest with what its state says and, while a build replaces files, with what it will leave."""
    bodies = {name: _body(folder, get, name) for name in (root.state, root.intended) if name}
    try:
        built = replaced(root, intended="", begun_at="")
        if root.state:
            built, _ = state.decoded(built, bodies[root.state], is_light=is_light and root.complete)
        if not root.intended:
            return built
        after, _ = state.decoded(root, bodies[root.intended], is_light=True, is_intended=True)
        return manifest.intend(built, after.current, after.markets, root.begun_at, after)
    except state.UNREADABLE as error:
        cause = f"{folder / files.STATES}: written by another version"
        raise UnreadableManifestError(cause, f"{_MOVING}, or run that version") from error


def _body(folder: Path, get: Read, name: str) -> bytes:
    body = get(f"{files.STATES}{name}")
    if body is None or not state.is_intact(name, body):
        problem = "missing" if body is None else "altered"
        path = folder / files.STATES / name
        raise UnreadableManifestError(f"{path}: {problem}, and part of {files.MANIFEST}", _REMEDY)
    return body
