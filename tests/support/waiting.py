"""Waits for what happens in other processes and threads: for a condition, however slow the machine."""

import time
from collections.abc import Callable
from typing import Final

#: Seconds that only something broken takes, even on a busy machine; no test depends on how long it waits.
PATIENCE_S: Final = 60


def wait_until(done: Callable[[], bool], seconds: float = PATIENCE_S, pause: float = 0.005) -> float:
    """Wait until `done`, asking after each `pause`; return how long it took, in seconds. Fail after `seconds`."""
    started = time.monotonic()
    while not done():
        assert time.monotonic() - started < seconds, f"not within {seconds} s"
        time.sleep(pause)
    return time.monotonic() - started
