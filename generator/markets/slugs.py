"""Decides which market slugs of the database can be used in a path. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from generator.api import forms, keys
from generator.api.slugs import REFERENCE_LENGTH, can_be_reference
from generator.findings import Finding
from generator.markets.quarantine import printable

#: Stands where a reference to a market does in a path, but is another endpoint.
_RESERVED: Final = keys.SNAPSHOT.removeprefix(f"{keys.MARKETS}/").removesuffix(".json")


@dataclass(frozen=True)
class References:
    """The usable slugs by market id as spelled in the database; what refuses others, by id in lower case."""

    usable: Mapping[str, str]
    refused: Mapping[str, Finding]


def references(found: Iterable[Sequence[Any]]) -> References:
    """Check the slugs of all public markets, given as pairs of id and slug. Slugs are compared without case."""
    slugs = {market_id: slug for market_id, slug in found if slug is not None and slug != ""}
    refused = {market_id: reason for market_id, slug in slugs.items() if (reason := _unusable(slug))}
    usable = {market_id: slug for market_id, slug in slugs.items() if market_id not in refused}
    owners = Counter(slug.lower() for slug in usable.values())
    for market_id in [market_id for market_id, slug in usable.items() if owners[slug.lower()] > 1]:
        del usable[market_id]
        refused[market_id] = "another market has the same, or the same in another case"
    faults = {
        str(market_id).lower(): Finding(column="slug", text=rule, value=printable(slugs[market_id]))
        for market_id, rule in refused.items()
    }
    return References(usable, faults)


def _unusable(slug: Any) -> str | None:
    if not isinstance(slug, str) or not can_be_reference(slug):
        return f"not 1 to {REFERENCE_LENGTH} letters, digits, hyphens and underscores of ASCII"
    if slug.lower() == _RESERVED:
        return f"/{keys.SNAPSHOT.removesuffix('.json')} is something else"
    try:
        forms.uuid(slug)
    except ValueError:
        return None
    return "has the form of a UUID"
