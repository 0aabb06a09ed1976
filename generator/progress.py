"""How long-running work reports its progress; `cli` shows it."""

from typing import Protocol


class Progress(Protocol):
    """Receives the number of steps, and a call for each step done."""

    def start(self, steps: int) -> None:
        """Expect this many steps."""

    def advance(self) -> None:
        """Count one step as done."""
