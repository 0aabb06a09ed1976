"""For which hosts the local server shows the pages for people.

A site in the operator's browser can have its own name lead to this machine (DNS rebinding), and would then read the
pages as its own. It cannot do so under an IP address, nor under a name that it does not control.
"""

import ipaddress
import re
from typing import Final

#: What follows `Host:`, or the scheme in a request line: a name or an address, and the port.
_AUTHORITY: Final = re.compile(r"(?P<host>[^\[\]:@/?#\s,]+|\[[0-9a-f:.]+\])(:[0-9]*)?", re.IGNORECASE)
_LOCALHOST: Final = "localhost"


class Hosts:
    """Loopback names, and the host that `serve` listens on with its address; every address if it listens on all."""

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
