"""What a request costs a router and its reader: no more steps than its length, and whose requests are counted."""

import ipaddress
import json
import re
from itertools import product
from typing import Any, Final
from urllib.parse import urlencode

import pytest
import quickjs
from hypothesis import given
from hypothesis import strategies as st

from generator.api import contract, cursors, keys
from generator.config.settings import Config
from generator.edge import router
from generator.edge.local.js_router import provide_digest
from tests.support.edges.engines import NOWHERE, in_quickjs

#: What is counted for is repeated to these lengths; the second is that of the longest request line that nginx takes.
SHORT, LONG = 1_000, 8_000
MOST: Final = contract.TARGET_LENGTH
MARKETS: Final = f"/{keys.MARKETS}"
SEARCHING: Final = Config(variant="extended", layout="chunks")

#: Counts the characters that native functions on texts look at, and what a loop asks them for.
_COUNTED: Final = """
let steps = 0;
['indexOf', 'lastIndexOf', 'slice', 'split', 'charCodeAt', 'toLowerCase'].forEach(function (name) {
  const own = String.prototype[name];
  String.prototype[name] = function (first, second) {
    const found = own.apply(this, arguments), from = second || 0;
    steps += 1;
    if (name === 'indexOf') steps += (found === -1 ? this.length : found) - from;
    else if (name === 'slice') steps += found.length;
    else if (name !== 'charCodeAt') steps += this.length;
    return found;
  };
});
"""
#: By way of JSON, as a NUL would end a text.
_CALL: Final = """
function call(name, values) {
  const found = globalThis[name](...JSON.parse(values), digest);
  return JSON.stringify(found === undefined ? null : found);
}
"""


class Core:
    """The router core in an engine that counts its steps."""

    def __init__(self, config: Config) -> None:
        self._context = quickjs.Context()
        provide_digest(self._context)
        self._context.eval(_COUNTED + router.render(config) + _CALL)

    def call(self, name: str, *values: str) -> Any:
        return json.loads(self._context.get("call")(name, json.dumps(values)))

    def steps(self, name: str, *values: str) -> int:
        self._context.eval("steps = 0")
        self.call(name, *values)
        return int(self._context.eval("steps"))


CORE: Final = Core(SEARCHING)
WITHOUT_SEARCH: Final = Core(Config(variant="extended", search="off"))


