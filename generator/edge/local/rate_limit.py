"""The rate limit of the local server: requests per network and window. The caller supplies the clock."""

import threading
from collections import OrderedDict
from typing import Final

#: Networks counted at a time; more than these push out the oldest.
_NETWORKS: Final = 10_000


class RequestCounter:
    """Counts the requests of each network in windows that begin with its first request; drops windows that are over."""

    def __init__(self, requests: int, seconds: float) -> None:
        self._requests = requests
        self._seconds = seconds
        #: Start and request count of each network's window, oldest window first.
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def grants(self, network: str, now: float) -> bool:
        """Count a request; `now` is monotonic, in seconds."""
        with self._lock:
            while self._windows and now - next(iter(self._windows.values()))[0] >= self._seconds:
                self._windows.popitem(last=False)
            start, count = self._windows.get(network, (now, 0))
            self._windows[network] = (start, count + 1)
            if len(self._windows) > _NETWORKS:
                self._windows.popitem(last=False)
            return count < self._requests
