"""Slugs in URLs: validates those of markets and derives those of categories. Pure.

A market's slug comes from the database. A category's slug depends on its name alone, so links stay valid whatever
happens to other categories.
"""

import hashlib
import re
import string
from typing import Final

REFERENCE_LENGTH: Final = 255

_LETTERS: Final = frozenset(string.ascii_letters + string.digits + "_-")
#: A name that is its own slug. It has no double hyphen, which marks derived slugs.
_PLAIN: Final = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
_WORDS: Final = re.compile("[A-Za-z0-9]+")
_READABLE_LENGTH: Final = 40
_DIGEST_LENGTH: Final = 10
_WITHOUT_WORDS: Final = "category"


def of_category(name: str) -> str:
    """The slug of a category: its name if that can stand in a URL, else its words and a digest of the name."""
    if _PLAIN.fullmatch(name):
        return name
    words = "-".join(_WORDS.findall(name)).lower()[:_READABLE_LENGTH].rstrip("-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{words or _WITHOUT_WORDS}--{digest}"


def can_be_reference(text: str) -> bool:
    """Whether the text can identify a market in a path."""
    return 0 < len(text) <= REFERENCE_LENGTH and _LETTERS.issuperset(text)
