"""Which slugs of the database lead to a market. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from generator.api import ids, keys
from generator.api.slugs import REFERENCE_LENGTH, can_be_reference
from generator.markets.quarantine import shown

#: What stands where a market does in a path, and is something else.
_RESERVED: Final = keys.SNAPSHOT.removeprefix(f"{keys.MARKETS}/").removesuffix(".json")


@dataclass(frozen=True)
class References:
    """The slugs that lead to a market, by its id as it is spelled; why others do not, by the id in lower case."""

    usable: Mapping[str, str]
    refused: Mapping[str, str]


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
        ids.uuid(slug)
    except ValueError:
        return None
    return "has the form of a UUID"
