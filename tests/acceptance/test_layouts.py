"""Sites in the layout `chunks`, and sites that change their layout: built, published, taken down."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from generator.api import keys
from generator.tree import chunks, families
from generator.tree.manifest import Current, Manifest
from tests.support.faults import GoneError
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
    tamper,
    walk,
)
from tests.support.sites.rows import insert_market, market_id
from tests.support.stores.s3.server import S3Server

#: Together with the others, more than two chunks of open markets.
MORE = range(100, 310)
LIST = "open/new"
CHUNKED = {"layout": "chunks"}


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


def manifest() -> Manifest:
    return Manifest.model_validate_json(Path("output/manifest.json").read_bytes())


def immutable(site: PublishedSite) -> set[str]:
    return {key for key in site.objects() if keys.is_immutable(key)}


def chunk_of(site: PublishedSite, number: int, list_name: str) -> str:
    """The chunk of the list's current generation that shows the market."""
    one = site.record().built.current[list_name]
    found = [
        key for key in families.chunk_keys({(list_name, ""): one}) if market_id(number).encode() in site.objects()[key]
    ]
    assert len(found) == 1
    return found[0]


# ── built and published ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_every_walk_is_the_list_in_both_layouts(chunked: PublishedSite) -> None:
    shown = {(name, limit): walk(chunked, name, limit) for name in LISTS for limit in (7, 100)}
    assert len(shown[LIST, 7]) == len(OPEN) + len(MORE)
    chunked.settings["layout"] = "pages"
    chunked.done("rebuild", "--as-of", hour(1))
    assert {(name, limit): walk(chunked, name, limit) for name in LISTS for limit in (7, 100)} == shown


@pytest.mark.campaign(short=0)
def test_a_site_has_one_pointer_for_each_list_and_a_hundredth_of_the_objects(chunked: PublishedSite) -> None:
    chunked.check()
    pointers = {key for key in chunked.objects() if keys.is_first_page(key)}
    assert pointers == {keys.head(name) for name in (*LISTS, keys.DUMPS, keys.CHANGES)}
    one = chunked.record().built.current[LIST]
    assert families.object_count(LIST, one) == len(one.chunks) + 1 == 3
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


@pytest.mark.campaign(short=0)
def test_what_was_is_found_again_without_an_upload(chunked: PublishedSite) -> None:
    chunked.edit(200, question="Edited?")
    chunked.done("rebuild", "--as-of", hour(2))
    chunked.edit(200, question="Question 200?")
    requests = chunked.requests("rebuild", "--as-of", hour(3))
    assert not [
        put for put in requests if put.startswith(f"PutObject {keys.LISTS}/") and keys.is_immutable(put.split()[1])
    ]
    chunked.check()


# ── harmed ────────────────────────────────────────────────────────────────────────────────────────────────────────


def shared_chunk(site: PublishedSite) -> str:
    """A chunk shared by the current and a retired generation of a list."""
    site.edit(300, question="Edited?")
    site.done("rebuild", "--as-of", hour(2))
    built = site.record().built
    retired = next(generation for generation in built.retired if generation.list == LIST)
    return keys.chunk(LIST, next(chunk for chunk in built.current[LIST].chunks if chunk in retired.chunks))


def index_of(site: PublishedSite) -> str:
    return keys.index(LIST, site.record().built.current[LIST].generation)


def head_of(_site: PublishedSite) -> str:
    return keys.head(LIST)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("harm", ["removed", "altered", "turned round"])
@pytest.mark.parametrize("chosen", [shared_chunk, index_of, head_of])
def test_what_hands_did_to_the_store_is_undone(
    chunked: PublishedSite, chosen: Callable[[PublishedSite], str], harm: str
) -> None:
    key = chosen(chunked)
    good = chunked.objects()[key]
    if harm == "removed":
        chunked.remove(key)
    else:
        chunked.put(key, b"[]" if harm == "altered" else good[::-1])
    chunked.done("publish", "--verify")
    assert chunked.objects()[key] == good
    chunked.check()


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("chosen", [shared_chunk, index_of, head_of])
def test_what_was_deleted_from_the_folder_is_built_again(
    chunked: PublishedSite, chosen: Callable[[PublishedSite], str]
) -> None:
    key = chosen(chunked)
    good = Path("output", key).read_bytes()
    Path("output", key).unlink()
    chunked.done("build", "--as-of", hour(3))
    assert Path("output", key).read_bytes() == good


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("chosen", [index_of, lambda site: chunk_of(site, 200, LIST)])
def test_what_was_altered_in_the_folder_is_not_uploaded(
    chunked: PublishedSite, chosen: Callable[[PublishedSite], str]
) -> None:
    chunked.edit(200, question="Edited?")
    for key in chunked.stored():
        chunked.remove(key)
    chunked.done("rebuild", "--as-of", hour(2))
    key = chosen(chunked)
    for stored in chunked.stored():
        chunked.remove(stored)
    tamper(Path("output", key), Path("output", key).read_bytes()[::-1])
    assert "altered since it was built" in chunked.run("publish").stderr


# ── taken down ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_a_takedown_reaches_heads_chunks_and_what_is_retired(chunked: PublishedSite) -> None:
    chunked.edit(200, question="Question 200, edited?")
    chunked.done("rebuild", "--as-of", hour(2))
    began = Walk(chunked, LIST, 20).begin()
    assert chunked.traces(200)
    chunked.done("takedown", market_id(200))
    assert chunked.traces(200) == []
    chunked.check()
    assert len(walk(chunked, LIST)) == len(OPEN) + len(MORE) - 1
    with pytest.raises(GoneError):
        began.finish()


@pytest.mark.campaign(short=0)
def test_a_takedown_from_the_store_alone_gives_what_a_build_without_the_market_gives(chunked: PublishedSite) -> None:
    chunked.forget_output()
    chunked.done("takedown", market_id(200))
    assert chunked.traces(200, output=False) == []
    taken = {key: body for key, body in chunked.objects().items() if key.startswith(keys.LISTS)}
    chunked.edit(200, approval="rejected")
    chunked.done("build", "--as-of", FIRST)
    assert {key: body for key, body in chunked.built().items() if key.startswith(keys.LISTS)} == taken


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("harm", ["missing", "damaged"])
@pytest.mark.parametrize("chosen", [lambda site: chunk_of(site, 200, LIST), index_of, head_of])
def test_a_list_that_cannot_be_read_is_made_again_by_a_takedown(
    chunked: PublishedSite, chosen: Callable[[PublishedSite], str], harm: str
) -> None:
    key = chosen(chunked)
    if harm == "missing":
        chunked.remove(key)
    else:
        chunked.put(key, b'{"items":[{')
    chunked.done("takedown", market_id(200))
    assert chunked.traces(200) == []
    assert market_id(200) not in walk(chunked, LIST)
    chunked.done("rebuild", "--verify", "--as-of", hour(2))
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


def test_a_manifest_names_chunks_where_there_are_any(chunked: PublishedSite) -> None:
    one = manifest().current[LIST]
    assert one.generation.startswith(chunks.LETTER)
    content = json.loads(Path("output/manifest.json").read_bytes())
    assert content["current"][LIST]["chunks"] == [*one.chunks]
    chunked.done("build", "--as-of", hour(2), layout="pages")
    assert "chunks" not in json.loads(Path("output/manifest.json").read_bytes())["current"][LIST]
    assert Current.model_validate(content["current"][LIST]) == one
