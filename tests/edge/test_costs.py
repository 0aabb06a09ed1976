"""What a long request costs a router: no more than its length, and next to nothing if it is too long."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest
import quickjs

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


def counting(config: Config) -> quickjs.Context:
    context = quickjs.Context()
    provide_digest(context)
    context.eval(_COUNTED + router.render(config))
    return context


# ── the router ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "part", ["&", "=", "a", "a&", "a=&", "&=", "limit=5&", "%", "%41&", "+", "+&", "q=%F0%9F&", "é"]
)
def test_reading_parameters_takes_steps_in_proportion_to_their_length(part: str) -> None:
    count = counting(SEARCHING).get("stepsOf")
    assert count(repeated(part, SHORT)) > SHORT
    assert grows_no_faster(count, part)


@pytest.mark.parametrize("variant", ["core", "extended"])
def test_a_target_that_is_too_long_is_refused_unread(variant: str) -> None:
    count = counting(Config.model_validate({"variant": variant})).get("stepsOfRoute")
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
    count = counting(SEARCHING).get("stepsOfCounting")
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
