"""Waits until no other run is at work: in a folder, or wherever an attempt raises BusyError."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, TypeVar

from generator.errors import BusyError
from generator.tree.folder import Output, locked

Result = TypeVar("Result")

#: Seconds between two attempts at a store or folder that another run holds.
_RETRY_S: Final = 0.5

#: Shows the operator a line.
Notify = Callable[[str], None]


@contextmanager
def locked_in_turn(root: Path, notify: Notify) -> Iterator[Output]:
    """Lock the folder, created if missing, after any other run."""
    with ExitStack() as stack:
        yield retried_while_busy(lambda: stack.enter_context(locked(root)), notify, "waiting")


def retried_while_busy(attempt: Callable[[], Result], notify: Notify, what: str) -> Result:
    """Try until no other run is at work; say once which run is."""
    is_told = False
    while True:
        try:
            return attempt()
        except BusyError as error:
            if not is_told:
                notify(f"{what}: {error}")
            is_told = True
            time.sleep(_RETRY_S)
