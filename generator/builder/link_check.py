"""Whether markets have the keys that links to their pages are made of."""

from collections.abc import Iterator

from generator.api import links
from generator.findings import Finding, warning
from generator.site.catalog import Catalog
from generator.wording import counted


def findings(market_url: str | None, catalog: Catalog, *, has_keys: bool) -> Iterator[Finding]:
    """What is missing for the links of a setting `market_url`; `has_keys`: the database has a column for keys."""
    count = len(catalog.markets)
    if not links.uses_keys(market_url) or not count:
        return
    if not has_keys:
        yield warning(
            "market_url: has {key}, but markets has no column `key`, so no market gets a link; add the column, or "
            "write {id}"
        )
    elif (missing := count - len(catalog.site_keys())) > 0:
        yield warning(
            f"market_url: has {{key}}, and {missing:,} of {counted(count, 'market', ',')} have no usable key, so they "
            "get no link; give each a key of its own"
        )
