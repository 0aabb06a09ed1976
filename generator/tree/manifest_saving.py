"""Saves the manifest of an output folder: whole if it is small, else as a root and the shards that changed.

Shards are named by their content, and a root never names one that is not in place: so whenever a build is killed, the
manifest in the folder is whole. What no root names is swept.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from generator.models import replaced
from generator.tree import files, manifest, manifest_file, row_shards
from generator.tree.folder import Output
from generator.tree.manifest import Manifest, RowShards
from generator.tree.membership import Memberships

#: The shards of a manifest that has none.
_WHOLE: Final = RowShards()


class Saving:
    """Replaces the manifest of a locked folder, which was read as `before`, by the one that a build leaves."""

    def __init__(self, folder: Output, before: Manifest | None) -> None:
        self._folder = folder
        self._before = before
        self.content = folder.read(files.MANIFEST)
        self._stored = manifest_file.shards_named(self.content) if before and self.content else _WHOLE
        self._placed = self._stored.all()
        self._staged: set[str] = set()
        self._final = _WHOLE

    def final(self, built: Manifest) -> bytes:
        """Stage the shards of the final manifest; returns the bytes of its file."""
        if row_shards.are_worth_it(len(built.markets), is_split=self._stored != _WHOLE):
            self._final = RowShards(names=self._rows(built), chunks=self._chunks(built))
        return self.encoded(built)

    def encoded(self, built: Manifest) -> bytes:
        """The bytes of the final manifest's file, when its shards are those that were staged."""
        return built.encoded() if self._final == _WHOLE else row_shards.without_rows(built, self._final).encoded()

    def intent(self, built: Manifest, memberships: Memberships) -> bytes:
        """Stage the shards of the manifest to save before files are replaced (`manifest.intend`); returns its bytes.

        It names the shards of both states, so that hardly any are written for it.
        """
        previous, current = self._before or built.emptied(), built.current
        if self._stored == self._final == _WHOLE:
            return manifest.intend(previous, current, memberships, built.as_of, built).encoded()
        begun = manifest.begun(previous, current, built.as_of)
        is_known = previous.complete and self._stored != _WHOLE
        names = self._stored.names if is_known else self._rows(previous)
        intended = self._final.names if self._final != _WHOLE else self._rows(_without_objects(built, memberships))
        known = frozenset(names)
        more = tuple(name for name in intended if name not in known)
        found = RowShards(names=names, intended=more, chunks=self._chunks(begun))
        return row_shards.without_rows(begun, found).encoded()

    def _rows(self, built: Manifest) -> tuple[str, ...]:
        return tuple(self._put(row_shards.split(built)))

    def _chunks(self, built: Manifest) -> dict[str, str]:
        known = self._before.generations() if self._before else {}
        found: dict[str, str] = {}
        for pair, entry in sorted(built.generations().items()):
            key = row_shards.generation_key(pair)
            if key in self._stored.chunks and pair in known and known[pair].chunks == entry.chunks:
                found[key] = self._stored.chunks[key]
            elif entry.chunks:
                (found[key],) = self._put([row_shards.of_chunks(entry.chunks)])
        return found

    def _put(self, bodies: Iterable[bytes]) -> Iterator[str]:
        """Stage the shards that are not in place yet; yields the names of all."""
        for body in bodies:
            name = row_shards.name_of(body)
            if name not in self._placed and name not in self._staged and self._folder.put(_key(name), body):
                self._staged.add(name)
            yield name

    def move(self) -> None:
        """Move the staged shards into place, before a manifest names them."""
        for name in sorted(self._staged):
            self._folder.move(_key(name))
        if self._staged:
            self._folder.sync_names(files.SHARDS)

    def sweep(self) -> None:
        """Delete the shards that the final manifest does not name: those of earlier ones, and of killed builds."""
        named = self._final.all()
        for name in self._folder.names(files.SHARDS):
            if row_shards.is_name(name) and name not in named:
                self._folder.discard_key(_key(name))


def _without_objects(built: Manifest, memberships: Memberships) -> Manifest:
    """Only what the manifest says of markets."""
    return replaced(built, objects={}, markets=memberships)


def _key(name: str) -> str:
    return f"{files.SHARDS}{name}"
