"""`v1/prices.json`: all open markets in one object, whose bytes change only when one of its values does."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api import prices
from generator.api.contract import encode
from tests.support.sites.builds import NOW

LATER = "2026-02-01T00:00:00.000Z"


def item(number: int, **changes: object) -> dict[str, Any]:
    return {
        "id": f"{number:08d}-0000-4000-8000-000000000000", "question": "?", "prob": 0.5, "volume": 10.0,
        "lastActivityAt": "2026-01-30T00:00:00.000Z", **changes,
    }  # fmt: skip


def made(*items: dict[str, Any], as_of: str = NOW, published: bytes | None = None) -> bytes | None:
    return prices.make(map(encode, items), as_of, published)


def test_it_shows_four_values_of_each_market_in_the_order_of_the_items() -> None:
    body = made(item(1, prob=0.25), item(2))
    assert body == (
        b'{"asOf":"2026-01-31T12:00:00.000Z","markets":['
        b'{"id":"00000001-0000-4000-8000-000000000000","prob":0.25,"volume":10.0,"lastActivityAt":"2026-01-30T00:00:00.000Z"},'
        b'{"id":"00000002-0000-4000-8000-000000000000","prob":0.5,"volume":10.0,"lastActivityAt":"2026-01-30T00:00:00.000Z"}]}'
    )
    assert made() == b'{"asOf":"2026-01-31T12:00:00.000Z","markets":[]}'


SHOWN = st.fixed_dictionaries(
    {}, optional={"prob": st.sampled_from((0.0, 1.0)), "volume": st.sampled_from((0.0, 1e300)), "question": st.text()}
)


@given(st.lists(SHOWN, max_size=3), st.lists(SHOWN, max_size=3))
def test_its_as_of_is_that_of_the_build_that_last_changed_it(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    old = made(*(item(number, **changes) for number, changes in enumerate(before)))
    new = made(*(item(number, **changes) for number, changes in enumerate(after)), as_of=LATER, published=old)
    assert old is not None
    assert new is not None
    markets = [json.loads(body)["markets"] for body in (old, new)]
    assert json.loads(new)["asOf"] == (NOW if markets[0] == markets[1] else LATER)
    assert (new == old) is (markets[0] == markets[1])


@pytest.mark.parametrize("published", [b"", b"{", b'{"asOf":"x","markets":[]}', b'{"asOf":"2026-01-31T12:00:00.000Z"}'])
def test_what_is_no_such_object_is_replaced(published: bytes) -> None:
    assert made(as_of=LATER, published=published) == made(as_of=LATER)


def test_more_than_two_megabytes_are_not_published_and_not_made() -> None:
    each = len(encode([item(1)])) and len(made(item(1), item(2)) or b"") - len(made(item(1)) or b"")
    fitting = (prices.MOST_BYTES - len(made() or b"")) // each
    taken = 0

    def items(count: int) -> Iterator[bytes]:
        nonlocal taken
        for taken in range(1, count + 1):
            yield encode(item(taken))

    body = prices.make(items(fitting), NOW, None)
    assert body is not None
    assert prices.MOST_BYTES - each < len(body) <= prices.MOST_BYTES
    assert prices.make(items(10 * fitting), NOW, None) is None
    assert taken <= prices.MOST_BYTES // prices.LEAST_BYTES + 1, "the rest of a large site is not even looked at"
    assert prices.make(items(fitting + 1), NOW, None) is None, "nor is it published if that tells only its size"
    assert taken == fitting + 1 < prices.MOST_BYTES // prices.LEAST_BYTES


def test_no_market_takes_fewer_bytes_than_the_least() -> None:
    assert len(made(item(1, prob=0.0, volume=0.0)) or b"") - len(made() or b"") > prices.LEAST_BYTES
