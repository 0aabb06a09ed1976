"""Makes the head of the change feed: it goes on where readers are, or begins a new session."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

from generator.api import downloads, keys
from generator.api.downloads import ChangesHead, DumpHead, Step
from generator.config.settings import Config
from generator.downloads import steps
from generator.downloads.steps import WrittenStep
from generator.tree.folder import Output


@dataclass(frozen=True)
class NewState:
    """The dump that a build made as of `as_of`, of the markets `ids`, and how it differs from the dump `before`.

    `before` is empty if the two could not be compared. `step` is None if nothing changed, or too much for a step.
    `has_gone`: a market is no longer listed.
    """

    as_of: str
    ids: Collection[str]
    dump: DumpHead
    before: str
    step: WrittenStep | None
    has_gone: bool


@dataclass(frozen=True)
class ChangeFeed:
    """Makes the head for a state; `staged` receives the names of the files that are not in place yet."""

    folder: Output
    config: Config
    state: NewState
    staged: set[str]

    def head(self, before: ChangesHead | None) -> ChangesHead:
        """The new head; `before` is the one in place."""
        begun, state = downloads.begun(self.state.dump), self.state
        if before is None or not state.before or before.dump.name != state.before:
            return begun
        kept = self._kept(before.steps)
        if before.state == begun.state:
            return self._continued(before, begun, before.serial, kept)
        found = [*kept, self._new(before.serial, state.step)] if state.step else []
        return self._continued(before, begun, before.serial + 1, found)

    def _continued(self, before: ChangesHead, begun: ChangesHead, serial: int, found: Sequence[Step]) -> ChangesHead:
        """The head of the session `before`, which has come to the state with which another might have `begun`."""
        kept = steps.retained(found, begun.dump.size, self.state.as_of)
        return begun.model_copy(update={"session": before.session, "serial": serial, "steps": kept})

    def _new(self, serial: int, written: WrittenStep) -> Step:
        """The step that leads from the serial to the next; its file is staged already."""
        name = downloads.name(written.sha256, downloads.NDJSON)
        return Step(
            name=name, url=self._url(name), sha256=written.sha256, size=written.size, from_=serial, to=serial + 1,
            as_of=self.state.as_of,
        )  # fmt: skip

    def _url(self, name: str) -> str:
        return downloads.url(self.config.files_url, keys.CHANGES, name)

    def _kept(self, before: Sequence[Step]) -> list[Step]:
        """The steps that stay: the newest that can be read, without markets that are gone."""
        kept = list[Step]()
        for step in reversed(before):
            found = self._without_gone(step) if self.state.has_gone else self._in_place(step)
            if found is None:
                break
            kept.append(found)
        return kept[::-1]

    def _in_place(self, step: Step) -> Step | None:
        """The step as it is; None if its file is missing."""
        is_there = self.folder.has(keys.chunk(keys.CHANGES, step.name))
        return step.model_copy(update={"url": self._url(step.name)}) if is_there else None

    def _without_gone(self, step: Step) -> Step | None:
        """The step without markets that are no longer listed; None if it cannot be read."""
        try:
            body = steps.without(self.folder.read(keys.chunk(keys.CHANGES, step.name)) or b"", self.state.ids)
        except ValueError:
            return None
        digest = sha256(body).hexdigest()
        name = downloads.name(digest, downloads.NDJSON)
        # Two steps may have the same bytes.
        if name not in self.staged and self.folder.put(keys.chunk(keys.CHANGES, name), body):
            self.staged.add(name)
        update = {"name": name, "url": self._url(name), "sha256": digest, "size": len(body)}
        return step.model_copy(update=update)
