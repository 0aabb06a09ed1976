"""`publish --verify`: lists the store, compares it with the record, and repairs it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.api import keys
from generator.publish import record
from generator.tree.families import object_keys
from tests.support.sites.builds import files, lasting
from tests.support.sites.publishing import PREFIX, PublishedSite, hour, tamper, walk
from tests.support.sites.rows import market_id
from tests.support.sites.searchable_site import found, in_one_layout, words_in

DETAIL = keys.detail(market_id(8))
FIRST_PAGE = keys.first_page("closed/new", 2)


def page(site: PublishedSite, *, is_current: bool = True, list_name: str = "open/new") -> str:
    """A page of the current generation of a list, or of a retired one."""
    built = site.record().built
    retired = next((generation for generation in built.retired if generation.list == list_name), None)
    generation = built.current[list_name] if is_current else retired
    assert generation
    return [*object_keys(list_name, generation)][1]


def remove_detail(site: PublishedSite) -> None:
    site.remove(DETAIL)


def alter_detail(site: PublishedSite) -> None:
    site.put(DETAIL, site.objects()[DETAIL][::-1])


def alter_first_page(site: PublishedSite) -> None:
    site.put(FIRST_PAGE, b"<html>")


def remove_first_pages(site: PublishedSite) -> None:
    for key in site.objects():
        if key.startswith(keys.list_prefix("closed/new") + "/first/"):
            site.remove(key)


def add_strangers(site: PublishedSite) -> None:
    site.put(keys.detail(market_id(4_711)), b"{}")
    site.put("v1/notes.txt", b"hello")
    site.put(keys.page("open/new", "p00000000000000000000", 20, 20), b"{}")


def remove_page(site: PublishedSite) -> None:
    site.remove(page(site))


def alter_page(site: PublishedSite) -> None:
    site.put(page(site), b"{}")


def alter_page_but_not_its_size(site: PublishedSite) -> None:
    key = page(site)
    site.put(key, site.objects()[key][::-1])


def remove_everything(site: PublishedSite) -> None:
    for key in site.objects():
        site.remove(key)


HARMS = [
    remove_detail, alter_detail, alter_first_page, remove_first_pages, add_strangers, remove_page, alter_page,
    alter_page_but_not_its_size,
]  # fmt: skip


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("harm", HARMS)
def test_manual_changes_to_the_store_are_undone(
    published_site: PublishedSite, harm: Callable[[PublishedSite], None]
) -> None:
    good = published_site.objects()
    harm(published_site)
    assert published_site.objects() != good
    result = published_site.done("publish", "--verify")
    assert published_site.objects() == good
    assert "11 markets" in result.stdout
    published_site.check()
    assert int(result.stdout.partition("api: ")[2].split()[0]) <= 100, "only what was damaged"


def test_without_the_option_the_store_is_not_listed(published_site: PublishedSite) -> None:
    published_site.remove(DETAIL)
    assert len(published_site.requests("publish")) == 2
    assert DETAIL not in published_site.objects()


def test_an_emptied_bucket_is_refilled(published_site: PublishedSite) -> None:
    good = published_site.objects()
    remove_everything(published_site)
    published_site.done("publish", "--verify")
    assert published_site.objects() == good
    published_site.check()


def test_an_intact_store_is_left_alone(published_site: PublishedSite) -> None:
    before = published_site.stored()
    requests = published_site.requests("publish", "--verify")
    assert {request.split()[0] for request in requests if "probe" not in request} <= {
        "GetObject", "ListObjectsV2", "DeleteObjects",
    }  # fmt: skip
    assert sum(request.startswith("DeleteObjects") for request in requests) == 1, "the probe's own object"
    assert published_site.stored() == before


@pytest.mark.parametrize("opaque", [False, True])
def test_pages_are_compared_byte_by_byte_where_etags_are_opaque(published_site: PublishedSite, opaque: bool) -> None:  # noqa: FBT001 - a row
    published_site.server.behaviour.opaque_etags = opaque
    alter_page_but_not_its_size(published_site)
    good = published_site.built()
    published_site.done("publish", "--verify")
    assert published_site.objects() == good


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("harm", ["missing", "altered"])
def test_a_damaged_retired_generation_is_deleted_entirely(published_site: PublishedSite, harm: str) -> None:
    published_site.edit(1, question="Else?")
    published_site.done("rebuild", "--as-of", hour(1))
    key = page(published_site, is_current=False)
    generation = key.split("/")[-3]
    others = {retired.generation for retired in published_site.record().built.retired} - {generation}
    if harm == "missing":
        published_site.remove(key)
    else:
        published_site.put(key, published_site.objects()[key] + b" ")
    published_site.done("publish", "--verify")
    assert not [key for key in published_site.objects() if f"/{generation}/" in key]
    assert {retired.generation for retired in published_site.record().built.retired} == others
    published_site.check()


def test_intact_retired_generations_are_kept(published_site: PublishedSite) -> None:
    published_site.edit(1, question="Else?")
    published_site.done("rebuild", "--as-of", hour(1))
    before = published_site.objects()
    retired = published_site.record().built.retired
    assert retired
    published_site.forget_output()
    published_site.done("rebuild", "--as-of", hour(1), "--verify")
    kept = published_site.record().built.retired
    assert [entry for entry in kept if entry.list not in keys.DOWNLOADS] == [
        entry for entry in retired if entry.list not in keys.DOWNLOADS
    ]
    # A new folder knows of no earlier state, so the change feed begins a new session.
    after, expected = lasting(published_site.objects()), lasting(before)
    assert {key: after.get(key) for key in expected} == expected
    published_site.check()


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("harm", ["deleted", "damaged"])
def test_a_lost_record_is_rewritten(published_site: PublishedSite, harm: str) -> None:
    published_site.edit(1, question="Else?")
    published_site.done("rebuild", "--as-of", hour(1))
    content = published_site.stored()["manifest.json"]
    if harm == "deleted":
        published_site.remove("manifest.json")
        assert "no record of this program" in published_site.refused(1, "publish")
    else:
        published_site.put("manifest.json", content[:1_000])
        assert "publish --verify" in published_site.refused(1, "publish")
    published_site.done("publish", "--verify")
    published_site.check()
    assert published_site.record().built.retired == (), "generations missing from the record are not kept"
    assert len(published_site.requests("publish")) == 2


def test_a_record_that_disagrees_with_the_store_is_corrected(published_site: PublishedSite) -> None:
    record = json.loads(published_site.stored()["manifest.json"])
    record["etags"][DETAIL] = '"0"'
    del record["built"]["objects"][keys.SNAPSHOT], record["etags"][keys.SNAPSHOT]
    published_site.put("manifest.json", json.dumps(record).encode())
    published_site.done("publish", "--verify")
    published_site.check()


def test_it_repairs_the_store_and_publishes_a_change_in_one_run(published_site: PublishedSite) -> None:
    for harm in (remove_detail, add_strangers, alter_page):
        harm(published_site)
    published_site.edit(1, question="Else?")
    published_site.edit(9, approval="rejected")
    published_site.done("rebuild", "--as-of", hour(1), "--verify")
    published_site.check()
    assert published_site.traces(9) == []
    assert "Else?" in walk(published_site, "open/new")


def test_a_directory_is_repaired_too(published_site: PublishedSite) -> None:
    published_site.target = "./www"
    published_site.done("publish")
    good = files(Path("www"))
    shutil.rmtree(Path("www", keys.LISTS, "open"))
    Path("www", DETAIL).write_bytes(b"{}")
    Path("www/v1/notes.txt").write_bytes(b"hello")
    published_site.done("publish", "--verify")
    assert files(Path("www")) == good


def test_a_verifying_run_probes_conditional_puts_again(published_site: PublishedSite) -> None:
    published_site.server.behaviour.ignores_conditions = True
    assert "ignores conditional puts" in published_site.refused(1, "publish", "--verify")


# The search index


def parts_of_index(site: PublishedSite) -> dict[str, str]:
    """A key of every kind of object of the search index."""
    root = json.loads(site.objects()[keys.head(keys.SEARCH)])
    names = {"bucket": root["buckets"][0], "vector": root["vectors"]["volume"][0], "table": root["table"]}
    parts = {what: keys.chunk(keys.SEARCH, name) for what, name in names.items()}
    return parts | {"head": keys.head(keys.SEARCH), "root": keys.index(keys.SEARCH, root["generation"])}


@in_one_layout
@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("what", ["head", "root", "bucket", "vector", "table"])
def test_manual_changes_to_the_search_index_are_undone(searched: PublishedSite, what: str) -> None:
    good, key = searched.objects(), parts_of_index(searched)[what]
    for harmful in (None, good[key][::-1]):
        searched.remove(key) if harmful is None else searched.put(key, harmful)
        searched.done("publish", "--verify")
        searched.check()
        assert searched.objects()[key] == good[key]
    assert found(searched, "zyzzyva") == [market_id(1)]


@pytest.mark.campaign(short=0)
@in_one_layout
def test_what_nobody_knows_of_beside_the_search_index_is_deleted(searched: PublishedSite) -> None:
    good = searched.objects()
    searched.put(keys.chunk(keys.SEARCH, "0" * 32), b"[]")
    searched.put(keys.index(keys.SEARCH, "s" + "0" * 19), b"{}")
    searched.done("publish", "--verify")
    assert searched.objects() == good


@pytest.mark.campaign(short=0)
@in_one_layout
def test_a_lost_object_of_a_retired_index_ends_that_index(searched: PublishedSite) -> None:
    (retired,) = [entry for entry in searched.record().built.retired if entry.list == keys.SEARCH]
    searched.remove(keys.index(keys.SEARCH, retired.generation))
    searched.done("publish", "--verify")
    assert keys.SEARCH not in {entry.list for entry in searched.record().built.retired}
    searched.check()


@in_one_layout
def test_verifying_makes_the_record_of_a_searchable_site_anew(searched: PublishedSite) -> None:
    good = searched.record().built
    searched.server.bucket.delete(PREFIX + record.KEY)
    searched.done("publish", "--verify")
    assert searched.record().built.current[keys.SEARCH] == good.current[keys.SEARCH]
    searched.check()


@in_one_layout
@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("field", [3, {"generation": "s", "count": 1, "bytes": 1, "chunks": [{}]}])
def test_a_record_with_a_damaged_search_index_is_refused_and_made_anew(searched: PublishedSite, field: object) -> None:
    content = json.loads(searched.stored()[record.KEY])
    content["built"]["current"][keys.SEARCH] = field
    searched.put(record.KEY, json.dumps(content).encode())
    message = searched.refused(1, "publish")
    assert "damaged or not this program's" in message
    assert "`public-markets publish --verify` checks every object and writes the record anew" in message
    searched.done("publish", "--verify")
    searched.check()


@in_one_layout
def test_a_folder_whose_manifest_has_a_damaged_search_index_is_refused(searched: PublishedSite) -> None:
    content = json.loads(Path("output/manifest.json").read_bytes())
    content["current"][keys.SEARCH]["count"] = "?"
    tamper(Path("output/manifest.json"), json.dumps(content).encode())
    said = "manifest.json: damaged or not this program's (1 error); move the folder away and build again"
    assert said in searched.refused(1, "publish")


@in_one_layout
def test_purging_deletes_the_words_of_an_edited_text(searched: PublishedSite) -> None:
    searched.edit(1, description="Nobody decides.")
    searched.done("rebuild", "--as-of", hour(2))
    assert words_in(searched, b"zyva"), "a retired index has it"
    searched.done("publish", "--purge-retired")
    assert not words_in(searched, b"zyva")
    searched.check()
