"""One verification: reads the site, asks, asks again before it accuses, and says what it found."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain
from typing import Final, NamedTuple

from pydantic_core import from_json

from generator.api import downloads, keys
from generator.api.changes import Step
from generator.downloads import dump
from generator.errors import VerifyError
from generator.progress import Progress
from generator.verify import checks, expected
from generator.verify.checks import Coverage
from generator.verify.earlier_states import EarlierStates, StepLine
from generator.verify.expected import ExpectedSite
from generator.verify.inquiry import Check, Inquiry
from generator.verify.mismatches import Mismatch, Verdict, not_ok, told
from generator.verify.reader import NoAnswerError, SiteReader
from generator.verify.walks import pages_of
from generator.wording import are, counted

#: How long a right answer may be out of date where there is a cache: its lifetime, and that of what replaces it.
PATIENCE_S: Final = 90
#: The newest steps that are read, at most, and one of so many requests; by these, stale answers are known.
_STEPS: Final = 50
_PER_STEP: Final = 20
#: The most bytes of steps, which are in memory, and what a line takes there beside its text. Older ones are left out.
_LONGEST_STEPS: Final = 64 << 20
_PER_LINE: Final = 200
#: The requests for the build, twice, the index, the heads, and the dump.
_HEADS: Final = 6
#: How often what differs is asked for again, if the site is published meanwhile.
_ROUNDS: Final = 3


@dataclass(frozen=True)
class Verification:
    """What was found: as-of of the site at the end, how much was asked for, and what is wrong, the worst first.

    `lists` tells how much of lists was looked at; None if the run ended before that was decided.
    """

    as_of: str | None
    checks: int
    requests: int
    mismatches: list[Mismatch] = field(default_factory=list)
    lists: Coverage | None = None


class _Run:
    """The inquiry, which begins anew whenever the site was published.

    `made` counts the checks; `failed` has what those found that found something when they were made last.
    """

    def __init__(self, reader: SiteReader, patience_s: float, most_steps: int | None) -> None:
        self.reader = reader
        self._patience_s = patience_s
        self._most_steps = most_steps
        self.failed: dict[Check, list[Mismatch]] = {}
        self.made = 0
        self.asked = self.begun()

    def begun(self) -> Inquiry:
        """The inquiry of the site as it is now."""
        site = expected.read(self.reader, self._patience_s)
        times, steps, flaws = _steps(self.reader, site, self._most_steps)
        try:
            questions = site.questions.present if site.questions else {}
            return Inquiry(self.reader, site, EarlierStates(times, steps, site.markets, questions), flaws)
        except ValueError as error:
            flaw = Mismatch(Verdict.BROKEN, f"/{keys.head(keys.CHANGES)}", str(error))
            return Inquiry(self.reader, site, EarlierStates((), (), site.markets), [*flaws, flaw])

    def cost(self) -> int:
        """The requests of an inquiry's beginning, if none fails: what a seed draws must not depend on those that do."""
        site, steps = self.asked.site, self._most_steps
        if site.dump is None:
            return _HEADS + pages_of(len(site.markets)) + (site.questions.walked if site.questions else 0)
        read = len(site.changes.steps[-steps:] if site.changes and steps else ())
        return _HEADS + read + (site.dump.questions is not None)

    def ask(self, checks: Sequence[Check], progress: Progress) -> None:
        """Make the checks, and those that find something once more; raises VerifyError if the site answers no more."""
        for check in checks:
            if self._differs(check):
                if self._has_changed(self.asked):
                    self.asked = self.begun()
                self._differs(check)
            self.made += 1
            progress.advance()

    def ask_again(self) -> None:
        """Make those that failed when copies have expired, and until the site is not published while it is asked."""
        for _ in range(_ROUNDS):
            if not self.failed:
                return
            if self._patience_s:
                differ = f"{counted(len(self.failed), 'check')} {are(len(self.failed))} not as expected"
                pause = f"{self._patience_s:.0f} seconds, when copies in caches have expired"
                self.reader.say(f"{differ}; asking again in {pause}")
                time.sleep(self._patience_s)
            before, self.asked = self.asked, self.begun()
            for check in [*self.failed]:
                self._differs(check)
            # If it was published while copies expired, others have a copy of the state before that again.
            if not self._has_changed(before):
                return

    def _differs(self, check: Check) -> bool:
        """Whether something is wrong with the answers now, up to the first that is none."""
        wrong = self.failed[check] = list[Mismatch]()
        try:
            wrong.extend(told(check(self.asked)))
        except NoAnswerError as error:
            wrong.append(Mismatch(Verdict.BROKEN, error.target, error.reason))
        if not wrong:
            del self.failed[check]
        return bool(wrong)

    def _has_changed(self, since: Inquiry) -> bool:
        """Whether the site was published since that inquiry began."""
        return expected.build_of(self.reader) != since.site.build


