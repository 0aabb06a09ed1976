"""Notices about what is published differently than the operator may expect, for the report and stderr. Pure."""

from collections.abc import Iterator

from generator.config.settings import Config
from generator.markets.catalog import Catalog, Market
from generator.markets.quarantine import printable


def of(catalog: Catalog, config: Config) -> Iterator[str]:
    """Outcomes too early or missing; in the extended variant unusable slugs, and configured categories without markets.

    An early outcome is the one secret a market has, so it is not quoted.
    """
    for market in catalog.markets:
        yield from _of_outcome(market)
        reason = catalog.refused_slugs.get(market.item.id)
        if reason:
            yield f"market {market.item.id} is found by its id only; its slug cannot be used: {reason}"
    if config.variant == "extended":
        known = {name for pair in catalog.categories().items() for name in pair}
        for wanted in config.categories or ():
            if wanted not in known:
                yield f"categories: no public market is in {printable(wanted)}, so it has no lists"


def _of_outcome(market: Market) -> Iterator[str]:
    item = market.item
    if market.has_early_outcome:
        yield (
            f"market {item.id} is {item.status} but has a resolution or a resolved_at; both are published as null "
            "until its status is resolved or cancelled"
        )
    if item.status == "resolved" and item.resolution is None:
        yield f"market {item.id} is resolved but has no resolution; it is published as it stands"
