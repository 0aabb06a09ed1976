"""What `check` says of keys that links need."""

import pytest

from generator.builder import link_check
from generator.markets.site_keys import SiteKeys
from generator.site.catalog import Catalog, Naming
from tests.support.sites.builds import NOW
from tests.support.sites.rows import market_id, public_market

KEYED = "https://example.org/{key}"


def said(market_url: str | None, *numbers: int, has_keys: bool = True, count: int = 2) -> list[str]:
    """What is said if the markets of these numbers have keys."""
    naming = Naming(site_keys=SiteKeys({market_id(number): str(number) for number in numbers}, {}))
    catalog = Catalog(map(public_market, range(1, count + 1)), as_of=NOW, hidden=0, naming=naming)
    return [str(finding) for finding in link_check.findings(market_url, catalog, has_keys=has_keys)]


def test_nothing_is_said_where_links_have_all_that_they_need() -> None:
    assert said(KEYED, 1, 2) == said(KEYED, count=0) == []


@pytest.mark.parametrize("market_url", [None, "https://example.org/{id}"])
def test_keys_are_not_missed_where_no_link_needs_them(market_url: str | None) -> None:
    assert said(market_url, has_keys=False) == said(market_url, 1) == []


def test_a_missing_column_and_missing_keys_are_named() -> None:
    (column,), (some,) = said(KEYED, has_keys=False), said(KEYED, 2, 9)
    assert column == (
        "warning: market_url: has {key}, but markets has no column `key`, so no market gets a link; add the column, or "
        "write {id}"
    )
    assert some == (
        "warning: market_url: has {key}, and 1 of 2 markets have no usable key, so they get no link; give each a key "
        "of its own"
    )
