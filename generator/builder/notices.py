"""Notices about what is published differently than the operator may expect, for the report and stderr. Pure."""

from collections.abc import Iterator

from generator.config.settings import Config
from generator.markets.catalog import Catalog
from generator.markets.quarantine import printable


def of(catalog: Catalog, config: Config) -> Iterator[str]:
    """Unusable slugs, and configured categories without markets; nothing in the core variant."""
    for market in catalog.markets:
        reason = catalog.refused_slugs.get(market.item.id)
        if reason:
            yield f"market {market.item.id} is found by its id only; its slug cannot be used: {reason}"
    if config.variant == "extended":
        known = {name for pair in catalog.categories().items() for name in pair}
        for wanted in config.categories or ():
            if wanted not in known:
                yield f"categories: no public market is in {printable(wanted)}, so it has no lists"
