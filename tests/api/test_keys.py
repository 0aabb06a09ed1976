"""Keys: the grammar of everything under v1/, and the headers that go with each."""

import re
from datetime import timedelta

import pytest

from generator.api import keys
from generator.api.downloads import QUESTIONS_FOLDER
from generator.api.file_names import is_file
from generator.config import settings
from generator.site.families import rank
from generator.tree.pages import LIMITS
from tests.support.sites.rows import market_id

GENERATION = "p0123456789abcdef012"
LIST = "open/popular"


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


def test_caches_keep_what_a_build_overwrites_shortly_and_pages_long() -> None:
    for key, control in (
        (keys.BUILD, "public, max-age=10, s-maxage=30, stale-while-revalidate=60"),
        (keys.first_page(LIST, 20), "public, max-age=10, s-maxage=30, stale-while-revalidate=60"),
        (keys.page(LIST, GENERATION, 20, 20), "public, max-age=60, s-maxage=31536000, immutable"),
        (keys.error(503), "public, max-age=0, s-maxage=86400"),
    ):
        assert keys.headers(key) == {"Content-Type": "application/json; charset=utf-8", "Cache-Control": control}
        assert keys.is_immutable(key) == ("immutable" in control)


def test_only_the_folder_of_a_generation_is_one() -> None:
    prefix, of_list = keys.generation_prefix(LIST, GENERATION), keys.list_prefix(LIST)
    others = (of_list, f"{of_list}/first", f"{prefix}/20-0", keys.LISTS, f"elsewhere/{prefix}", f"{keys.DETAILS}/ab")
    assert [folder for folder in (prefix, *others) if keys.is_generation(folder)] == [prefix]


def test_a_mutable_object_has_its_place_in_publication_order() -> None:
    ranked = [
        {keys.detail(market_id(1)), keys.detail(market_id(99))},
        {keys.SNAPSHOT, keys.OPENAPI, keys.error(400), keys.error(429)},
        {keys.head(keys.DUMPS)},
        {keys.first_page(LIST, 1), keys.first_page("archive/ended", 100), keys.head(keys.CHANGES)},
        {keys.BUILD},
    ]
    assert [{rank(key) for key in group} for group in ranked] == [{0}, {1}, {2}, {3}, {4}]


def test_lists_of_questions_lie_below_their_own_folder_and_have_the_headers_of_lists() -> None:
    name = keys.question_list_name("open", "popular")
    assert name == "questions/open/popular"
    assert keys.question_list_name("all", "new", "politics") == "questions/all.politics/new"
    prefix = f"v1/public/questions/lists/open/popular/{GENERATION}"
    assert keys.generation_prefix(name, GENERATION) == prefix
    assert keys.is_generation(prefix)
    assert not keys.is_generation(f"{prefix}/20-0")
    immutable = (keys.page(name, GENERATION, 20, 20), keys.index(name, GENERATION), keys.chunk(name, "ab" * 16))
    mutable = (keys.first_page(name, 20), keys.head(name))
    assert [keys.is_immutable(key) for key in (*immutable, *mutable)] == [True] * 3 + [False] * 2
    assert [keys.is_first_page(key) for key in (*immutable, *mutable)] == [False] * 3 + [True] * 2
    assert {keys.list_of(key) for key in (*immutable, *mutable, prefix)} == {name}
    assert {keys.list_of(keys.first_page(LIST, 20)), keys.list_of(keys.index(LIST, GENERATION))} == {LIST}
    others = (keys.BUILD, keys.SNAPSHOT, keys.LISTS, keys.QUESTION_LISTS, keys.question(market_id(1)), "", keys.STATES)
    assert {keys.list_of(key) for key in (*others, keys.head(keys.DUMPS))} == {None}


def test_a_question_has_keys_by_slug_and_by_id_that_are_no_markets() -> None:
    of = market_id(7)
    by_slug, by_id = keys.questions(of, "Who-Wins")
    assert (by_slug, by_id) == (keys.question_by_slug("who-wins"), f"v1/public/questions/detail/{of[:2]}/{of}.json")
    assert keys.questions(of, None) == (by_id,)
    assert (keys.question_id(by_id), keys.question_id(by_slug), keys.market_id(by_id)) == (of, None, None)
    assert keys.question_id(keys.detail(of)) is None
    assert [keys.is_question(key) for key in (by_slug, by_id, *keys.details(of, "who-wins"))] == [
        True,
        True,
        False,
        False,
    ]
    assert not any(map(keys.is_detail, (by_slug, by_id)))
    assert not any(map(keys.is_immutable, (by_slug, by_id)))
    definitions = keys.chunk(keys.DUMPS, f"{QUESTIONS_FOLDER}{'ab' * 16}.ndjson.gz")
    assert definitions == f"v1/dumps/questions/{'ab' * 16}.ndjson.gz"
    assert is_file(definitions)
    assert keys.is_download(definitions)


def test_cursor_lifetime_cannot_be_shorter_than_caches_keep_a_first_page() -> None:
    directives = {name: int(value) for name, value in re.findall(r"([a-z-]+)=(\d+)", keys.MUTABLE)}
    stale = directives["stale-while-revalidate"]
    longest = timedelta(seconds=directives["s-maxage"] + stale + directives["max-age"] + stale)
    assert longest == settings.FIRST_PAGE_CACHED
    settings.Cursor(lifetime=longest)
    with pytest.raises(ValueError, match=rf"at least {longest.total_seconds():.0f} s: caches keep a first page"):
        settings.Cursor(lifetime=longest - timedelta(seconds=1))
