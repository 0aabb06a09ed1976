"""How long-running work reports its progress and its duration; `cli` shows it."""

from typing import NamedTuple, Protocol


class Progress(Protocol):
    """Receives the number of steps, and a call for each step done."""

    def start(self, steps: int) -> None:
        """Expect this many steps."""

    def advance(self) -> None:
        """Count one step as done."""


class Span(NamedTuple):
    """How long a stage took, in seconds, and when it ended by `time.perf_counter`."""

    seconds: float
    end: float
