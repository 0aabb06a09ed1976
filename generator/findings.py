"""What a check found: each finding is one sentence, and says whether it keeps a run from working. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from generator.errors import PublicMarketsError


class Weight(StrEnum):
    """What a finding means; the words begin its line."""

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
    """A build or a publish cannot work until this is mended."""
    return Finding(Weight.ERROR, text)


def warning(text: str) -> Finding:
    """Runs work, but somebody should know."""
    return Finding(Weight.WARNING, text)


def fine(text: str) -> Finding:
    """Nothing is to be done."""
    return Finding(Weight.FINE, text)


def tried(look: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of one look; what ends it early is a finding, too, so that the next look follows."""
    try:
        yield from look
    except PublicMarketsError as problem:
        yield error(str(problem))


def refused(attempt: Callable[[], object]) -> Iterator[Finding]:
    """What an attempt is refused for; nothing when it is not."""
    try:
        attempt()
    except PublicMarketsError as problem:
        yield error(str(problem))
