"""The address of a reader behind proxies. Follows nginx's realip module with `real_ip_recursive`."""

import ipaddress
import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from generator.config.networks import Network

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
