"""The clock by which this run measures how long something lasts."""

import time
from typing import Final

#: Includes the time the machine is suspended, where there is such a clock.
_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed() -> float:
    """Seconds since some instant."""
    return time.clock_gettime(_CLOCK)
