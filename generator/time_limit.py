"""Ends what takes too long, wherever it is: also between two requests, and in work on what an answer held."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds until it is tried again: what is raised in a finaliser is lost.
_AGAIN_S = 5


class OverdueError(BaseException):
    """Time is over. No `except Exception` stops it."""


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Raise OverdueError if the block takes more than so many seconds; for the main thread."""
    is_over = False

    def end(*_: Any) -> None:
        if not is_over:
            raise OverdueError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
    try:
        yield
    finally:
        is_over = True  # or a signal that comes now would leave the timer on
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
