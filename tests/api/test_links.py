"""Links home: from a market to the address of its page, and back."""

from typing import Final
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api.links import LONGEST_KEY, NO_LINKS, Links, MarketReference, is_site_key, reference, uri_template
from tests.support.sites.rows import market_id

PLACES: Final = (
    "https://example.org/markets/{}",
    "https://example.org/{}/",
    "https://example.org:8443/m-{}-x/page",
    "https://example.org/m?lang=en&id={}&view=1",
    "https://example.org/m/?{}",
    "https://example.org/app#/market/{}",
    "http://127.0.0.1:8000/{}.html",
    "http://[::1]/{}",
)

keys: Final = st.text(min_size=1, max_size=LONGEST_KEY).filter(is_site_key)
slugs: Final = st.from_regex(r"[A-Za-z0-9_-]{1,255}", fullmatch=True)


def at(place: str, name: str) -> str:
    return place.format(f"{{{name}}}")


@given(key=keys, place=st.sampled_from(PLACES))
def test_the_address_of_a_market_means_the_market(key: str, place: str) -> None:
    template = at(place, "key")
    address = Links.to(template, {market_id(1): key}).of(market_id(1), None)
    assert address is not None
    assert reference(template, address) == MarketReference("key", key)
    assert set(address) <= set(place) | set("%-._~") | {*map(chr, range(128))} - set(" \"<>\\^`{|}'")
    assert urlsplit(address).netloc == urlsplit(place).netloc
    assert address.isprintable()


@given(slug=slugs, number=st.integers(1, 99), place=st.sampled_from(PLACES))
def test_so_does_the_address_with_a_slug_or_an_id(slug: str, number: int, place: str) -> None:
    links = Links.to(at(place, "slug"))
    assert reference(at(place, "slug"), str(links.of(market_id(number), slug))) == MarketReference("slug", slug)
    links = Links.to(at(place, "id"))
    address = str(links.of(market_id(number), slug))
    assert reference(at(place, "id"), address) == MarketReference("id", market_id(number))
    assert reference(at(place, "id"), f" {address}\n") == MarketReference("id", market_id(number))


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/markets/5",
        "https://EXAMPLE.org/markets/5",
        "http://example.org/markets/5",
        "HTTPS://example.org:443/markets/5/",
        "https://example.org/markets/%35/?a#b",
    ],
)
def test_browsers_write_an_address_in_more_than_one_way(address: str) -> None:
    assert reference("https://example.org/markets/{key}", address) == MarketReference("key", "5")
    assert reference("https://Example.org:443/markets/{key}/", address) == MarketReference("key", "5")


@pytest.mark.parametrize(
    "address",
    [
        "", "5", "https://example.org/markets/", "https://example.org/markets/5/more",
        "https://example.org/Markets/5", "https://example.org:8443/markets/5",
        "https://example.org.evil.example/markets/5", "https://user@example.org/markets/5",
        "ftp://example.org/markets/5", "https://exampleXorg/markets/5", "https://example.org/markets/%ff",
        "https://example.org/markets/%00", "https://example.org/markets/..", "https://example.org/markets/%0A",
        "https://example.org/markets/\udcff", f"https://example.org/markets/{'5' * 201}",
        f"https://example.org/markets/{'5' * 100_000}",
    ],
)  # fmt: skip
def test_any_other_address_means_no_market(address: str) -> None:
    assert reference("https://example.org/markets/{key}", address) is None
    assert reference("https://example.org/{id}", address) is None
    assert reference(None, address) is None


def test_a_market_without_what_its_address_is_made_of_has_none() -> None:
    assert NO_LINKS.of(market_id(1), "slug") is None
    assert Links.to("https://example.org/{slug}").of(market_id(1), None) is None
    links = Links.to("https://example.org/{key}", {market_id(1): "a b/ü"})
    assert links.of(market_id(1), None) == "https://example.org/a%20b%2F%C3%BC"
    assert links.of(market_id(2), "slug") is None


def test_an_address_with_the_question_is_that_of_a_market_in_one() -> None:
    links = Links.to("https://example.org/{question}/{id}", questions={market_id(1): "q"})
    assert links.of(market_id(1), None) == f"https://example.org/q/{market_id(1)}"
    assert links.of(market_id(2), None) is None
    moved = Links.to("https://example.org/{question}/{id}", questions={market_id(1): "r"})
    assert links.digest([market_id(1)]) != moved.digest([market_id(1)])
    assert links.digest([market_id(2)]) == moved.digest([market_id(2)])
    assert uri_template("https://example.org/{question}/{id}") is None


def test_a_key_is_a_short_text_without_control_characters() -> None:
    assert all(map(is_site_key, ("5", "a b", "x" * 200, "...", "a/b?c#d", "選挙")))
    none = ("", " \u2003", ".", "..", "x" * 201, "a\tb", "a\x00", "\x7f", "\x85x", "\ud800")
    assert not any(map(is_site_key, none))
