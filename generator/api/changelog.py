"""`v1/changelog.json`: what changed in the API, and when. The entries have their home in `changelog.json`. Pure."""

import pkgutil
from datetime import timedelta
from functools import cache
from operator import attrgetter
from typing import Annotated, Final, Literal

from generator.api.contract import Closed, IfPresent
from generator.api.forms import Day

ChangeKind = Literal["added", "changed", "removed", "announced"]
#: How long before it takes place a change is announced that could break a program.
NOTICE: Final = timedelta(days=90)
#: How the entry of such a change begins that could not wait.
WITHOUT_NOTICE: Final = "Without notice:"


class ChangelogEntry(Closed):
    """A change of the API."""

    date: Day
    generator: str
    kind: ChangeKind
    where: list[str]
    text: str
    effective: Annotated[Day | None, IfPresent] = None


class Changelog(Closed):
    """What changed in the API, latest first."""

    entries: list[ChangelogEntry]


class _Told(Closed):
    """The entries, and those that only sites with questions publish: what these tell of, others do not have."""

    entries: list[ChangelogEntry]
    of_questions: list[ChangelogEntry]


@cache
def published(*, has_questions: bool = False) -> Changelog:
    """All of it. An entry that was published stays as it is."""
    kept = _Told.model_validate_json(pkgutil.get_data(__name__, "changelog.json") or b"")
    entries = [*kept.of_questions, *kept.entries] if has_questions else kept.entries
    return Changelog(entries=sorted(entries, key=attrgetter("date"), reverse=True))
