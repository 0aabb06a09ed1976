"""Sites in the layout `chunks`, and sites that change their layout: built, published, taken down."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.api import keys
from generator.tree import generations
from tests.support.sites.builds import files
from tests.support.sites.publishing import (
    FIRST,
    LISTS,
    OPEN,
    Original,
    PublishedSite,
    Walk,
    copied,
    hour,
    populate,
    published_once,
    walk,
)
from tests.support.sites.rows import insert_market, market_id
from tests.support.stores.s3.server import S3Server

#: Together with the others, more than two chunks of open markets.
MORE = range(100, 310)
LIST = "open/new"
CHUNKED = {"layout": "chunks"}
pytestmark = pytest.mark.usefixtures("few_limits", "one_processor")


def populate_more(database: sqlite3.Connection) -> None:
    populate(database)
    for number in MORE:
        created = f"2026-01-01 {number // 60:02}:{number % 60:02}:00.000000"
        insert_market(database, number, volume=float(number), created_at=created)


@pytest.fixture(scope="module")
def chunked_original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    with published_once(tmp_path_factory.mktemp("chunked"), populate_more, CHUNKED) as made:
        yield made


@pytest.fixture
def chunked(
    chunked_original: Original, site_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PublishedSite]:
    """A copy of a published site with some more markets, in the chunks layout."""
    with copied(chunked_original, site_server, monkeypatch) as site:
        site.settings |= CHUNKED
        yield site


def immutable(site: PublishedSite) -> set[str]:
    return {key for key in site.objects() if keys.is_immutable(key)}


def chunk_of(site: PublishedSite, number: int, list_name: str) -> str:
    """The chunk of the list's current generation that shows the market."""
    one = site.record().built.current[list_name]
    found = [
        key
        for key in generations.chunk_keys({(list_name, ""): one})
        if market_id(number).encode() in site.objects()[key]
    ]
    assert len(found) == 1
    return found[0]


# ── built and published ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_site_has_one_pointer_for_each_list_and_a_hundredth_of_the_objects(chunked: PublishedSite) -> None:
    chunked.check()
    pointers = {key for key in chunked.objects() if keys.is_first_page(key)}
    assert pointers == {keys.head(name) for name in (*LISTS, keys.DUMPS, keys.CHANGES)}
    one = chunked.record().built.current[LIST]
    assert generations.object_count(LIST, one) == len(one.chunks) + 1 == 3
    assert not [key for key in chunked.objects() if "/first/" in key]


def test_an_unchanged_build_writes_nothing_and_publishes_with_two_requests(chunked: PublishedSite) -> None:
    before = files(Path("output"))
    assert ": 0 files written" in chunked.done("build", "--as-of", FIRST).stdout
    assert files(Path("output")) == before
    assert len(chunked.requests("publish")) == 2


def test_an_arrival_writes_and_uploads_one_chunk_of_each_list_that_grows(chunked: PublishedSite) -> None:
    before = immutable(chunked)
    insert_market(chunked.database, 2_000, created_at="2026-01-30 00:00:00.000000")
    result = chunked.done("build", "--as-of", hour(2))
    requests = chunked.requests("publish")
    new = {key for key in immutable(chunked) - before if key.startswith(f"{keys.list_prefix(LIST)}/")}
    assert len(new) == 2, "an index and the newest chunk"
    assert {f"PutObject {key}" for key in new} <= {*requests}
    puts = [request for request in requests if request.startswith("PutObject v1/")]
    assert len(puts) == len({*puts}), "no object twice"
    assert f": {len(puts)} files written" in result.stdout


@pytest.mark.campaign(short=0)
def test_chunks_stay_as_long_as_a_generation_that_names_them_is_kept(chunked: PublishedSite) -> None:
    began, before = Walk(chunked, LIST, 20).begin(), walk(chunked, LIST)
    chunked.edit(200, question="Edited?")
    old = chunk_of(chunked, 200, LIST)
    chunked.done("rebuild", "--as-of", hour(2))
    assert old in chunked.objects()
    assert began.finish() == before
    chunked.done("rebuild", "--as-of", hour(9))
    assert old not in chunked.objects()
    assert not Path("output", old).exists()
    chunked.check()


# ── moved from one layout to the other ────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_walks_that_are_older_than_a_move_end_exactly(chunked: PublishedSite) -> None:
    chunked.settings["layout"] = "pages"
    in_chunks = {name: (Walk(chunked, name, 20).begin(), walk(chunked, name)) for name in LISTS}
    chunked.edit(200, question="Edited?")
    chunked.done("rebuild", "--as-of", hour(2))
    in_pages = {name: (Walk(chunked, name, 20).begin(), walk(chunked, name)) for name in LISTS}
    chunked.edit(201, question="Edited?")
    chunked.done("rebuild", "--as-of", hour(3), layout="chunks")
    for began, whole in [*in_chunks.values(), *in_pages.values()]:
        assert began.finish() == whole
    chunked.settings["layout"] = "chunks"
    chunked.check()


@pytest.mark.campaign(short=0)
def test_after_a_move_nothing_is_left_of_the_old_layout_in_the_end(chunked: PublishedSite) -> None:
    chunked.done("rebuild", "--as-of", hour(2), layout="pages")
    of_lists = [key for key in chunked.objects() if key.startswith(f"{keys.LISTS}/")]
    assert not [key for key in of_lists if key.endswith(keys.HEAD)]
    assert [key for key in of_lists if key.endswith(keys.INDEX)]
    chunked.done("rebuild", "--as-of", hour(9), layout="pages")
    of_lists = [key for key in chunked.objects() if key.startswith(f"{keys.LISTS}/")]
    left = [key for key in of_lists if f"/{keys.CHUNKS}/" in key or key.endswith((keys.INDEX, keys.HEAD))]
    assert left == []
    assert not [*Path("output").rglob(keys.CHUNKS)]
    chunked.check()


@pytest.mark.campaign(short=0)
def test_a_takedown_between_two_layouts_reaches_both(chunked: PublishedSite) -> None:
    chunked.done("rebuild", "--as-of", hour(2), layout="pages")
    assert {key.split("/")[-1] for key in chunked.traces(200, output=False)} >= {"100.json"}
    chunked.done("takedown", market_id(200), layout="pages")
    assert chunked.traces(200) == []
    assert len(walk(chunked, LIST)) == len(OPEN) + len(MORE) - 1
