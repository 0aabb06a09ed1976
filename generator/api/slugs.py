"""Texts that stand for a market or a category in a URL: which of them can, and the one made of a category's name. Pure.

A market's slug comes from the database and is only judged here. A category's is a function of its name alone, so that
links outlive whatever happens to other categories.
"""

import hashlib
import re
import string
from typing import Final

REFERENCE_LENGTH: Final = 255

_LETTERS: Final = frozenset(string.ascii_letters + string.digits + "_-")
#: A name that can stand in a URL as it is. No two hyphens in a row: that is what slugs that are made have.
_PLAIN: Final = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
_WORDS: Final = re.compile("[A-Za-z0-9]+")
_READABLE_LENGTH: Final = 40
_DIGEST_LENGTH: Final = 10
_WITHOUT_WORDS: Final = "category"


def of_category(name: str) -> str:
    """The slug of a category: its name where that is one already, else its words and a digest of the name."""
    if _PLAIN.fullmatch(name):
        return name
    words = "-".join(_WORDS.findall(name)).lower()[:_READABLE_LENGTH].rstrip("-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{words or _WITHOUT_WORDS}--{digest}"


def can_be_reference(text: str) -> bool:
    """Whether a market can be named so in a path."""
    return 0 < len(text) <= REFERENCE_LENGTH and _LETTERS.issuperset(text)
