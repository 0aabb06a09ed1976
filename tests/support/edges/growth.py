"""Whether what a request costs grows with its length, and no faster: counted for 1 KB and for 8 KB.

8 KB is the longest request line that nginx takes.
"""

from collections.abc import Callable
from typing import Final

SHORT: Final = 1_000
LONG: Final = 8_000


def repeated(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


def grows_no_faster(count: Callable[[str], int], text: str) -> bool:
    """Whether eight times as long a repetition of the text takes eight times as many steps, give or take a tenth."""
    short, long = (count(repeated(text, length)) for length in (SHORT, LONG))
    return long <= 1.1 * LONG / SHORT * (short + 10)
