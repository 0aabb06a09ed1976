"""Hosts, and networks of proxies as text in CIDR notation. Pure."""

import ipaddress
from typing import Final, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

#: By version, the shortest prefix that a network of proxies has: those of 10.0.0.0/8 and fc00::/7.
_SHORTEST: Final = {4: 8, 6: 7}
_EXAMPLES: Final = "write addresses or networks, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32"
#: IPv4 addresses in the form of IPv6.
_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
#: Names of loopback addresses in /etc/hosts.
_LOOPBACK: Final = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})


def is_here(host: str | None) -> bool:
    """Whether a host is this machine itself: no host at all, the place of a socket, or a loopback address."""
    if not host or host.startswith(("/", "@")) or host.lower().rstrip(".") in _LOOPBACK:
        return True
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def checked(texts: list[str]) -> list[str]:
    """The networks in normal form; raise ValueError for one that is malformed, or so wide that readers may be in it."""
    return [str(_network(text)) for text in texts]


def parsed(texts: list[str]) -> tuple[Network, ...]:
    """Networks that `checked` accepted."""
    return tuple(map(ipaddress.ip_network, texts))


def _network(text: str) -> Network:
    if "%" in text:  # ipaddress takes the zone of an address for a part of the network
        raise ValueError(_EXAMPLES)
    try:
        found = ipaddress.ip_network(text)
    except ValueError as error:
        is_address_within = "host bits" in str(error)
        raise ValueError("write networks like 10.0.0.0/8, not 10.0.0.1/8" if is_address_within else _EXAMPLES) from None
    if found.prefixlen < _SHORTEST[found.version]:
        raise ValueError(
            "name your proxies only: readers in so wide a network could choose the address that is counted"
        )
    if found.version == _MAPPED.version and found.overlaps(_MAPPED):
        raise ValueError("write IPv4 networks in the form of IPv4")
    return found
