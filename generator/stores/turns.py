"""Turns: how many threads work at a time. One, unless it spends most of its time waiting for a disk or network.

Python runs one thread at a time, and switches threads at each call to the file system. Where such calls return at once,
threads spend more time on switching than on their work.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Semaphore
from typing import Final

#: How long turns must have taken in total before they are judged.
_LEAST_S: Final = 0.2
#: The ratio of elapsed to CPU time above which threads count as waiting. Without any waiting it is 1.1 on an idle
#: machine, and may be 2 on a busy one.
_WAITING: Final = 2.5


class Turns:
    """Lets one thread work at a time; `most` of them once one was seen to spend more time waiting than working."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._gate = Semaphore(1)
        self._is_open = False
        self._elapsed_s = 0.0
        self._cpu_s = 0.0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A block of work by this thread, which waits for its turn first."""
        with self._gate:
            if self._is_open:
                yield
                return
            elapsed_s, cpu_s = time.monotonic(), time.thread_time()
            try:
                yield
            finally:
                self._note(time.monotonic() - elapsed_s, time.thread_time() - cpu_s)

    def _note(self, elapsed_s: float, cpu_s: float) -> None:
        self._elapsed_s += elapsed_s
        self._cpu_s += cpu_s
        if not self._is_open and self._elapsed_s > max(_LEAST_S, _WAITING * self._cpu_s):
            self._is_open = True
            self._gate.release(self._most - 1)
