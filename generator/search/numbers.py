"""Numbers as printable ASCII that JSON need not escape: gaps of ascending numbers, and numbers of fixed width. Pure.

    gaps            the last digit is one of 57, from `#` to `[`; those before it are one of 34, from `]` to `~`
    fixed width     every digit is one of 91, from `#` to `~` without the backslash

Gaps are mostly small, so most of them take one character.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, product
from operator import sub
from typing import Final

#: Codes of the digits; the backslash (92) is none.
FIRST: Final = 35
BACKSLASH: Final = 92
#: The base of the last digit of a gap, and of those before it.
LAST_BASE: Final = BACKSLASH - FIRST
HIGH_BASE: Final = 34
#: The base of numbers of fixed width.
BASE: Final = LAST_BASE + HIGH_BASE

_DIGITS: Final = "".join(chr(code) for code in range(FIRST, FIRST + BASE + 1) if code != BACKSLASH)
#: Gaps below this are looked up: all but the first of rare words.
_COMMON: Final = 1 << 12


def encode_gaps(numbers: Sequence[int]) -> str:
    """Ascending numbers from 0, as the gaps between them."""
    common = _common()
    return "".join([common[gap] if gap < _COMMON else _gap(gap) for gap in map(sub, numbers, chain((-1,), numbers))])


def decode_gaps(text: str) -> Iterator[int]:
    """The ascending numbers."""
    number, gap = -1, 0
    for code in text.encode():
        if code > BACKSLASH:
            gap = gap * HIGH_BASE + code - BACKSLASH - 1
        else:
            number += gap * LAST_BASE + code - FIRST + 1
            gap = 0
            yield number


def width(limit: int) -> int:
    """The digits that numbers below `limit` need."""
    digits = 1
    while BASE**digits < limit:
        digits += 1
    return digits


def encode_fixed(numbers: Iterable[int], digits: int) -> str:
    """Numbers in the fixed width of so many digits."""
    high = ["".join(pair) for pair in product(_DIGITS, repeat=digits - digits // 2)]
    low = ["".join(pair) for pair in product(_DIGITS, repeat=digits // 2)]
    base = len(low)
    return "".join([high[number // base] + low[number % base] for number in numbers])


@cache
def _common() -> Sequence[str]:
    return [_gap(gap) for gap in range(_COMMON)]


def _gap(gap: int) -> str:
    # No gap is 0: each is written as one less.
    high, last = divmod(gap - 1, LAST_BASE)
    text = _DIGITS[last]
    while high > 0:
        high, digit = divmod(high, HIGH_BASE)
        text = _DIGITS[LAST_BASE + digit] + text
    return text
