"""Texts that stand for a market or a category in a URL: which of them can, and the one made of a category's name. Pure.

A market's slug comes from the database and is only judged here. A category's is a function of its name alone, so that
links outlive whatever happens to other categories.
"""

import hashlib
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from generator import keys, rows
from generator.quarantine import shown

REFERENCE_LENGTH: Final = 255

_LETTERS: Final = frozenset(string.ascii_letters + string.digits + "_-")
#: What stands where a market does in a path, and is something else.
_RESERVED: Final = keys.SNAPSHOT.removeprefix(f"{keys.MARKETS}/").removesuffix(".json")
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


@dataclass(frozen=True)
class References:
    """The slugs that lead to a market, by its id as it is spelled; why others do not, by the id in lower case."""

    usable: Mapping[str, str]
    refused: Mapping[str, str]


def can_be_reference(text: str) -> bool:
    """Whether a market can be named so in a path."""
    return 0 < len(text) <= REFERENCE_LENGTH and _LETTERS.issuperset(text)


def references(found: Iterable[Sequence[Any]]) -> References:
    """Judge the slugs of all public markets, given as id and slug. Case makes no difference between two slugs."""
    slugs = {market_id: slug for market_id, slug in found if slug is not None and slug != ""}
    refused = {market_id: reason for market_id, slug in slugs.items() if (reason := _misfit(slug))}
    usable = {market_id: slug for market_id, slug in slugs.items() if market_id not in refused}
    owners = Counter(slug.lower() for slug in usable.values())
    for market_id in [market_id for market_id, slug in usable.items() if owners[slug.lower()] > 1]:
        del usable[market_id]
        refused[market_id] = "another market has the same, or the same in another case"
    told = {str(market_id).lower(): f"{reason} ({shown(slugs[market_id])})" for market_id, reason in refused.items()}
    return References(usable, told)


def _misfit(slug: Any) -> str | None:
    if not isinstance(slug, str) or not can_be_reference(slug):
        return f"not 1 to {REFERENCE_LENGTH} letters, digits, hyphens and underscores of ASCII"
    if slug.lower() == _RESERVED:
        return f"/{keys.SNAPSHOT.removesuffix('.json')} is something else"
    try:
        rows.uuid(slug)
    except ValueError:
        return None
    return "has the form of a UUID"
