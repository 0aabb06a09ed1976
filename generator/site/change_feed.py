"""Makes the head of the change feed: continues its session, or begins a new one."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from generator.api import changes, downloads
from generator.api.changes import ChangesHead, NumberedDefinitions, Step
from generator.api.downloads import DumpHead
from generator.downloads import steps
from generator.downloads.steps import WrittenStep
from generator.models import replaced
from generator.site.download_files import Draft, NewFiles


@dataclass(frozen=True)
class NewState:
    """The dump that a build made as of `as_of`, of the markets `ids`, and how it differs from the dump `before`.

    `before` is empty if the two could not be compared. `step` is empty if nothing changed, or too much for a step.
    `has_gone`: a market is no longer listed.
    """

    as_of: str
    ids: Collection[str]
    dump: DumpHead
    before: str
    step: Draft[WrittenStep | None]
    has_gone: bool


@dataclass(frozen=True)
class ChangeFeed:
    """Makes the head for a state. A step that the folder lacks is read with `fetch`, by its key.

    `is_full`: steps in place are read, and those that are damaged end.
    """

    files: NewFiles
    state: NewState
    is_full: bool = False
    fetch: Callable[[str], bytes | None] = lambda _: None

    def head(self, before: ChangesHead | None) -> ChangesHead:
        """The new head; `before` is the one in place."""
        begun, state = changes.begun(self.state.dump), self.state
        if before is None or not state.before or before.dump.name != state.before:
            return begun
        if before.questions and not begun.questions:  # should they come back, their serials would begin again
            return replaced(begun, session=changes.session_after(before))
        kept = self._kept(before.steps)
        if before.state == begun.state:
            return self._continued(before, begun, before.serial, kept)
        written = state.step.content
        found = [*kept, self.files.stage(state.step, Step.of(written, state.as_of))] if written else []
        return self._continued(before, begun, before.serial + 1, found)

    def _continued(self, before: ChangesHead, begun: ChangesHead, serial: int, found: Sequence[Step]) -> ChangesHead:
        """The head of the session `before`, which has come to the state with which another might have `begun`."""
        kept = steps.retained(found, begun.dump.size, self.state.as_of)
        questions = NumberedDefinitions.after(begun.questions, before.questions)
        return replaced(begun, session=before.session, serial=serial, steps=kept, questions=questions)

    def _kept(self, before: Sequence[Step]) -> list[Step]:
        """The steps that stay: the newest that can be read, without markets that are gone."""
        kept = list[Step]()
        for step in reversed(before):
            found = self._in_place(step)
            if found and self.state.has_gone:
                found = self._without_gone(found)
            if found is None:
                break
            kept.append(found)
        return kept[::-1]

    def _in_place(self, step: Step) -> Step | None:
        """The step as it is; None if its file is missing, or known to be damaged."""
        folder = self.files.folder
        is_read = self.is_full or not folder.has(step.key)
        if not is_read or downloads.is_named_by(step.key, folder.read(step.key) or b""):
            return step
        body = self.fetch(step.key) or b""
        if not downloads.is_named_by(step.key, body):
            return None
        return self.files.stage(self.files.draft(lambda write: write(body)), step)

    def _without_gone(self, step: Step) -> Step | None:
        """The step without markets that are no longer listed; None if it cannot be read."""
        body = self.files.folder.newest_body(step.key)  # as it may have been fetched
        if not downloads.is_named_by(step.key, body):
            return None
        try:
            draft = self.files.draft(lambda write: steps.without(write, body, self.state.ids))
        except ValueError:
            return None
        return step if draft.content is None else self.files.stage(draft, Step.of(draft.content, step.as_of))
