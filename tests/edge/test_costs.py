"""What a request costs a router and its reader: no more steps than its length, and whose requests are counted."""

import ipaddress
import json
import re
from collections.abc import Callable
from pathlib import Path
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
from tests.support.edges.engines import ENGINES, NOWHERE

#: What is counted for is repeated to these lengths; the second is that of the longest request line that nginx takes.
SHORT, LONG = 1_000, 8_000
MARKETS: Final = f"/{keys.MARKETS}"
SEARCHING: Final = Config(variant="extended", layout="chunks")
#: Room for what sites and campaigns add to a URL: a path before `v1`, unknown parameters.
SLACK: Final = 1_000

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
function stepsOf(query) {
  steps = 0;
  readParameters(query);
  return steps;
}
function stepsOfRoute(method, path, query) {
  steps = 0;
  const found = route(method, path, query, digest);
  return JSON.stringify([steps, found.status || 200]);
}
function stepsOfCounting(query) {
  steps = 0;
  isSearch('GET', MARKETS, query);
  return steps;
}
"""


def repeated(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


def grows_no_faster(count: Callable[[str], int], text: str) -> bool:
    """Whether eight times as long a repetition of the text takes eight times as many steps, give or take a tenth."""
    short, long = (count(repeated(text, length)) for length in (SHORT, LONG))
    return long <= 1.1 * LONG / SHORT * (short + 10)


def core(config: Config, before: str = "") -> Any:
    """The router core, in an engine that runs another script before."""
    context = quickjs.Context()
    provide_digest(context)
    context.eval(before + router.render(config))
    return context


# ── the router ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "part", ["&", "=", "a", "a&", "a=&", "&=", "limit=5&", "%", "%41&", "+", "+&", "q=%F0%9F&", "é"]
)
def test_reading_parameters_takes_steps_in_proportion_to_their_length(part: str) -> None:
    count = core(SEARCHING, _COUNTED).get("stepsOf")
    assert count(repeated(part, SHORT)) > SHORT
    assert grows_no_faster(count, part)


@pytest.mark.parametrize("variant", ["core", "extended"])
def test_a_target_that_is_too_long_is_refused_unread(variant: str) -> None:
    count = core(Config.model_validate({"variant": variant}), _COUNTED).get("stepsOfRoute")
    most = contract.TARGET_LENGTH
    for method, path, query in (
        ("GET", MARKETS, repeated("&", most)),
        ("GET", MARKETS, repeated("q=%41&", LONG)),
        ("OPTIONS", f"{MARKETS}/{repeated('a', most)}", ""),
        ("GET", repeated("/v1/dumps/", LONG), "x"),
    ):
        steps, status = json.loads(count(method, path, query))
        assert (status, steps) == (400, steps)
        assert steps < 20, "no more than the sentence takes"
    steps, status = json.loads(count("GET", MARKETS, repeated("&", most - len(MARKETS))))
    assert status == 200
    assert steps > 2_000, "the longest that is read"


@pytest.mark.parametrize("part", ["&", "q=%41&", "%ff+&"])
def test_a_target_that_is_too_long_is_not_read_to_count_it_either(part: str) -> None:
    count = core(SEARCHING, _COUNTED).get("stepsOfCounting")
    most = contract.TARGET_LENGTH - len(MARKETS)
    assert count(repeated(part, most)) > most, "the longest that is read"
    assert count(repeated(part, most + 1)) == count(repeated(part, LONG)) == 0


def longest_honest() -> str:
    """The longest query that a reader needs, every character of its values encoded where that is longer."""
    name = "open.category/activity"
    cursor = cursors.mint(name, "s" + "0" * (cursors.GENERATION_LENGTH - 1), 10**cursors.POSITION_LENGTH - 1)
    return (
        urlencode(
            {
                "status": max(contract.STATUS_FILTERS, key=len),
                "sort": max(contract.SORTS, key=len),
                "limit": contract.LIMIT_MAX,
                "category": "\U0001d49c" * contract.CATEGORY_LENGTH,
                "q": "\U0001d49c" * contract.Q_LENGTH,
            }
        )
        + "&cursor="
        + "".join(f"%{ord(letter):02X}" for letter in cursor)
    )


def test_the_longest_honest_request_is_read_with_room_to_spare(tmp_path: Path) -> None:
    honest = len(MARKETS) + len(longest_honest())
    assert 2_500 < honest < contract.TARGET_LENGTH - SLACK
    assert contract.TARGET_LENGTH < 4 * 1024
    query = longest_honest() + "&utm=" + "x" * SLACK
    (found,) = ENGINES["quickjs"](router.render(SEARCHING), [("GET", MARKETS, query)], tmp_path, NOWHERE)
    # Nothing is published here, so no more can be said than that each parameter was read.
    assert json.loads(found["settled"]["body"])["details"][0]["path"] == ["cursor"]


# ── whose requests are counted, and which of them as searches ─────────────────────────────────────────────────────────


CORE: Final = core(Config(variant="extended"))
WITHOUT_SEARCH: Final = core(Config(variant="extended", search="off"))


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
    assert bool(re.search(router.QUERY_OF_SEARCH, query)) is has_q


@given(st.sampled_from(["GET", "HEAD", "OPTIONS", "POST", "XGET"]), TARGETS, QUERIES)
def test_nginx_knows_the_same_searches_by_method_and_target(method: str, path: str, query: str) -> None:
    pattern = router.search_pattern(Config(variant="extended"))
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
