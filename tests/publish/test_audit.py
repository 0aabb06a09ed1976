"""`publish --verify`: lists the store, compares it with the record, and repairs it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.api import keys
from generator.tree.layouts import object_keys
from tests.support.builds import files
from tests.support.publishing import Site, hour, walk
from tests.support.rows import market_id

DETAIL = keys.detail(market_id(8))
FIRST_PAGE = keys.first_page("closed/new", 7)


def page(site: Site, *, is_current: bool = True, list_name: str = "open/new") -> str:
    """A page of the current generation of a list, or of a retired one."""
    built = site.record().built
    retired = next((generation for generation in built.retired if generation.list == list_name), None)
    generation = built.lists[list_name] if is_current else retired
    assert generation
    return [*object_keys(list_name, generation)][3]


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
    assert site.record().built.retired == retired
    assert site.objects() == before
    site.check()


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
