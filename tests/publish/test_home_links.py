"""Which published markets an address of the operator's site means, or a key of it."""

import pytest

from generator.publish import home_links
from generator.tree.manifest import Manifest
from tests.support.sites.builds import NOW
from tests.support.sites.rows import market_id

ONE, TWO = market_id(1), market_id(2)


def built(market_url: str | None, **names: object) -> Manifest:
    settings = {} if market_url is None else {"market_url": market_url}
    state = {"complete": True, "version": "1", "current": {}, "retired": (), "objects": {}}
    markets = {ONE: ("open",), TWO: ("open",)}
    return Manifest.model_validate(
        {**state, "as_of": NOW, "variant": "core", "layout": "pages", "settings": settings, "markets": markets, **names}
    )


KEYS = {"site_keys": {ONE: "a/b ü", TWO: "two"}}
SLUGS = {"slugs": {ONE: ("Will-It-Rain",), TWO: ("two", "formerly-two")}}


@pytest.mark.parametrize(
    ("address", "ids"),
    [
        ("https://example.org/m/a%2Fb%20%C3%BC", (ONE,)),
        ("http://EXAMPLE.org/m/a%2Fb%20%C3%BC/?utm_source=feed#top", (ONE,)),
        ("https://example.org/m/two", (TWO,)),
        ("https://example.org/m/three", ()),
        ("https://example.org/n/two", ()),
        ("two", ()),
    ],
)
def test_an_address_with_a_key_means_the_market_with_that_key(address: str, ids: tuple[str, ...]) -> None:
    assert home_links.ids_at(built("https://example.org/m/{key}", **KEYS), address) == ids


def test_an_address_with_a_slug_means_the_market_with_that_slug_in_any_case_or_an_earlier_one() -> None:
    state = built("https://example.org/{slug}/", **SLUGS)
    assert home_links.ids_at(state, "https://example.org/will-it-rain") == (ONE,)
    assert home_links.ids_at(state, "https://example.org/formerly-two/") == (TWO,)
    assert home_links.ids_at(state, "https://example.org/nobody/") == ()


def test_an_address_with_an_id_means_that_market_published_or_not() -> None:
    state = built("https://example.org/{id}")
    assert home_links.ids_at(state, f"https://example.org/{ONE.upper()}") == (ONE,)
    assert home_links.ids_at(state, f"https://example.org/{market_id(9)}") == (market_id(9),)
    assert home_links.ids_at(state, "https://example.org/will-it-rain") == ()


def test_an_address_by_the_settings_of_today_is_understood_beside_those_of_what_is_published() -> None:
    state = built("https://old.example.org/{key}", **KEYS)
    for address in ("https://old.example.org/two", "https://example.org/two"):
        assert home_links.ids_at(state, address, "https://example.org/{key}") == (TWO,)
    assert home_links.ids_at(built(None, **KEYS), "https://example.org/two") == ()
    assert home_links.ids_at(built(None, **KEYS), "https://example.org/two", "https://example.org/{key}") == (TWO,)


def test_a_key_is_exact_and_a_state_without_keys_knows_none() -> None:
    assert home_links.ids_of_key(built(None, **KEYS), "two") == (TWO,)
    assert home_links.ids_of_key(built(None, **KEYS), "Two") == ()
    assert home_links.ids_of_key(built(None), "two") == ()
    passed_on = built(None, site_keys={ONE: "two", TWO: "two"})
    assert home_links.ids_of_key(passed_on, "two") == (ONE, TWO)
