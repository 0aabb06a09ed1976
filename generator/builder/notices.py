"""Notices about what is published differently than the operator may expect, for the report and stderr. Pure."""

from collections.abc import Iterable, Iterator

from generator.config.settings import Config
from generator.markets.catalog import Catalog, Market
from generator.markets.categories import slug_of
from generator.markets.quarantine import printable


def of(catalog: Catalog, config: Config) -> Iterator[str]:
    """Outcomes too early or missing; in the extended variant unusable slugs, merged categories and empty ones.

    An early outcome is the one secret a market has, so it is not quoted.
    """
    for market in catalog.markets:
        yield from _of_outcome(market)
        reason = catalog.refused_slugs.get(market.item.id)
        if reason:
            yield f"market {market.item.id} is found by its id only; its slug cannot be used: {reason}"
    if config.variant == "extended":
        yield from _of_categories(catalog, config.categories or ())


def _of_outcome(market: Market) -> Iterator[str]:
    item = market.item
    if market.has_early_outcome:
        yield (
            f"market {item.id} is {item.status} but has a resolution or a resolved_at; both are published as null "
            "until its status is resolved or cancelled"
        )
    if item.status == "resolved" and item.resolution is None:
        yield f"market {item.id} is resolved but has no resolution; it is published as it stands"


def _of_categories(catalog: Catalog, wanted: Iterable[str]) -> Iterator[str]:
    for name, shown in sorted(catalog.spellings.items()):
        yield (
            f"category {printable(name)} is published as {printable(shown)}: the two names differ only in case, in "
            "spaces or in Unicode form"
        )
    known = catalog.categories()
    for reference in wanted:
        if slug_of(reference, known) is None:
            yield f"categories: no public market is in {printable(reference)}, so it has no lists"
