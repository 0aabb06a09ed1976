"""Makes the head of the change feed: it goes on where readers are, or begins a new session."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from generator.api import contract, downloads, keys
from generator.api.downloads import ChangesHead, MarketsFile, Step
from generator.config.settings import Config
from generator.downloads import steps
from generator.downloads.segments import Written
from generator.downloads.steps import WrittenStep
from generator.tree.folder import Output

_SESSION_LENGTH: Final = 32


@dataclass(frozen=True)
class NewState:
    """The dump that a build made as of `as_of`, of the markets `ids`, and how it differs from the dump `before`.

    `before` is empty if the two could not be compared. `step` is None if nothing changed, or too much for a step.
    `has_gone`: a market is no longer listed.
    """

    as_of: str
    ids: Collection[str]
    dump: MarketsFile
    written: Written
    before: str
    step: WrittenStep | None
    has_gone: bool


@dataclass(frozen=True)
class ChangeFeed:
    """Makes the head for a state; `staged` receives the names of the files that are not in place yet."""

    folder: Output
    config: Config
    state: NewState
    staged: set[str] = field(default_factory=set)

    def head(self, before: ChangesHead | None) -> ChangesHead:
        """The new head; `before` is the one in place."""
        state, written = self.state, self.state.written
        if before is None or not state.before or before.dump.name != state.before:
            return self._head(_session(self.config.base_url, state.as_of, written.state), 1, state.as_of, [])
        kept = self._kept(before.steps)
        if before.state == written.state:
            return self._head(before.session, before.serial, before.as_of, kept)
        found = [*kept, self._new(before.serial, state.step)] if state.step else []
        return self._head(before.session, before.serial + 1, state.as_of, found)

    def _head(self, session: str, serial: int, as_of: str, found: Sequence[Step]) -> ChangesHead:
        state, written = self.state, self.state.written
        return ChangesHead(
            session=session,
            serial=serial,
            as_of=as_of,
            count=written.count,
            state=written.state,
            dump=state.dump,
            steps=steps.retained(found, written.size, state.as_of),
        )

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
        if self.folder.put(keys.chunk(keys.CHANGES, name), body):
            self.staged.add(name)
        update = {"name": name, "url": self._url(name), "sha256": digest, "size": len(body)}
        return step.model_copy(update=update)


def _session(base_url: str, as_of: str, state: str) -> str:
    """The name of a session that begins with this state: equal builds begin equal ones."""
    content = contract.encode([downloads.FORMAT, base_url, as_of, state])
    return sha256(content).hexdigest()[:_SESSION_LENGTH]
