"""Borders: a function of the items' ids alone, within bounds, and a market that moves touches few chunks."""

import json
import random
import uuid
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import contract
from generator.tree import borders
from tests.support.campaigns import rounds

#: A step is a kind of change, and two places of the list, as shares of its length.
STEPS = st.lists(
    st.tuples(st.sampled_from(["insert", "delete", "move", "edit"]), st.floats(0, 1), st.floats(0, 1)), max_size=12
)


def _dice(seed: int | str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same lists every time


def item(number: int, text: str = "") -> bytes:
    return contract.encode({"id": str(uuid.UUID(int=_dice(number).getrandbits(128))), "question": text})


MANY = tuple(item(number) for number in range(20_000))


def cut(items: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    return [tuple(items[start:end]) for start, end in pairwise(borders.of(items))]


def changed(items: list[bytes], step: tuple[str, float, float], text: str) -> None:
    kind, place, to = step
    number, other = (min(int(share * len(items)), len(items) - 1) for share in (place, to))
    if kind == "insert" or not items:
        items.insert(max(0, number), item(_dice(text).randrange(10**9), text))
    elif kind == "edit":
        items[number] = json.dumps(json.loads(items[number]) | {"question": text}, separators=(",", ":")).encode()
    else:
        gone = items.pop(number)
        if kind == "move":
            items.insert(other, gone)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1_200), STEPS)
def test_after_any_changes_borders_are_those_of_the_items_and_sizes_within_bounds(
    count: int, steps: list[tuple[str, float, float]]
) -> None:
    items = [*MANY[:count]]
    for number, step in enumerate(steps):
        before = borders.of(items)
        changed(items, step, f"step {number}")
        if step[0] == "edit" and len(before) > 1:
            assert borders.of(items) == before
    found = cut(items)
    assert [one for chunk in found for one in chunk] == items
    assert found == cut([bytes(bytearray(one)) for one in items])
    least, most = borders.shortest(len(items)), borders.longest(len(items))
    assert all(least <= len(chunk) <= most for chunk in found[1:])
    assert all(0 < len(chunk) <= most for chunk in found[:1])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 30_000)), max_size=40), st.integers(0, 9))
def test_no_chunk_of_several_items_is_larger_than_an_edge_reads(runs: list[tuple[int, int]], giants: int) -> None:
    lengths = [length for number, length in runs for _ in range(number)]
    items = [item(number, "x" * length) for number, length in enumerate([*lengths, *(borders.LARGEST,) * giants])]
    _dice(giants).shuffle(items)
    found = cut(items)
    assert [one for chunk in found for one in chunk] == items
    assert all(len(chunk) == 1 or sum(len(one) + 2 for one in chunk) <= borders.LARGEST for chunk in found)
    assert all(len(chunk) <= borders.longest(len(items)) for chunk in found)


@pytest.mark.campaign
def test_a_market_that_moves_touches_about_two_chunks() -> None:
    dice, items, touched = _dice(1), [*MANY], list[int]()
    before = {*cut(items)}
    for _ in range(rounds(20, 100)):
        gone = items.pop(dice.randrange(len(items)))
        items.insert(dice.choice([0, dice.randrange(len(items))]), gone)
        after = {*cut(items)}
        touched.append(len(after - before))
        before = after
    assert mean(touched) < 2.2
    assert max(touched) <= 8
