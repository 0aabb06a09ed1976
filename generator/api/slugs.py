"""Slugs in URLs: validates those of markets and derives those of categories. Pure.

A market's slug comes from the database. A category's slug depends on its name alone, so links stay valid whatever
happens to other categories, and the router needs no table of names: it derives the slug as `of_reference` does.
"""

import hashlib
import re
import string
from typing import Final

REFERENCE_LENGTH: Final = 255
#: Of a derived slug: how much of the name's words it shows, what stands for a name without words, and its digits.
WORDS_LENGTH: Final = 40
WITHOUT_WORDS: Final = "category"
DIGEST_LENGTH: Final = 10

_LETTERS: Final = frozenset(string.ascii_letters + string.digits + "_-")
#: A name that is its own slug. It has no double hyphen, which marks derived slugs.
_PLAIN: Final = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
_WORDS: Final = re.compile("[A-Za-z0-9]+")
#: A slug that is derived from another name.
_DERIVED: Final = re.compile(f"{_PLAIN.pattern}--[0-9a-f]{{{DIGEST_LENGTH}}}")


def of_category(name: str) -> str:
    """The slug of a category: its name if that can stand in a URL, else its words and a digest of the name."""
    if _PLAIN.fullmatch(name):
        return name
    words = "-".join(_WORDS.findall(name)).lower()[:WORDS_LENGTH].rstrip("-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:DIGEST_LENGTH]
    return f"{words or WITHOUT_WORDS}--{digest}"


def is_derived(text: str) -> bool:
    """Whether the text has the form of a derived slug, so it can be the name of no category."""
    return _DERIVED.fullmatch(text) is not None


def of_reference(text: str) -> str:
    """The slug of the category that a reader means, by its slug or its name as it is shown."""
    return text if is_derived(text) else of_category(text)


def can_be_reference(text: str) -> bool:
    """Whether the text can identify a market in a path."""
    return 0 < len(text) <= REFERENCE_LENGTH and _LETTERS.issuperset(text)
