"""`publish --verify`: lists the store, compares it with the record, and repairs it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.api import keys
from generator.publish import record
from generator.tree.families import object_keys
from tests.support.builds import files, lasting
from tests.support.publishing import PREFIX, Site, hour, tamper, walk
from tests.support.rows import market_id
from tests.support.searchable_site import found, in_one_layout, words_in

DETAIL = keys.detail(market_id(8))
FIRST_PAGE = keys.first_page("closed/new", 2)


def page(site: Site, *, is_current: bool = True, list_name: str = "open/new") -> str:
    """A page of the current generation of a list, or of a retired one."""
    built = site.record().built
    retired = next((generation for generation in built.retired if generation.list == list_name), None)
    generation = built.current[list_name] if is_current else retired
    assert generation
    return [*object_keys(list_name, generation)][1]


def remove_detail(site: Site) -> None:
    site.remove(DETAIL)


def alter_detail(site: Site) -> None:
    site.put(DETAIL, site.objects()[DETAIL][::-1])


def alter_first_page(site: Site) -> None:
    site.put(FIRST_PAGE, b"<html>")


def remove_first_pages(site: Site) -> None:
    for key in site.objects():
        if key.startswith(keys.list_prefix("closed/new") + "/first/"):
            site.remove(key)


def add_strangers(site: Site) -> None:
    site.put(keys.detail(market_id(4_711)), b"{}")
    site.put("v1/notes.txt", b"hello")
    site.put(keys.page("open/new", "p00000000000000000000", 20, 20), b"{}")


def remove_page(site: Site) -> None:
    site.remove(page(site))


def alter_page(site: Site) -> None:
    site.put(page(site), b"{}")


def alter_page_but_not_its_size(site: Site) -> None:
    key = page(site)
    site.put(key, site.objects()[key][::-1])


def remove_everything(site: Site) -> None:
    for key in site.objects():
        site.remove(key)


HARMS = [
    remove_detail, alter_detail, alter_first_page, remove_first_pages, add_strangers, remove_page, alter_page,
    alter_page_but_not_its_size,
]  # fmt: skip


@pytest.mark.campaign(short=4)
@pytest.mark.parametrize("harm", HARMS)
def test_manual_changes_to_the_store_are_undone(site: Site, harm: Callable[[Site], None]) -> None:
    good = site.objects()
    harm(site)
    assert site.objects() != good
    result = site.done("publish", "--verify")
    assert site.objects() == good
    assert "11 markets" in result.stdout
    site.check()
    assert int(result.stdout.partition("api: ")[2].split()[0]) <= 100, "only what was damaged"


def test_without_the_option_the_store_is_not_listed(site: Site) -> None:
    site.remove(DETAIL)
    assert len(site.requests("publish")) == 2
    assert DETAIL not in site.objects()


def test_an_emptied_bucket_is_refilled(site: Site) -> None:
    good = site.objects()
    remove_everything(site)
    site.done("publish", "--verify")
    assert site.objects() == good
    site.check()


def test_an_intact_store_is_left_alone(site: Site) -> None:
    before = site.stored()
    requests = site.requests("publish", "--verify")
    assert {request.split()[0] for request in requests if "probe" not in request} <= {
        "GetObject", "ListObjectsV2", "DeleteObjects",
    }  # fmt: skip
    assert sum(request.startswith("DeleteObjects") for request in requests) == 1, "the probe's own object"
    assert site.stored() == before


@pytest.mark.parametrize("opaque", [False, True])
def test_pages_are_compared_byte_by_byte_where_etags_are_opaque(site: Site, opaque: bool) -> None:  # noqa: FBT001 - a row
    site.server.behaviour.opaque_etags = opaque
    alter_page_but_not_its_size(site)
    good = site.built()
    site.done("publish", "--verify")
    assert site.objects() == good


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("harm", ["missing", "altered"])
def test_a_damaged_retired_generation_is_deleted_entirely(site: Site, harm: str) -> None:
    site.edit(1, question="Else?")
    site.done("rebuild", "--as-of", hour(1))
    key = page(site, is_current=False)
    generation = key.split("/")[-3]
    others = {retired.generation for retired in site.record().built.retired} - {generation}
    if harm == "missing":
        site.remove(key)
    else:
        site.put(key, site.objects()[key] + b" ")
    site.done("publish", "--verify")
    assert not [key for key in site.objects() if f"/{generation}/" in key]
    assert {retired.generation for retired in site.record().built.retired} == others
    site.check()


def test_intact_retired_generations_are_kept(site: Site) -> None:
    site.edit(1, question="Else?")
    site.done("rebuild", "--as-of", hour(1))
    before = site.objects()
    retired = site.record().built.retired
    assert retired
    site.forget_output()
    site.done("rebuild", "--as-of", hour(1), "--verify")
    kept = site.record().built.retired
    assert [entry for entry in kept if entry.list not in keys.DOWNLOADS] == [
        entry for entry in retired if entry.list not in keys.DOWNLOADS
    ]
    # A new folder knows of no earlier state, so the change feed begins a new session.
    after, expected = lasting(site.objects()), lasting(before)
    assert {key: after.get(key) for key in expected} == expected
    site.check()


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("harm", ["deleted", "damaged"])
def test_a_lost_record_is_rewritten(site: Site, harm: str) -> None:
    site.edit(1, question="Else?")
    site.done("rebuild", "--as-of", hour(1))
    content = site.stored()["manifest.json"]
    if harm == "deleted":
        site.remove("manifest.json")
        assert "no record of this program" in site.refused(1, "publish")
    else:
        site.put("manifest.json", content[:1_000])
        assert "publish --verify" in site.refused(1, "publish")
    site.done("publish", "--verify")
    site.check()
    assert site.record().built.retired == (), "generations missing from the record are not kept"
    assert len(site.requests("publish")) == 2


def test_a_record_that_disagrees_with_the_store_is_corrected(site: Site) -> None:
    record = json.loads(site.stored()["manifest.json"])
    record["etags"][DETAIL] = '"0"'
    del record["built"]["objects"][keys.SNAPSHOT], record["etags"][keys.SNAPSHOT]
    site.put("manifest.json", json.dumps(record).encode())
    site.done("publish", "--verify")
    site.check()


def test_it_repairs_the_store_and_publishes_a_change_in_one_run(site: Site) -> None:
    for harm in (remove_detail, add_strangers, alter_page):
        harm(site)
    site.edit(1, question="Else?")
    site.edit(9, approval="rejected")
    site.done("rebuild", "--as-of", hour(1), "--verify")
    site.check()
    assert site.traces(9) == []
    assert "Else?" in walk(site, "open/new")


def test_a_directory_is_repaired_too(site: Site) -> None:
    site.target = "./www"
    site.done("publish")
    good = files(Path("www"))
    shutil.rmtree(Path("www", keys.LISTS, "open"))
    Path("www", DETAIL).write_bytes(b"{}")
    Path("www/v1/notes.txt").write_bytes(b"hello")
    site.done("publish", "--verify")
    assert files(Path("www")) == good


def test_a_verifying_run_probes_conditional_puts_again(site: Site) -> None:
    site.server.behaviour.ignores_conditions = True
    assert "ignores conditional puts" in site.refused(1, "publish", "--verify")


# The search index


def parts_of_index(site: Site) -> dict[str, str]:
    """A key of every kind of object of the search index."""
    root = json.loads(site.objects()[keys.head(keys.SEARCH)])
    names = {"bucket": root["buckets"][0], "vector": root["vectors"]["volume"][0], "table": root["table"]}
    parts = {what: keys.chunk(keys.SEARCH, name) for what, name in names.items()}
    return parts | {"head": keys.head(keys.SEARCH), "root": keys.index(keys.SEARCH, root["generation"])}


@in_one_layout
@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("what", ["head", "root", "bucket", "vector", "table"])
def test_manual_changes_to_the_search_index_are_undone(searched: Site, what: str) -> None:
    good, key = searched.objects(), parts_of_index(searched)[what]
    for harmful in (None, good[key][::-1]):
        searched.remove(key) if harmful is None else searched.put(key, harmful)
        searched.done("publish", "--verify")
        searched.check()
        assert searched.objects()[key] == good[key]
    assert found(searched, "zyzzyva") == [market_id(1)]


@in_one_layout
def test_what_nobody_knows_of_beside_the_search_index_is_deleted(searched: Site) -> None:
    good = searched.objects()
    searched.put(keys.chunk(keys.SEARCH, "0" * 32), b"[]")
    searched.put(keys.index(keys.SEARCH, "s" + "0" * 19), b"{}")
    searched.done("publish", "--verify")
    assert searched.objects() == good


@in_one_layout
def test_a_lost_object_of_a_retired_index_ends_that_index(searched: Site) -> None:
    (retired,) = [entry for entry in searched.record().built.retired if entry.list == keys.SEARCH]
    searched.remove(keys.index(keys.SEARCH, retired.generation))
    searched.done("publish", "--verify")
    assert keys.SEARCH not in {entry.list for entry in searched.record().built.retired}
    searched.check()


@in_one_layout
def test_verifying_makes_the_record_of_a_searchable_site_anew(searched: Site) -> None:
    good = searched.record().built
    searched.server.bucket.delete(PREFIX + record.KEY)
    searched.done("publish", "--verify")
    assert searched.record().built.current[keys.SEARCH] == good.current[keys.SEARCH]
    searched.check()


@in_one_layout
@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("field", [3, {"generation": "s", "count": 1, "bytes": 1, "chunks": [{}]}])
def test_a_record_with_a_damaged_search_index_is_refused_and_made_anew(searched: Site, field: object) -> None:
    content = json.loads(searched.stored()[record.KEY])
    content["built"]["current"][keys.SEARCH] = field
    searched.put(record.KEY, json.dumps(content).encode())
    message = searched.refused(1, "publish")
    assert "damaged or not this program's" in message
    assert "`public-markets publish --verify` checks every object and writes the record anew" in message
    searched.done("publish", "--verify")
    searched.check()


@in_one_layout
def test_a_folder_whose_manifest_has_a_damaged_search_index_is_refused(searched: Site) -> None:
    content = json.loads(Path("output/manifest.json").read_bytes())
    content["current"][keys.SEARCH]["count"] = "?"
    tamper(Path("output/manifest.json"), json.dumps(content).encode())
    said = "manifest.json: damaged or not this program's (1 error); move the folder away and build again"
    assert said in searched.refused(1, "publish")


@in_one_layout
def test_purging_deletes_the_words_of_an_edited_text(searched: Site) -> None:
    searched.edit(1, description="Nobody decides.")
    searched.done("rebuild", "--as-of", hour(2))
    assert words_in(searched, b"zyva"), "a retired index has it"
    searched.done("publish", "--purge-retired")
    assert not words_in(searched, b"zyva")
    searched.check()
