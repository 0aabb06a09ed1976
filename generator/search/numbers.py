"""Numbers as printable ASCII that JSON need not escape: ascending ones in two ways, and numbers of fixed width. Pure.

    gaps            the last digit is one of 57, from `#` to `[`; those before it are one of 34, from `]` to `~`
    bits            one for every number from 0 on, the first of six in the highest; what follows the last is left out
    fixed width     every digit is one of 91, from `#` to `~` without the backslash; six bits are one of the first 64

Gaps are mostly small, so most of them take one character. Bits take less where more than a sixth of all numbers are
there, and a router compares six at once.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, product
from operator import sub
from string import ascii_lowercase, ascii_uppercase
from string import digits as decimals
from typing import Final

#: Codes of the digits; the backslash (92) is none.
FIRST: Final = 35
BACKSLASH: Final = 92
#: The base of the last digit of a gap, and of those before it.
LAST_BASE: Final = BACKSLASH - FIRST
HIGH_BASE: Final = 34
#: The base of numbers of fixed width.
BASE: Final = LAST_BASE + HIGH_BASE

#: Bits of a character.
BITS: Final = 6
#: Bits that are whole bytes and whole characters.
_BYTES_BITS: Final = 24
_SET: Final = ord("1")

_DIGITS: Final = "".join(chr(code) for code in range(FIRST, FIRST + BASE + 1) if code != BACKSLASH)
_BASE64: Final = f"{ascii_uppercase}{ascii_lowercase}{decimals}+/".encode()
_FROM_BASE64: Final = bytes.maketrans(_BASE64, _DIGITS[: 1 << BITS].encode())
_TO_BASE64: Final = bytes.maketrans(_DIGITS[: 1 << BITS].encode(), _BASE64)
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


def encode_bits(numbers: Sequence[int]) -> str:
    """Ascending numbers from 0, at least one, as a bit for each up to the last of them."""
    last = numbers[-1]
    flags = bytearray(b"0") * (last // _BYTES_BITS * _BYTES_BITS + _BYTES_BITS)
    for number in numbers:
        flags[number] = _SET
    body = int(flags, 2).to_bytes(len(flags) // 8, "big")
    return b64encode(body)[: last // BITS + 1].translate(_FROM_BASE64).decode()


def decode_bits(text: str) -> list[int]:
    """The ascending numbers."""
    body = b64decode(text.encode().translate(_TO_BASE64) + b"A" * (-len(text) % 4))
    flags = f"{int.from_bytes(body, 'big'):0{8 * len(body)}b}"
    return [number for number, flag in enumerate(flags) if flag == "1"]


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
