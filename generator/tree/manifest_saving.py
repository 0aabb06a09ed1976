"""Saves the manifest of an output folder: whole if it is small, else as a header and the state that it names.

States are named by their content, and a header never names one that is not in place: so whenever a build is killed, the
manifest in the folder is whole. What no header names is swept.
"""

from generator.models import replaced
from generator.tree import files, manifest, manifest_file, state
from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.tree.membership import Memberships


class Saving:
    """Replaces the manifest of a locked folder, which was read as `before`, by the one that a build leaves."""

    def __init__(self, folder: Output, before: Manifest | None) -> None:
        self._folder = folder
        self._before = before
        self.content = folder.read(files.MANIFEST)
        self._stored = manifest_file.decoded(folder.path(""), self.content) if before and self.content else None
        self._staged = set[str]()
        self._final: Manifest | None = None

    def final(self, built: Manifest) -> bytes:
        """Stage the state of the final manifest; returns the bytes of its file."""
        self._final = self._header(built) if state.is_large(built) else built
        return self._final.encoded()

    def dated(self, planned: str, now: str) -> bytes:
        """The bytes of the final manifest's file with `now` as the time of retirements `planned` for another."""
        return manifest.retired_at(self._final, planned, now).encoded() if self._final else b""

    def intent(self, built: Manifest, memberships: Memberships) -> bytes:
        """The bytes of the manifest to save before files are replaced; it says what `manifest.intend` says."""
        before, stored = self._before or built.emptied(), self._stored or built.emptied()
        is_split = bool(self._final and self._final.state)
        if not stored.state and not is_split:
            return manifest.intend(before, built.current, memberships, built.as_of, built).encoded()
        if stored.intended:
            # What a killed build intended counts, too.
            stored = self._header(before)
        intended = self._final if self._final and is_split else self._header(replaced(built, markets=memberships))
        return replaced(stored, complete=False, intended=intended.state, begun_at=built.as_of).encoded()

    def _header(self, built: Manifest) -> Manifest:
        """The header of a manifest, whose state is staged unless it is in place."""
        if self._before and self._stored and self._stored.state and state.is_same(self._before, built):
            return state.header(built, self._stored.state, self._stored.retirements)
        body = state.encoded(built)
        name = state.digest(body)
        if self._folder.put(_key(name), body):
            self._staged.add(name)
        return state.header(built, name, state.retirements(built))

    def move(self) -> None:
        """Move the staged states into place, before a manifest names them."""
        for name in sorted(self._staged):
            self._folder.move(_key(name))
        if self._staged:
            self._folder.sync_names(files.STATES)

    def sweep(self) -> None:
        """Delete the states that the final manifest does not name: those of earlier ones, and of killed builds."""
        for name in self._folder.names(files.STATES):
            if state.is_name(name) and not (self._final and name == self._final.state):
                self._folder.discard_key(_key(name))
        for name in self._folder.names(files.FORMER_STATES):
            if state.is_name(name):
                self._folder.discard_key(f"{files.FORMER_STATES}{name}")


def _key(name: str) -> str:
    return f"{files.STATES}{name}"