def verify(
    reader: SiteReader, budget: int | None, seed: int, progress: Progress, patience_s: float = PATIENCE_S
) -> Verification:
    """Verify a site with about so many requests, at least fifty; without a budget, all of it.

    The same seed asks the same of a site that has not changed. What differs is asked for again after so many seconds:
    until then, caches may have copies of the build before. Raises VerifyError for a site that cannot be read, or cannot
    be compared; if that happens later, what was found is told.
    """
    run = _Run(reader, patience_s, None if budget is None else min(_STEPS, budget // _PER_STEP))
    # Without a dump, the walk through all markets is in this number; something must be left to compare.
    left = None if budget is None else max(budget - run.cost(), budget // 2)
    selection = checks.selected(run.asked.site, left, seed)
    progress.start(len(selection.checks))
    ended = list[Mismatch]()
    try:
        run.ask(selection.checks, progress)
        run.ask_again()
    except VerifyError as error:
        text = f"the run ended here, so what was found is told as it is, and the rest was not asked: {error}"
        ended.append(Mismatch(Verdict.BROKEN, reader.target, text))
    # Some things are asked for by several checks.
    found = [*dict.fromkeys([*chain.from_iterable(run.failed.values()), *ended])]
    if run.asked.site.is_dump_stale:  # then whatever is right contradicts it
        target = f"/{keys.head(keys.DUMPS)}"
        stale = Mismatch(Verdict.STALE, target, "is out of date: the change feed leads to a later state")
        found = [stale, *(one for one in found if one.verdict == Verdict.BROKEN)]
    found.sort(key=lambda one: (-one.verdict, one.target))
    return Verification(run.asked.site.build.as_of, run.made, reader.requests, found, selection.lists)


def _steps(
    reader: SiteReader, site: ExpectedSite, most: int | None
) -> tuple[list[str], list[Sequence[StepLine]], list[Mismatch]]:
    """As-of and lines of the newest steps, oldest first, and what is wrong with them; no steps if one is damaged."""
    head = site.changes
    if head is None or site.dump is None or head.state != site.dump.state:
        return [], [], []
    newest = head.steps[::-1] if most is None else head.steps[: -most - 1 : -1]
    steps, room = list[Sequence[StepLine]](), _LONGEST_STEPS
    for step in newest:
        lines = _lines(reader, step, room)
        if isinstance(lines, Mismatch):
            return [], [], [lines]
        if lines is None:
            break
        steps.append(lines.parsed)
        room -= lines.size
    return [step.as_of for step in newest[: len(steps)]][::-1], steps[::-1], []


class _Lines(NamedTuple):
    parsed: list[StepLine]
    size: int


def _lines(reader: SiteReader, step: Step, room: int) -> _Lines | Mismatch | None:
    """The lines of a step, or what is wrong with it; None if they take more bytes than there is room for."""
    try:
        answer, content = reader.file(step.key, step.size)
    except NoAnswerError as error:
        return Mismatch(Verdict.BROKEN, error.target, error.reason)
    if answer.status != HTTPStatus.OK:
        return not_ok(answer)
    if step.name != downloads.name(content.sha256, downloads.NDJSON):
        return Mismatch(Verdict.WRONG, answer.target, "is not the file that the head of the change feed names")
    found, size = list[StepLine](), 0
    try:
        for line in dump.lines(content.pieces()):
            size += len(line) + _PER_LINE
            if size > room:
                return None
            found.append(from_json(line))
    except ValueError as error:
        return Mismatch(Verdict.BROKEN, answer.target, str(error))
    return _Lines(found, size)
