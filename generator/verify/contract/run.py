"""One verification of a deployment: asks, asks again before it accuses, and says what it saw twice."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from generator.progress import Progress
from generator.verify.contract import content, requests, subject
from generator.verify.contract.requests import ContractCheck
from generator.verify.contract.subject import Subject
from generator.verify.mismatches import Mismatch, told
from generator.verify.reader import NoAnswerError, SiteReader, SpentError
from generator.wording import are, counted

#: The most requests that a deployment is asked, second looks included.
MOST_REQUESTS: Final = 300
#: The most findings that are told of one target, or in the same words: the others are likely of the same cause.
_ALIKE: Final = 3


@dataclass(frozen=True)
class ContractVerification:
    """What was found: how much was checked and asked for, what could not be, and what is wrong, the worst first."""

    checks: int
    requests: int
    left_out: list[str]
    mismatches: list[Mismatch] = field(default_factory=list)


def verify_contract(reader: SiteReader, hidden: Sequence[str], progress: Progress) -> ContractVerification:
    """Hold a deployment to the contract. `hidden` are ids of markets that it has and must not show.

    The reader must make at most MOST_REQUESTS. Raises VerifyError for what cannot be read.
    """
    asked = subject.of(reader, tuple(hidden))
    checks = [content.compared, *requests.all_of(asked)]
    progress.start(len(checks))
    seen = _round(checks, asked, progress)
    left_out = asked.left_out
    if len(seen) < len(checks):
        left_out.append(
            f"{counted(len(checks) - len(seen), 'check')} of {len(checks)} could not be made, for want of requests"
        )
    faulty = {check: found for check, found in seen.items() if found}
    confirmed = list[Mismatch]()
    if faulty:
        if asked.lifetime_s:
            reader.say(f"waiting {counted(asked.lifetime_s, 'second')}, until caches have let go of what they kept")
            time.sleep(asked.lifetime_s)
        confirmed = _second_look(faulty, reader, asked, left_out, progress)
    confirmed += _once(requests.refusals(reader.refusals))
    confirmed.sort(key=lambda one: (-one.verdict, one.target))
    return ContractVerification(len(seen), reader.requests, left_out, confirmed)


def _round(checks: Sequence[ContractCheck], asked: Subject, progress: Progress) -> dict[ContractCheck, list[Mismatch]]:
    """What each check found; those that requests did not suffice for are left out."""
    seen = dict[ContractCheck, list[Mismatch]]()
    for check in checks:
        try:
            seen[check] = _once(told(check(asked)))
        except NoAnswerError as error:
            seen[check] = [subject.broken(error.target, error.reason.partition(" (")[0])]
        except SpentError:
            break
        progress.advance()
    return seen


def _second_look(
    faulty: Mapping[ContractCheck, list[Mismatch]],
    reader: SiteReader,
    before: Subject,
    left_out: list[str],
    progress: Progress,
) -> list[Mismatch]:
    """What is found again, of those checks that found something; what nobody could ask again is told as it is."""
    progress.expect(len(faulty))
    try:
        asked = subject.of(reader, before.hidden)
        # The comparison takes most requests, so it comes last.
        again = _round(sorted(faulty, key=lambda check: check is content.compared), asked, progress)
    except SpentError:
        again = {}
    left = len(faulty) - len(again)
    if left:
        left_out.append(
            f"{counted(left, 'check')} that found something {are(left)} told unconfirmed, for want of requests"
        )
    said = {check: {_as_said(one) for one in found} for check, found in faulty.items()}
    seen_twice = [one for check, found in again.items() for one in found if _as_said(one) in said[check]]
    unconfirmed = [one for check, found in faulty.items() if check not in again for one in found]
    return [*_fewer([*seen_twice, *unconfirmed])]


def _once(found: Iterable[Mismatch]) -> list[Mismatch]:
    """The first of all that say the same of pages of one walk."""
    return [*{_as_said(one): one for one in reversed([*found])}.values()][::-1]


def _as_said(mismatch: Mismatch) -> tuple[str, str]:
    """What makes two mismatches the same; cursors may be others for the same place."""
    return mismatch.target.partition("&cursor=")[0], mismatch.text


def _fewer(found: Sequence[Mismatch]) -> Iterator[Mismatch]:
    """The first of each target, and of all that say the same."""
    told = Counter[str]()
    for one in found:
        target = one.target.partition("&cursor=")[0]
        if max(told[target], told[one.text]) < _ALIKE:
            yield one
        told.update((target, one.text))
