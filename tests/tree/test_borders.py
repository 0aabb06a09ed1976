"""Borders: a function of the items' ids alone, within bounds, and a market that moves touches few chunks."""

import json
import random
import uuid
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from statistics import mean
from typing import Any, Final

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


#: Limits with which a list of some hundred items has many chunks, and its length changes their bounds.
SCALED: Final[Mapping[str, Any]] = {"_SHORTEST": (4, 40), "LIMIT_MAX": 4, "LARGEST": 4_000}


@contextmanager
def scaled() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SCALED.items():
            patch.setattr(borders, name, value)
        yield


def check_without(items: Sequence[bytes], gone: Sequence[int]) -> set[int] | None:
    """Compare both entries to the rule; returns the positions that were read, None if the list is to be cut whole."""
    read, left = set[int](), [one for place, one in enumerate(items) if place not in {*gone}]

    def reading(place: int) -> bytes:
        read.add(place)
        return items[place]

    found = borders.without(borders.of(items), gone, reading)
    is_whole = borders.longest(len(items)) != borders.longest(len(left))
    assert (found is None) == is_whole
    if found is None:
        return None
    assert [place - bisect_left(gone, place) for place in found] == borders.of(left)
    assert read.isdisjoint(gone)
    return read


def chosen(dice: random.Random, count: int, most: int) -> list[int]:
    """Positions: here and there, side by side, at the beginning, at the end."""
    number = dice.randrange(min(count, most) + 1)
    start = dice.choice([0, count - number, dice.randrange(count - number + 1)])
    return dice.choice([sorted(dice.sample(range(count), number)), [*range(start, start + number)]])


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 3_000) | st.integers(0, 60), st.integers(0, 10**9))
def test_without_some_items_borders_are_those_of_the_rest(count: int, seed: int) -> None:
    dice = _dice(seed)
    # Some ids are equal, and so are their ranks; some items are so large that a chunk has few of them, or only one.
    numbers = dice.choices(range(dice.choice([3, 100, 20_000])), k=count)
    lengths = dice.choices([0, 300, 1_500, 5_000], [dice.choice([1, 20, 1_000]), 3, 2, 1], k=count)
    items = [MANY[number] + b"x" * length for number, length in zip(numbers, lengths, strict=True)]
    with scaled():
        check_without(items, chosen(dice, count, dice.choice([1, 3, count])))


@pytest.fixture(scope="module")
def long() -> list[bytes]:
    """So many items that the length of the list changes the bounds of chunks, at 23,104 and at 23,409."""
    return [*MANY, *(item(number) for number in range(20_000, 23_500))]


@pytest.mark.parametrize("seed", range(6))
def test_with_the_real_limits_too(seed: int, long: list[bytes]) -> None:
    dice, outcomes = _dice(f"real {seed}"), list[bool]()
    for _ in range(6):
        count = dice.choice([dice.randrange(3_000), dice.randrange(23_000, 23_500)])
        items = [one + b"x" * dice.choice([0] * 99 + [40_000]) for one in dice.sample(long, count)]
        outcomes.append(check_without(items, chosen(dice, count, dice.choice([1, 3, 300]))) is None)
    assert not all(outcomes)


@pytest.mark.parametrize(("count", "is_whole"), [(23_103, False), (23_104, True), (23_105, False), (23_409, True)])
def test_where_the_length_changes_the_bounds_a_list_is_to_be_cut_whole(
    count: int, *, is_whole: bool, long: list[bytes]
) -> None:
    assert (check_without(long[:count], [7_000]) is None) == is_whole


def test_only_items_near_those_that_go_are_read() -> None:
    read = [len(check_without(MANY, [place]) or ()) for place in range(0, 20_000, 500)]
    assert mean(read) < 3 * borders.longest(len(MANY))
    assert max(read) < 8 * borders.longest(len(MANY))


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
