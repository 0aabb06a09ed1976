"""Waits for another run to end: for what must be done, whoever is at work."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from generator.errors import BusyError

Result = TypeVar("Result")

#: Shows the operator a line.
Notify = Callable[[str], None]

#: Seconds between two attempts at a store or folder that another run holds.
_RETRY_S: Final = 0.5


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
