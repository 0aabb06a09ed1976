"""One verification of a deployment: asks, asks again before it accuses, and says what it saw twice."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from generator.progress import Progress
from generator.verify.contract import content, questions, requests, subject, walks
from generator.verify.contract.requests import ContractCheck
from generator.verify.contract.subject import Subject
from generator.verify.mismatches import Mismatch, Verdict, no_answer, told
from generator.verify.reader import NoAnswerError, SiteReader, SpentError
from generator.wording import are, counted

#: The most requests that a deployment is asked, second looks included.
MOST_REQUESTS: Final = 300
#: The most findings that are told of one target, or in the same words: the others are likely of the same cause.
_ALIKE: Final = 3
#: Why checks are not made.
_GONE: Final = "as the server does not answer any more"
_SPENT: Final = "for want of requests"
#: Requests that a second look at one more detail takes: getting to know the deployment, a walk, and the detail.
_OF_DETAIL: Final = 3 + walks.MOST_PAGES + 1


@dataclass(frozen=True)
class ContractVerification:
    """What was found: how much was checked and asked for, what could not be, and what is wrong, the worst first.

    `notes` are what sites of this program do otherwise, where the contract says nothing.
    """

    checks: int
    requests: int
    left_out: list[str]
    mismatches: list[Mismatch] = field(default_factory=list)
    notes: list[Mismatch] = field(default_factory=list)


def verify_contract(reader: SiteReader, hidden: Sequence[str], progress: Progress) -> ContractVerification:
    """Hold a deployment to the contract. `hidden` are ids of markets that it has and must not show.

    The reader must make at most MOST_REQUESTS. Raises VerifyError if the deployment cannot be reached.
    """
    asked = subject.of(reader, tuple(hidden))
    checks = [content.compared, *requests.all_of(asked), questions.compared]
    progress.start(len(checks))
    first = _Look(asked, progress)
    first.make(checks)
    left = len(checks) - len(first.seen)
    if left:
        asked.left_out.append(f"{counted(left, 'check')} of {len(checks)} could not be made, {first.want}")
    else:
        details = content.details(asked, reader.left - first.again() - _OF_DETAIL)
        progress.expect(len(details))
        first.make(details, kept=_OF_DETAIL)
    confirmed = _confirmed(first, asked)
    told_at_once = [one for seen in first.seen.values() for one in seen if one.verdict == Verdict.NOTE]
    told_at_once += _once(requests.refusals(reader.refusals))
    found = sorted([*confirmed, *told_at_once], key=lambda one: (-one.verdict, one.target))
    accusations = [one for one in found if one.verdict != Verdict.NOTE]
    notes = {one.text: one for one in reversed(found) if one.verdict == Verdict.NOTE}  # one of each is enough
    return ContractVerification(len(first.seen), reader.requests, asked.left_out, accusations, sorted(notes.values()))


class _Look:
    """Checks that are made one after the other: what each has `seen`, and whether the server `is_gone` since."""

    def __init__(self, asked: Subject, progress: Progress) -> None:
        self.seen: dict[ContractCheck, list[Mismatch]] = {}
        self.is_gone = False
        self._spent = 0
        self._asked, self.progress = asked, progress

    @property
    def want(self) -> str:
        """Why checks were not made."""
        return _GONE if self.is_gone else _SPENT

    def make(self, checks: Iterable[ContractCheck], kept: int | None = None) -> None:
        """Make checks while the server answers, and requests suffice.

        With `kept`, so many must be left beside those for a second look.
        """
        reader = self._asked.reader
        for check in checks:
            if self.is_gone or (kept is not None and reader.left <= kept + self.again()):
                return
            before, seen = reader.requests, list[Mismatch]()
            try:
                seen.extend(told(check(self._asked)))
            except NoAnswerError as error:
                seen.append(no_answer(error))
                self.is_gone = self._asked.is_gone()
            except SpentError:
                return
            self.seen[check] = _once(seen)
            if any(one.verdict != Verdict.NOTE for one in seen):
                self._spent += reader.requests - before
            self.progress.advance()

    def again(self) -> int:
        """How many requests a second look takes at those that found something, as they did, and walks for details."""
        plans = {check.plan for check in self.accusing() if isinstance(check, content.ListedMarketCheck)}
        return self._spent + len(plans) * walks.MOST_PAGES

    def accusing(self) -> dict[ContractCheck, list[Mismatch]]:
        """What the checks found that found something, without notes."""
        found = {check: [one for one in seen if one.verdict != Verdict.NOTE] for check, seen in self.seen.items()}
        return {check: seen for check, seen in found.items() if seen}


def _confirmed(first: _Look, before: Subject) -> list[Mismatch]:
    """What is found again, of those checks that found something; what nobody could ask again is told as it is."""
    faulty, reader = first.accusing(), before.reader
    again, want = dict[ContractCheck, list[Mismatch]](), first.want
    if faulty and not first.is_gone:
        if before.lifetime_s:
            reader.say(f"waiting {counted(before.lifetime_s, 'second')}, until caches have let go of what they kept")
            time.sleep(before.lifetime_s)
        first.progress.expect(len(faulty))
        again, want = _second_look([*faulty], before, first.progress)
    left = len(faulty) - len(again)
    if left:
        before.left_out.append(f"{counted(left, 'check')} that found something {are(left)} told unconfirmed, {want}")
    said = {check: {_as_said(one) for one in found} for check, found in faulty.items()}
    seen_twice = [one for check, found in again.items() for one in found if _as_said(one) in said[check]]
    unconfirmed = [one for check, found in faulty.items() if check not in again for one in found]
    return [*_fewer([*seen_twice, *unconfirmed])]


def _second_look(
    checks: Sequence[ContractCheck], before: Subject, progress: Progress
) -> tuple[dict[ContractCheck, list[Mismatch]], str]:
    """What these checks find now, and why others were not made."""
    try:
        second = _Look(subject.of(before.reader, before.hidden), progress)
    except SpentError:
        return {}, _SPENT
    except NoAnswerError:
        return {}, _GONE
    # The comparison takes most requests, so it comes last.
    second.make(sorted(checks, key=lambda check: check is content.compared))
    return second.seen, second.want


def _once(found: Iterable[Mismatch]) -> list[Mismatch]:
    """The first of all that say the same of pages of one walk."""
    return [*{_as_said(one): one for one in reversed([*found])}.values()][::-1]


def _as_said(mismatch: Mismatch) -> tuple[str, str]:
    """What makes two mismatches the same; cursors may be others for the same place."""
    return mismatch.target.partition("&cursor=")[0], mismatch.text


def _fewer(found: Iterable[Mismatch]) -> Iterator[Mismatch]:
    """The first of each target, and of all that say the same."""
    counts = Counter[str]()
    for one in found:
        target = one.target.partition("&cursor=")[0]
        if max(counts[target], counts[one.text]) < _ALIKE:
            yield one
        counts.update((target, one.text))