def repeated(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


@pytest.mark.parametrize(
    "part", ["&", "=", "a", "a&", "a=&", "&=", "limit=5&", "%", "%41&", "+", "+&", "q=%F0%9F&", "é"]
)
def test_reading_parameters_takes_steps_in_proportion_to_their_length(part: str) -> None:
    short, long = (CORE.steps("readParameters", repeated(part, length)) for length in (SHORT, LONG))
    assert short > SHORT
    assert long <= 1.1 * LONG / SHORT * (short + 10)


@pytest.mark.parametrize("core", [CORE, Core(Config())])
def test_a_target_that_is_too_long_is_refused_unread_and_not_read_to_count_it_either(core: Core) -> None:
    for method, path, query in (
        ("GET", MARKETS, repeated("&", MOST)),
        ("GET", MARKETS, repeated("&", MOST - len(MARKETS) + 1)),
        ("GET", MARKETS, repeated("q=%41&", LONG)),
        ("OPTIONS", f"{MARKETS}/{repeated('a', MOST)}", ""),
        ("GET", repeated("/v1/dumps/", LONG), "x"),
    ):
        assert core.call("route", method, path, query)["status"] == 400
        assert core.steps("route", method, path, query) < 20, "no more than the sentence takes"
        assert core is not CORE or core.steps("isSearch", method, path, query) == 0
    longest = "GET", MARKETS, repeated("&", MOST - len(MARKETS))
    assert "status" not in core.call("route", *longest)
    assert core.steps("route", *longest) > 2_000
    assert core is not CORE or core.steps("isSearch", *longest) > 2_000


def test_the_longest_honest_request_is_read_with_room_to_spare() -> None:
    place = "s" + "0" * (cursors.GENERATION_LENGTH - 1), 10**cursors.POSITION_LENGTH - 1
    honest = {
        "status": max(contract.STATUS_FILTERS, key=len),
        "sort": max(contract.SORTS, key=len),
        "limit": contract.LIMIT_MAX,
        "category": "\U0001d49c" * contract.CATEGORY_LENGTH,
        "q": "\U0001d49c" * contract.Q_LENGTH,
    }
    cursor = "".join(f"%{ord(letter):02X}" for letter in cursors.mint("open.category/activity", *place))
    # What sites and campaigns add: a path before `v1`, unknown parameters.
    query = f"{urlencode(honest)}&cursor={cursor}&utm={'x' * 1_000}"
    assert 3_500 < len(MARKETS) + len(query) < MOST
    (found,) = in_quickjs(router.render(SEARCHING), [("GET", MARKETS, query)], NOWHERE)
    # Nothing is published here, so no more can be said than that each parameter was read.
    assert json.loads(found["settled"]["body"])["details"][0]["path"] == ["cursor"]


# ── whose requests are counted, and which of them as searches ─────────────────────────────────────────────────────────


def spellings(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> st.SearchStrategy[str]:
    """The ways to write an address, also for servers that see IPv4 in the form of IPv6."""
    mapped = address if address.version == 6 else ipaddress.IPv6Address(f"::ffff:{address}")
    dotted = [f"::ffff:{address}"] if address.version == 4 else []
    return st.sampled_from([str(address), str(mapped), mapped.exploded, mapped.exploded.upper(), *dotted])


#: Few networks with many addresses, some of them near those of IPv4.
ADDRESSES: Final = st.one_of(
    *(st.ip_addresses(network=network) for network in ("2001:db8::/62", "::/62", "198.51.100.0/30", "0.0.0.0/31")),
    st.ip_addresses(),
).flatmap(spellings)


def network(text: str) -> str:
    """What counts as one reader, as Python's own library sees it."""
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else address
    return str(mapped) if mapped else f"{int(address) >> 64:x}::/64"


@given(ADDRESSES, ADDRESSES)
def test_readers_are_told_apart_by_ipv4_address_or_half_an_ipv6_address(one: str, other: str) -> None:
    counted = [CORE.call("networkOf", address) for address in (one, other)]
    assert (counted[0] == counted[1]) == (network(one) == network(other))


#: Queries made of what may, or may not, be or hide the parameter.
PARTS: Final = ("q", "%71", "%51", "Q", "%2571", "+", "=", "=a", "&", "?", "#", "%", "%q", "%ff", "limit=5", "é", "\0")
QUERIES: Final = st.lists(st.sampled_from(PARTS), max_size=6).map("".join)
METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "XGET")
TARGETS: Final = (MARKETS, f"{MARKETS}/", f"/x{MARKETS}", "/v1/build.json", MARKETS.upper())


@given(QUERIES)
def test_a_search_is_what_the_router_would_refuse_without_search_for_its_q(query: str) -> None:
    refused = json.loads(WITHOUT_SEARCH.call("route", "GET", MARKETS, query).get("body", "{}"))
    has_q = ["q"] in [detail["path"] for detail in refused.get("details", [])]
    assert CORE.call("isSearch", "GET", MARKETS, query) is has_q
    assert bool(re.search(router.QUERY_OF_SEARCH, query)) is has_q


@given(QUERIES)
def test_nginx_knows_the_same_searches_by_method_and_target(query: str) -> None:
    pattern, has_q = router.search_pattern(SEARCHING), bool(re.search(router.QUERY_OF_SEARCH, query))
    for method, path in product(METHODS, TARGETS):
        is_search = has_q and method in ("GET", "HEAD") and path == MARKETS
        assert CORE.call("isSearch", method, path, query) is is_search
        assert bool(re.search(pattern, f"{method} {path}?{query}", re.DOTALL)) is is_search
        assert not re.search(pattern, f"{method} {path}{query.replace('?', '')}", re.DOTALL)
