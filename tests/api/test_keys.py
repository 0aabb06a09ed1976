"""Keys: the grammar of everything under v1/, and the headers that go with each."""

import re
from datetime import timedelta
from itertools import product

import pytest

from generator.api import keys
from generator.api.contract import SORTS, STATUS_FILTERS
from generator.config import settings
from generator.site.families import rank
from generator.tree.pages import LIMITS
from tests.support.sites.rows import market_id

GENERATION = "p0123456789abcdef012"
LIST = "open/popular"

MUTABLE_KEYS = {
    keys.BUILD: "v1/build.json",
    keys.error(404): "v1/errors/404.json",
    keys.SNAPSHOT: "v1/public/markets/snapshot.json",
    keys.detail("ab345678-0000-4000-8000-000000000000"): (
        "v1/public/markets/detail/ab/ab345678-0000-4000-8000-000000000000.json"
    ),
    keys.first_page(LIST, 20): "v1/public/markets/lists/open/popular/first/20.json",
    keys.first_page("open.rain/popular", 20): "v1/public/markets/lists/open.rain/popular/first/20.json",
    keys.detail_by_slug("will-it-rain"): "v1/public/markets/slug/e0/e02c3106487948d07207ab0c727c78b1.json",
}


def test_every_mutable_object_has_the_key_that_the_routers_know() -> None:
    assert list(MUTABLE_KEYS) == list(MUTABLE_KEYS.values())


def test_a_page_lies_in_its_generation_a_hundred_to_a_folder() -> None:
    prefix = f"v1/public/markets/lists/open/popular/{GENERATION}"
    assert keys.page(LIST, GENERATION, 20, 20) == f"{prefix}/20-0/20.json"
    assert keys.page(LIST, GENERATION, 20, 1980) == f"{prefix}/20-0/1980.json"
    assert keys.page(LIST, GENERATION, 20, 2000) == f"{prefix}/20-1/2000.json"
    assert keys.page(LIST, GENERATION, 1, 99) == f"{prefix}/1-0/99.json"
    assert keys.page(LIST, GENERATION, 100, 10_000) == f"{prefix}/100-1/10000.json"
    assert keys.generation_prefix(LIST, GENERATION) == prefix


def test_no_folder_of_a_generation_holds_more_than_a_hundred_pages() -> None:
    for limit in LIMITS:
        folders = [keys.page_folder(limit, position) for position in range(limit, 30_000, limit)]
        assert max(folders.count(folder) for folder in {*folders}) <= 100


def test_no_two_pages_share_a_key() -> None:
    pages = [keys.page(LIST, GENERATION, limit, at) for limit in LIMITS for at in range(limit, 3_000, limit)]
    assert len({*pages}) == len(pages) > 15_000


def test_there_are_thirty_lists_with_prefixes_of_their_own() -> None:
    names = {keys.list_name(status, sort) for status, sort in product(STATUS_FILTERS, SORTS)}
    assert len(names) == 30
    assert {keys.list_prefix(name) for name in names} == {f"v1/public/markets/lists/{name}" for name in names}


@pytest.mark.parametrize("key", [key for key in MUTABLE_KEYS if key != keys.error(404)])
def test_what_a_build_overwrites_is_kept_shortly(key: str) -> None:
    assert not keys.is_immutable(key)
    assert keys.headers(key) == {
        "Content-Type": "application/json; charset=utf-8",
        "Cache-Control": "public, max-age=10, s-maxage=30, stale-while-revalidate=60",
    }


def test_error_bodies_outlive_a_failure_of_the_store_in_the_cdn_and_no_request_in_browsers() -> None:
    assert keys.headers(keys.error(503))["Cache-Control"] == "public, max-age=0, s-maxage=86400"


def test_a_page_is_kept_long_by_the_cdn_and_shortly_by_browsers() -> None:
    key = keys.page(LIST, GENERATION, 20, 20)
    assert keys.is_immutable(key)
    assert keys.headers(key) == {
        "Content-Type": "application/json; charset=utf-8",
        "Cache-Control": "public, max-age=60, s-maxage=31536000, immutable",
    }


def test_only_the_folder_of_a_generation_is_one() -> None:
    prefix = keys.generation_prefix(LIST, GENERATION)
    assert keys.is_generation(prefix)
    assert not keys.is_generation(keys.list_prefix(LIST))
    assert not keys.is_generation(f"{keys.list_prefix(LIST)}/first")
    assert not keys.is_generation(f"{prefix}/20-0")
    assert not keys.is_generation(keys.LISTS)
    assert not keys.is_generation(f"elsewhere/{prefix}")
    assert not keys.is_generation("v1/public/markets/detail/ab")


def test_the_lists_of_a_category_have_its_slug_in_their_name() -> None:
    name = keys.list_name("open", "new", "rain")
    assert name == "open.rain/new"
    assert keys.is_immutable(keys.page(name, GENERATION, 20, 20))
    assert keys.is_generation(keys.generation_prefix(name, GENERATION))
    assert not keys.is_generation(f"{keys.list_prefix(name)}/{keys.FIRST}")


def test_a_slug_has_one_key_in_whatever_case_and_of_whatever_length() -> None:
    assert keys.detail_by_slug("Will-It-Rain") == keys.detail_by_slug("will-it-rain") != keys.detail_by_slug("will-it")
    assert len(keys.detail_by_slug("s" * 255)) == len(keys.detail_by_slug("s"))
    assert keys.details(market_id(1), None) == (keys.detail(market_id(1)),)
    assert keys.details(market_id(1), "a") == (keys.detail(market_id(1)), keys.detail_by_slug("a"))


def test_a_mutable_object_has_its_place_in_publication_order() -> None:
    ranked = [
        {keys.detail(market_id(1)), keys.detail(market_id(99))},
        {keys.SNAPSHOT, keys.OPENAPI, keys.error(400), keys.error(429)},
        {keys.head(keys.DUMPS)},
        {keys.first_page(LIST, 1), keys.first_page("archive/ended", 100), keys.head(keys.CHANGES)},
        {keys.BUILD},
    ]
    assert [{rank(key) for key in group} for group in ranked] == [{0}, {1}, {2}, {3}, {4}]


def test_a_walk_begins_at_first_pages_only() -> None:
    assert all(keys.is_first_page(keys.first_page(LIST, limit)) for limit in LIMITS)
    others = {key for key in MUTABLE_KEYS if not key.endswith(f"/{keys.FIRST}/20.json")} | {
        keys.page(LIST, GENERATION, 20, 20)
    }
    assert not [key for key in others if keys.is_first_page(key)]
    assert not keys.is_first_page("elsewhere/first/20.json")


def test_cursor_lifetime_cannot_be_shorter_than_caches_keep_a_first_page() -> None:
    directives = {name: int(value) for name, value in re.findall(r"([a-z-]+)=(\d+)", keys.MUTABLE)}
    stale = directives["stale-while-revalidate"]
    longest = timedelta(seconds=directives["s-maxage"] + stale + directives["max-age"] + stale)
    assert longest == settings.FIRST_PAGE_CACHED
    settings.Cursor(lifetime=longest)
    with pytest.raises(ValueError, match=rf"at least {longest.total_seconds():.0f} s: caches keep a first page"):
        settings.Cursor(lifetime=longest - timedelta(seconds=1))
