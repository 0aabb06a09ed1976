"""Divides requests among what they are for, and draws what is asked. Pure."""

from collections.abc import Collection, Sequence
from itertools import chain, zip_longest
from random import Random
from typing import NamedTuple


class Wish(NamedTuple):
    """For how many requests there is use, and how much that matters beside other wishes."""

    requests: int
    weight: int = 1


def shared_out(budget: int, wishes: Sequence[Wish]) -> list[int]:
    """How many of so many requests each wish gets, by its weight; what one has no use for goes to the others."""
    shares = [0] * len(wishes)
    waiting = [number for number, wish in enumerate(wishes) if wish.requests > 0]
    left = max(0, budget)
    while waiting:
        weight = sum(wishes[number].weight for number in waiting)
        granted = {number for number in waiting if wishes[number].requests * weight <= left * wishes[number].weight}
        for number in granted:
            shares[number] = wishes[number].requests
        if not granted:
            for number in waiting:
                shares[number] = left * wishes[number].weight // weight
            for number in waiting[: left - sum(shares[number] for number in waiting)]:
                shares[number] += 1
            break
        left -= sum(shares[number] for number in granted)
        waiting = [number for number in waiting if number not in granted]
    return shares


def drawn(rng: Random, groups: Sequence[Collection[str]], most: int | None) -> list[str]:
    """So many members of these groups, drawn from each in turn, none twice; without `most`, all in random order."""
    pools = (rng.sample(sorted(group), len(group)) for group in groups)
    turns = dict.fromkeys(one for one in chain.from_iterable(zip_longest(*pools)) if one is not None)
    return [*turns][:most]
