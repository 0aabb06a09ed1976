"""Where the chunks of a list begin: decided by its items' ids, so that an item that moves touches two chunks. Pure.

Chunks are cut from the end of a list, where little happens. Of the positions that give a chunk an allowed size, the
chunk begins at the item whose id has the lowest rank, a hash. So borders follow the items: wherever a list changed,
both versions soon have a border at the same item again, and from there to the front they are the same.

Chunks of large items are shorter: an edge holds a chunk in memory, and reads none that is larger than its buffers.

Sizes depend on the list's length. They change by one item at a time, which moves about one border in a hundred: a list
whose length changes to and fro is never cut anew.

The rule has two entries: `of` cuts a whole list, and `without` finds the borders near items that are taken out.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import islice
from math import isqrt
from typing import Final
from zlib import crc32

from generator.api.contract import LIMIT_MAX

#: Bounds of the shortest chunk of a list, in items. A page has no more than the lower one, so at most two chunks hold
#: it; a search may read twenty chunks, so they must not become too long.
_SHORTEST: Final = (LIMIT_MAX, 400)
#: Between these bounds, the same as a share of the square root of the list's length: so a list has as many chunks as a
#: chunk has items, and index and chunk are about equally long.
_ROOTS: Final = 2 / 3
#: The most bytes of a chunk of several items: a hundred of the largest that a market can have, 17.5 KB, fit; and nginx
#: keeps it off the disk.
LARGEST: Final = 2_000_000
#: Between two items.
_BETWEEN: Final = len(",\n")
#: `{"id":"`, 36 characters, and a quotation mark: no edit changes how an item begins.
_ID_END: Final = 44
#: An odd number: spreads the ranks of ids that differ in a digit.
_SPREAD: Final = 0x9E3779B1
_RANKS: Final = 0xFFFFFFFF


def shortest(count: int) -> int:
    """The fewest items in a chunk of a list of `count` items, except for the first and for chunks of large items."""
    lower, upper = _SHORTEST
    return min(upper, max(lower, int(isqrt(count) * _ROOTS)))


def longest(count: int) -> int:
    """The most items in a chunk of a list of `count` items."""
    return 2 * shortest(count)


def of(items: Sequence[bytes]) -> list[int]:
    """The positions where the chunks of a list begin, and the end of the list, of its encoded items."""
    found, most = [len(items)], longest(len(items))
    while end := found[-1]:
        found.append(end - _last(items[max(0, end - most) : end], is_all=end <= most))
    return found[::-1]


def without(borders: Sequence[int], gone: Sequence[int], item: Callable[[int], bytes]) -> list[int] | None:
    """The borders of a list without the items at the `gone` positions, which ascend, of the `borders` that it has.

    Positions are those of the list as it is; the first chunk begins at 0. `item` reads the encoded item at one: only
    items before a border are read that has such a position near it, or that is new. None if its length changes the
    bounds of all chunks: then the list is to be cut whole.
    """
    count, most = borders[-1], longest(borders[-1])
    if longest(count - len(gone)) != most:
        return None
    found, absent = [count], frozenset(gone)
    while end := found[-1]:
        former = bisect_left(borders, end)
        # Only the items that a chunk may have, and whether there is one more, decide where it begins.
        if borders[former] == end and bisect_left(gone, end - most - 1) == bisect_left(gone, end):
            found.append(borders[former - 1])
            continue
        before = [*islice((place for place in range(end - 1, -1, -1) if place not in absent), most + 1)]
        if not before:  # all that the first chunk had is gone
            found[-1] = 0
            break
        size = _last([item(place) for place in before[most - 1 :: -1]], is_all=len(before) <= most)
        found.append(0 if size == len(before) else before[size - 1])
    return found[::-1]


def _last(items: Sequence[bytes], *, is_all: bool) -> int:
    """The size of the chunk that ends with these items, of as many as a chunk may have; `is_all`: none come before."""
    fitting = _fitting(items)
    if is_all and fitting == len(items):
        return fitting
    least = max(fitting // 2, min(fitting, LIMIT_MAX))
    ranks = [crc32(item[:_ID_END]) * _SPREAD & _RANKS for item in items[-fitting : len(items) - least + 1]]
    return fitting - ranks.index(min(ranks))


def _fitting(items: Sequence[bytes]) -> int:
    """How many of the last items fit into a chunk; one fits always."""
    start, size = 0, sum(map(len, items)) + _BETWEEN * len(items)
    while size > LARGEST and start < len(items) - 1:
        size -= len(items[start]) + _BETWEEN
        start += 1
    return len(items) - start


def estimate(count: int) -> int:
    """About how many chunks a list of `count` items has."""
    least, most = shortest(count), longest(count)
    if count <= most:
        return min(count, 1)
    mean, spread = (least + most) / 2, most - least
    # The first chunk has what remains once that fits: by renewal theory, so much less than the longest on average.
    first = most - (mean + spread**2 / 12 / mean) / 2
    return 1 + max(1, round((count - first) / mean))
