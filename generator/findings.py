"""The findings of a check: each is one sentence with a severity. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from generator.errors import PublicMarketsError

#: A larger difference between clocks is worth a warning; stores refuse requests from a quarter of an hour on.
CLOCK_TOLERANCE: Final = timedelta(seconds=30)
#: Ends a list of kinds of bad rows, where no report names the rows.
CHECK_NAMES_EACH: Final = "`public-markets check --all` names each"


class Weight(StrEnum):
    """The severity of a finding, which begins its line."""

    ERROR = "error"
    WARNING = "warning"
    FINE = "fine"


@dataclass(frozen=True)
class Finding:
    """One sentence about one thing."""

    weight: Weight
    text: str

    def __str__(self) -> str:
        return f"{self.weight}: {self.text}"


def error(text: str) -> Finding:
    """A build or a publish fails until this is fixed."""
    return Finding(Weight.ERROR, text)


def warning(text: str) -> Finding:
    """Runs succeed, but the operator should know."""
    return Finding(Weight.WARNING, text)


def fine(text: str) -> Finding:
    """Nothing to do."""
    return Finding(Weight.FINE, text)


def clocks(name: str, owner: str, difference: timedelta) -> Iterator[Finding]:
    """Whether this machine's clock and the owner's agree; `difference` is positive where this machine's is ahead."""
    if abs(difference) > CLOCK_TOLERANCE:
        ahead = "ahead of" if difference > timedelta(0) else "behind"
        seconds = f"{abs(difference).total_seconds():.0f} s"
        yield warning(f"{name}: this machine's clock is {seconds} {ahead} the {owner}'s; set it: it dates the builds")


def tried(look: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of one check; an error that ends it becomes a finding, so that the next check still runs."""
    try:
        yield from look
    except PublicMarketsError as problem:
        yield error(str(problem))


def refused(attempt: Callable[[], object]) -> Iterator[Finding]:
    """The error that an attempt raises, as a finding; nothing when it succeeds."""
    try:
        attempt()
    except PublicMarketsError as problem:
        yield error(str(problem))
