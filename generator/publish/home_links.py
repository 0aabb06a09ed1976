"""Which published markets an address of the operator's site means, or a key of it, by the published state. Pure."""

from generator.api import links
from generator.api.links import MarketReference
from generator.tree.manifest import Manifest


def ids_at(built: Manifest, address: str, market_url: str | None = None) -> tuple[str, ...]:
    """The ids of the markets whose page has this address; none if it is no such address, or nobody's.

    It is made by the `market_url` that the state was built with, or by that of the settings now. An address with an id
    means that market, published or not.
    """
    recorded = built.settings.get("market_url")
    found = (links.reference(template, address) for template in (recorded, market_url))
    return next((ids for reference in found if reference and (ids := _ids_of(built, reference))), ())


def ids_of_key(built: Manifest, key: str) -> tuple[str, ...]:
    """The ids of the markets with this key on the operator's site.

    One, unless a publish was cut short while a key passed from one market to another.
    """
    return tuple(market_id for market_id, known in built.site_keys.items() if known == key)


def _ids_of(built: Manifest, reference: MarketReference) -> tuple[str, ...]:
    if reference.name == "id":
        return (reference.value,)
    if reference.name == "key":
        return ids_of_key(built, reference.value)
    slug = reference.value.lower()
    return tuple(market_id for market_id, slugs in built.slugs.items() if slug in map(str.lower, slugs))
