"""How long-running work reports its progress and its duration; `cli` shows it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol


class Progress(Protocol):
    """Receives the number of steps, and a call for each step done."""

    def start(self, steps: int) -> None:
        """Expect this many steps."""

    def expect(self, steps: int) -> None:
        """Expect more steps."""

    def advance(self) -> None:
        """Count one step as done."""

    def describe(self, doing: str) -> None:
        """Say what is being done."""


class Silent:
    """Reports nothing."""

    def start(self, steps: int) -> None:
        """Say nothing."""

    def expect(self, steps: int) -> None:
        """Say nothing."""

    def advance(self) -> None:
        """Say nothing."""

    def describe(self, doing: str) -> None:
        """Say nothing."""


#: For work that nobody watches.
SILENT: Final[Progress] = Silent()


class Span(NamedTuple):
    """How long a stage took, in seconds, and when it ended by `time.perf_counter`."""

    seconds: float
    end: float


class Stopwatch:
    """Measures stages; `spans` by name."""

    def __init__(self) -> None:
        self.spans: dict[str, Span] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage; one that runs again adds up."""
        start = time.perf_counter()
        yield
        end = time.perf_counter()
        earlier = self.spans[name].seconds if name in self.spans else 0.0
        self.spans[name] = Span(earlier + end - start, end)

    def add(self, other: "Stopwatch") -> None:
        """Add what another process measured on this machine."""
        for name, span in other.spans.items():
            known = self.spans.get(name, Span(0.0, span.end))
            self.spans[name] = Span(known.seconds + span.seconds, max(known.end, span.end))
