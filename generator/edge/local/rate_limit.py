"""The rate limit of the local server: requests per address and window. The caller supplies the clock."""

import threading
from collections import OrderedDict
from typing import Final

#: Addresses counted at a time; more than these push out the oldest.
_ADDRESSES: Final = 10_000


class RateLimit:
    """Counts the requests of each address in windows that begin with its first request; drops windows that are over."""

    def __init__(self, requests: int, seconds: float) -> None:
        self._requests = requests
        self._seconds = seconds
        #: Start and request count of each address's window, oldest window first.
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def grants(self, address: str, now: float) -> bool:
        """Count a request; `now` is monotonic, in seconds."""
        with self._lock:
            while self._windows and now - next(iter(self._windows.values()))[0] >= self._seconds:
                self._windows.popitem(last=False)
            start, count = self._windows.get(address, (now, 0))
            self._windows[address] = (start, count + 1)
            if len(self._windows) > _ADDRESSES:
                self._windows.popitem(last=False)
            return count < self._requests
