"""Where the chunks of a list begin: decided by its items' ids, so that an item that moves touches two chunks. Pure.

Chunks are cut from the end of a list, where little happens. Of the positions that give a chunk an allowed size, the
chunk begins at the item whose id has the lowest rank, a hash. So borders follow the items: wherever a list changed,
both versions soon have a border at the same item again, and from there to the front they are the same.

Chunks of large items are shorter: an edge holds a chunk in memory, and reads none that is larger than its buffers.

Sizes depend on the list's length. They change by one item at a time, which moves about one border in a hundred: a list
whose length changes to and fro is never cut anew.
"""

from collections.abc import Sequence
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
    end, most = len(items), longest(len(items))
    found = [end] if items else []
    while (fitting := _fitting(items, end, most)) < end:
        least = max(fitting // 2, min(fitting, LIMIT_MAX))
        ranks = [crc32(item[:_ID_END]) * _SPREAD & _RANKS for item in items[end - fitting : end - least + 1]]
        end += ranks.index(min(ranks)) - fitting
        found.append(end)
    return [0, *reversed(found)]


def _fitting(items: Sequence[bytes], end: int, most: int) -> int:
    """How many of the items before `end` fit into a chunk; one fits always."""
    start = max(0, end - most)
    size = sum(map(len, items[start:end])) + _BETWEEN * (end - start)
    while size > LARGEST and start < end - 1:
        size -= len(items[start]) + _BETWEEN
        start += 1
    return end - start


def estimate(count: int) -> int:
    """About how many chunks a list of `count` items has."""
    least, most = shortest(count), longest(count)
    if count <= most:
        return min(count, 1)
    mean, spread = (least + most) / 2, most - least
    # The first chunk has what remains once that fits: by renewal theory, so much less than the longest on average.
    first = most - (mean + spread**2 / 12 / mean) / 2
    return 1 + max(1, round((count - first) / mean))
