"""Whose requests the edges count together, and which of them as searches: the rules that adapters share."""

import ipaddress
from typing import Any, Final

import quickjs
from hypothesis import given
from hypothesis import strategies as st

from generator.config.settings import Config
from generator.edge import router
from generator.edge.local.js_router import provide_digest


def core(config: Config) -> Any:
    """The router core, in an engine."""
    context = quickjs.Context()
    provide_digest(context)
    context.eval(router.render(config))
    return context


CORE: Final = core(Config(variant="extended"))


def spellings(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> st.SearchStrategy[str]:
    """The ways to write an address, also for servers that see IPv4 in the form of IPv6."""
    mapped = address if address.version == 6 else ipaddress.IPv6Address(f"::ffff:{address}")
    dotted = [f"::ffff:{address}"] if address.version == 4 else []
    return st.sampled_from([str(address), str(mapped), mapped.exploded, mapped.exploded.upper(), *dotted])


#: Few networks with many addresses, some of them near those of IPv4.
ADDRESSES: Final = st.one_of(
    *(st.ip_addresses(network=network) for network in ("2001:db8::/62", "::/62", "198.51.100.0/30", "0.0.0.0/31")),
    st.ip_addresses(),
)


def network(text: str) -> str:
    """What counts as one reader, as Python's own library sees it."""
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else address
    return str(mapped) if mapped else f"{int(address) >> 64:x}::/64"


@given(ADDRESSES.flatmap(spellings), ADDRESSES.flatmap(spellings))
def test_readers_are_told_apart_by_ipv4_address_or_half_an_ipv6_address(one: str, other: str) -> None:
    counted = CORE.get("networkOf")
    assert (counted(one) == counted(other)) == (network(one) == network(other))
