"""Decides which slugs of markets can be used in a path, and which keys of theirs name and link them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from generator.api import forms, keys
from generator.api.links import LONGEST_KEY, is_site_key
from generator.api.slugs import REFERENCE_LENGTH, can_be_reference
from generator.findings import Finding
from generator.markets.quarantine import printable

_NO_KEY: Final = f"not 1 to {LONGEST_KEY} characters, or blank, or with a control character"


#: Stands between a key or slug that several have and the others.
AS_HAS: Final = ", as has "


@dataclass(frozen=True)
class SiteKeys:
    """The usable keys, and what refuses others; both by id in lower case."""

    usable: Mapping[str, str]
    refused: Mapping[str, Finding]

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, Any]], noun: str = "market") -> "SiteKeys":
        """Check the keys of all public markets, given as pairs of id and key: a text, a whole number, or NULL.

        Two markets with one key have none: a link would lead to the other one, and so would a takedown. What refuses
        it names others that have it. `noun` is what has the keys, if it is not markets.
        """
        given = {str(market_id).lower(): _text(key) for market_id, key in rows if key is not None and key != ""}
        owners = dict[str | None, list[str]]()
        for market_id, key in sorted(given.items()):
            owners.setdefault(key, []).append(market_id)
        usable, refused = dict[str, str](), dict[str, Finding]()
        for market_id, key in given.items():
            if key is None or not is_site_key(key):
                refused[market_id] = Finding(column="key", text=_NO_KEY, value=printable(key or ""))
            elif len(owners[key]) > 1:
                value = f"{printable(key)}{AS_HAS}{_others(owners[key], market_id)}"
                refused[market_id] = Finding(column="key", text=f"another {noun} has the same", value=value)
            else:
                usable[market_id] = key
        return cls(usable, refused)


#: Those of a database that has no such column.
NO_KEYS: Final = SiteKeys({}, {})


def _others(owners: Iterable[str], market_id: str) -> str:
    """The first two of the owners (ids) beside this one, and how many more there are."""
    others = [owner for owner in owners if owner != market_id]
    return " and ".join([*others[:2], *([f"{len(others) - 2:,} more"] if others[2:] else [])])


def _text(key: Any) -> str | None:
    """The key as text; None for what is neither a text nor a whole number. SQLite may hold any value in a column."""
    if isinstance(key, str):
        return key
    return str(key) if isinstance(key, int) else None


#: Stands where a reference to a market does in a path, but is another endpoint.
_RESERVED: Final = keys.SNAPSHOT.removeprefix(f"{keys.MARKETS}/").removesuffix(".json")


@dataclass(frozen=True)
class References:
    """The usable slugs by market id as spelled in the database; what refuses others, by id in lower case."""

    usable: Mapping[str, str]
    refused: Mapping[str, Finding]


def references(found: Iterable[Sequence[Any]], noun: str = "market") -> References:
    """Check the slugs of all public markets, given as pairs of id and slug. Slugs are compared without case.

    What refuses one that several have names others. `noun` is what has the slugs, if it is not markets.
    """
    slugs = {market_id: slug for market_id, slug in found if slug is not None and slug != ""}
    refused = {market_id: reason for market_id, slug in slugs.items() if (reason := _unusable(slug))}
    usable = {market_id: slug for market_id, slug in slugs.items() if market_id not in refused}
    faults = {
        str(market_id).lower(): Finding(column="slug", text=rule, value=printable(slugs[market_id]))
        for market_id, rule in refused.items()
    }
    owners = dict[str, list[str]]()
    for owner, market_id in sorted((str(market_id).lower(), market_id) for market_id in usable):
        owners.setdefault(usable[market_id].lower(), []).append(owner)
    for market_id, slug in [(market_id, slug) for market_id, slug in usable.items() if len(owners[slug.lower()]) > 1]:
        del usable[market_id]
        owner, text = str(market_id).lower(), f"another {noun} has the same, or the same in another case"
        value = f"{printable(slug)}{AS_HAS}{_others(owners[slug.lower()], owner)}"
        faults[owner] = Finding(column="slug", text=text, value=value)
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
