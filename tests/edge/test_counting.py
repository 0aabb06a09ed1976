"""Whose requests the edges count together, and which of them as searches: the rules that adapters share."""

import ipaddress
import json
import re
from typing import Any, Final

import quickjs
from hypothesis import given
from hypothesis import strategies as st

from generator.api import keys
from generator.config.settings import Config
from generator.edge import counting, router
from generator.edge.local.js_router import provide_digest


def core(config: Config) -> Any:
    """The router core, in an engine."""
    context = quickjs.Context()
    provide_digest(context)
    context.eval(router.render(config))
    return context


CORE: Final = core(Config(variant="extended"))
WITHOUT_SEARCH: Final = core(Config(variant="extended", search="off"))
MARKETS: Final = f"/{keys.MARKETS}"


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


#: Queries made of what may, or may not, be or hide the parameter.
PARTS: Final = ("q", "%71", "%51", "Q", "%2571", "+", "=", "=a", "&", "?", "#", "%", "%q", "%ff", "limit=5", "é", "\0")
QUERIES: Final = st.lists(st.sampled_from(PARTS), max_size=6).map("".join)
TARGETS: Final = st.sampled_from([MARKETS, f"{MARKETS}/", f"/x{MARKETS}", "/v1/build.json", MARKETS.upper()])


@given(QUERIES)
def test_a_search_is_what_the_router_would_refuse_without_search_for_its_q(query: str) -> None:
    refused = json.loads(call(WITHOUT_SEARCH, "route", "GET", MARKETS, query).get("body", "{}"))
    has_q = ["q"] in [detail["path"] for detail in refused.get("details", [])]
    assert call(CORE, "isSearch", "GET", MARKETS, query) is has_q
    assert bool(re.search(counting.QUERY_OF_SEARCH, query)) is has_q


@given(st.sampled_from(["GET", "HEAD", "OPTIONS", "POST", "XGET"]), TARGETS, QUERIES)
def test_nginx_knows_the_same_searches_by_method_and_target(method: str, path: str, query: str) -> None:
    pattern = counting.search_pattern(Config(variant="extended"))
    assert bool(re.search(pattern, f"{method} {path}?{query}", re.DOTALL)) is call(
        CORE, "isSearch", method, path, query
    )
    assert not re.search(pattern, f"{method} {path}{query.replace('?', '')}", re.DOTALL)


def call(context: Any, name: str, *values: str) -> Any:
    """What a function of the core returns, by way of JSON, as a NUL would end a text."""
    context.eval(
        "function call(name, values) { return JSON.stringify(globalThis[name](...JSON.parse(values), digest)); }"
    )
    return json.loads(context.get("call")(name, json.dumps(values)))
