"""One verification: reads the site, asks, asks again before it accuses, and says what it found."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from generator.api import downloads, keys
from generator.api.downloads import ChangesHead
from generator.errors import VerifyError
from generator.progress import Progress
from generator.verify import checks, expected
from generator.verify.checks import Check, Inquiry
from generator.verify.earlier_states import EarlierStates
from generator.verify.expected import ExpectedSite
from generator.verify.mismatches import Mismatch
from generator.verify.reader import SiteReader

#: The newest steps that are read, by which stale answers are known.
_STEPS: Final = 50


@dataclass(frozen=True)
class Verification:
    """What was found: the site as it was at the end, how much was asked for, and what is wrong, the worst first."""

    site: ExpectedSite
    checks: int
    requests: int
    mismatches: list[Mismatch] = field(default_factory=list)


def verify(reader: SiteReader, sample: int | None, progress: Progress) -> Verification:
    """Verify a site: with a sample of so many lists, details and searches, or all of them.

    Raises VerifyError for a site that cannot be read, or cannot be compared.
    """
    asked = _asked(reader)
    to_ask = checks.all_of(asked.site, sample, asked.site.dump.state)
    progress.start(len(to_ask))
    found = list[Mismatch]()
    for check in to_ask:
        mismatches = [*check(asked)]
        if mismatches:
            asked, mismatches = _second_look(asked, check)
        found += mismatches
        progress.advance()
    found.sort(key=lambda one: (-one.verdict, one.target))
    return Verification(asked.site, len(to_ask), reader.requests, found)


def _second_look(asked: Inquiry, check: Check) -> tuple[Inquiry, list[Mismatch]]:
    """Ask again, of the site as it is now: it may have been published anew meanwhile."""
    if expected.build_of(asked.reader) != asked.site.build:
        asked = _asked(asked.reader)
    return asked, [*check(asked)]


def _asked(reader: SiteReader) -> Inquiry:
    site = expected.read(reader)
    if site is None:
        raise VerifyError(
            f"{reader.url}: publishes no dump, with which its answers could be compared; set dumps.ndjson"
        )
    times, steps = list[str](), list[list[dict[str, Any]]]()
    for as_of, lines in _steps(reader, site):
        times.append(as_of)
        steps.append(lines)
    return Inquiry(reader, site, EarlierStates(times, steps, site.markets))


def _steps(reader: SiteReader, site: ExpectedSite) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The as-of and the lines of the newest steps, oldest first; none where they cannot be read, or lead elsewhere."""
    answer = reader.get(keys.head(keys.CHANGES))
    try:
        head = ChangesHead.model_validate_json(answer.body)
    except ValidationError:
        return
    if head.state != site.dump.state:
        return
    for step in head.steps[-_STEPS:]:
        body = reader.file(step.key, f"{head.steps_url}{step.name}", step.size).body
        if not downloads.is_named_by(step.name, body):
            return
        lines = zlib.decompress(body, wbits=31).splitlines()
        yield step.as_of, [from_json(line) for line in lines]
