"""Where the chunks of a list begin: decided by its items' ids, so that an item that moves touches two chunks. Pure.

Chunks are cut from the end of a list, where little happens. Of the positions that give a chunk an allowed size, the
chunk begins at the item whose id has the lowest rank, a hash. So borders follow the items: wherever a list changed,
both versions soon have a border at the same item again, and from there to the front they are the same.

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
#: `{"id":"`, 36 characters, and a quotation mark: no edit changes how an item begins.
_ID_END: Final = 44
#: An odd number: spreads the ranks of ids that differ in a digit.
_SPREAD: Final = 0x9E3779B1
_RANKS: Final = 0xFFFFFFFF


def shortest(count: int) -> int:
    """The fewest items in a chunk of a list of `count` items, except for the first."""
    lower, upper = _SHORTEST
    return min(upper, max(lower, int(isqrt(count) * _ROOTS)))


def longest(count: int) -> int:
    """The most items in a chunk of a list of `count` items."""
    return 2 * shortest(count)


def of(items: Sequence[bytes]) -> list[int]:
    """The positions where the chunks of a list begin, and the end of the list, of its encoded items."""
    end, least, most = len(items), shortest(len(items)), longest(len(items))
    found = [end] if items else []
    while end > most:
        ranks = [crc32(item[:_ID_END]) * _SPREAD & _RANKS for item in items[end - most : end - least + 1]]
        end += ranks.index(min(ranks)) - most
        found.append(end)
    return [0, *reversed(found)]


def estimate(count: int) -> int:
    """About how many chunks a list of `count` items has."""
    least, most = shortest(count), longest(count)
    if count <= most:
        return min(count, 1)
    mean, spread = (least + most) / 2, most - least
    # The first chunk has what remains once that fits: by renewal theory, so much less than the longest on average.
    first = most - (mean + spread**2 / 12 / mean) / 2
    return 1 + max(1, round((count - first) / mean))
