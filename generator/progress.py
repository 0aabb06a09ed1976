"""What long work tells of how far it is; `cli_job` shows it to people."""

from typing import Protocol


class Progress(Protocol):
    """Told how many steps there are, and of each one that is done."""

    def start(self, steps: int) -> None:
        """Expect so many steps."""

    def advance(self) -> None:
        """Count one as done."""
