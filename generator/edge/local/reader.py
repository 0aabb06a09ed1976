"""Who asks the local server: address, network and host, and what these may ask for."""

import ipaddress
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeAlias

from generator.config.networks import Network

#: What follows `Host:`, or the scheme in a request line: a name or an address, and the port.
_AUTHORITY: Final = re.compile(r"(?P<host>[^\[\]:@/?#\s,]+|\[[0-9a-f:.]+\])(:[0-9]*)?", re.IGNORECASE)
_LOCALHOST: Final = "localhost"


class Hosts:
    """For which hosts the local server shows the pages for people.

    That is, loopback names, and the host that `serve` listens on with its address; every address if it listens on all.
    A site in the operator's browser can have its own name lead to this machine (DNS rebinding), and would then read the
    pages as its own. It cannot do so under an IP address, nor under a name that it does not control.
    """

    def __init__(self, host: str, address: str) -> None:
        self._names = {_LOCALHOST, _comparable(host)}
        self._address = ipaddress.ip_address(address.partition("%")[0])
        #: Then it has all addresses of this machine, whichever those are.
        self._is_everywhere = self._address.is_unspecified

    def include(self, authority: str) -> bool:
        """Whether a request for this host and port, as they were sent, may see the pages."""
        found = _AUTHORITY.fullmatch(authority)
        if not found:
            return False
        name = _comparable(found["host"].strip("[]"))
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return self._is_everywhere or address.is_loopback or address == self._address


def _comparable(name: str) -> str:
    return name.lower().removesuffix(".")


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


_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Some proxies write an address with a port, and IPv6 in brackets.
_WITH_PORT: Final = re.compile(r"\[([^\]]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")


def address(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """The last address of `forwarded`, the header X-Forwarded-For, that no trusted proxy has; `peer` if that is none.

    Only what trusted proxies added is believed: readers may write anything before it.
    """
    found = _parsed(peer)
    for written in reversed(forwarded.split(",")):
        if found is None or not any(found in network for network in trusted):
            break
        following = _parsed(written.strip())
        if following is None:
            break
        found = following
    return peer if found is None else str(found)


def _parsed(text: str) -> _Address | None:
    with_port = _WITH_PORT.fullmatch(text)
    try:
        found = ipaddress.ip_address(with_port[1] or with_port[2] if with_port else text)
    except ValueError:
        return None
    # A server that listens on all addresses sees those of IPv4 in the form of IPv6.
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found
