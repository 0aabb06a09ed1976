"""`publish --verify`: lists the store, compares it with the record, and repairs it."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from generator.api import keys
from generator.config.loader import load
from generator.errors import StoreError
from generator.progress import SILENT
from generator.publish.audit import Audit, parts
from generator.publish.guards import Options
from generator.publish.publication import Publication
from generator.publish.record import Published
from generator.source.address import shape
from generator.stores.store import Listed, Wrapper
from generator.tree.folder import locked
from generator.tree.generations import object_keys
from generator.tree.manifest import Current, Retired
from tests.support.sites.builds import NOW, files, lasting, manifest_of
from tests.support.sites.publishing import PublishedSite, hour, walk
from tests.support.sites.rows import market_id
from tests.support.sites.searchable_site import in_one_layout, words_in

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


HARMS = [
    remove_detail, alter_detail, alter_first_page, remove_first_pages, add_strangers, remove_page, alter_page,
    alter_page_but_not_its_size,
]  # fmt: skip


@pytest.mark.campaign(short=1)
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


def test_an_intact_store_is_left_alone(published_site: PublishedSite) -> None:
    before = published_site.stored()
    requests = published_site.requests("publish", "--verify")
    assert {request.split()[0] for request in requests if "probe" not in request} <= {
        "GetObject", "ListObjectsV2", "DeleteObjects",
    }  # fmt: skip
    assert sum(request.startswith("DeleteObjects") for request in requests) == 1, "the probe's own object"
    assert published_site.stored() == before


def test_pages_are_compared_byte_by_byte_where_etags_are_opaque(published_site: PublishedSite) -> None:
    published_site.server.behaviour.opaque_etags = True
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


@pytest.mark.campaign(short=1)
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
    altered = Path("www", page(published_site, list_name="all/popular"))
    altered.write_bytes(altered.read_bytes()[::-1])
    published_site.done("publish", "--verify")
    assert files(Path("www")) == good
    assert ": 0 objects uploaded" in published_site.done("publish", "--verify").stdout


def test_a_verifying_run_probes_conditional_puts_again(published_site: PublishedSite) -> None:
    published_site.server.behaviour.ignores_conditions = True
    assert "ignores conditional puts" in published_site.refused(1, "publish", "--verify")


# Listings in doubt


def test_a_listing_is_held_neither_in_parts_nor_whole(published_site: PublishedSite) -> None:
    """It is read while it is compared, and the lease renewed meanwhile."""
    listed, renewed = list[str](), list[int]()

    class Listing(Wrapper):
        def list(self, prefix: str) -> Iterator[Listed]:
            for found in self._store.list(prefix):
                for number in range(1_500 if found.key == DETAIL else 1):
                    listed.append(found.key)
                    yield replace(found, key=found.key + "~" * number)

    record = published_site.record()
    found = Audit(
        Listing(published_site.store()),
        record,
        record.built.current_generations(),
        before_each=lambda: renewed.append(len(listed)),
    ).doubts()
    assert len(found.keys) == 1_499
    assert renewed[0] <= 1
    assert renewed[1:] == [1_001, *range(2_001, len(listed) + 1, 1_000)]


def test_only_the_listed_parts_are_judged(published_site: PublishedSite) -> None:
    add_strangers(published_site)
    remove_detail(published_site)
    remove_first_pages(published_site)
    published_site.remove(lost := page(published_site))
    record = published_site.record()
    ask = partial(Audit, published_site.store(), record, record.built.current_generations())
    everything = ask().doubts()
    assert {DETAIL, FIRST_PAGE, "v1/notes.txt"} < everything.keys
    assert everything.missing == {lost}
    assert everything.generations == {("open/new", record.built.current["open/new"].generation)}
    details = ask((f"{keys.DETAILS}/", f"{keys.SLUGS}/")).doubts()
    assert details.keys == {DETAIL, keys.detail(market_id(4_711))}
    assert not details.missing | details.generations
    assert ask((f"{keys.list_prefix('open/new')}/",)).doubts().missing == {lost}


def test_a_large_site_is_listed_by_turns_but_for_details_and_what_was_being_written() -> None:
    names = [f"open/new.{number}" for number in range(60)]
    large = Retired(list="open/new", generation="p1", count=30_000_000, bytes=3, retired_at=NOW, partial=True)
    current = {name: Current(generation="p0", count=1, bytes=1) for name in names}
    record = Published(sequence=1, built=manifest_of(current=current, retired=(large,)), etags={})
    turns = [parts(record, f"2026-01-31T12:{minute:02}:00.000Z") for minute in range(0, 60, 5)]
    always = {f"{keys.DETAILS}/", f"{keys.SLUGS}/", f"{keys.list_prefix('open/new')}/"}
    assert always == set.intersection(*map(set, turns))
    assert {f"{keys.list_prefix(name)}/" for name in names} | always == set.union(*map(set, turns))
    assert max(map(len, turns)) < 30
    doubted = record.model_copy(update={"doubted_until": "2026-01-31T12:00:00.000Z"})
    assert len(parts(doubted, "2026-01-31T12:00:00.000Z")) > 1
    assert parts(doubted, "2026-01-31T12:00:01.000Z") == ("v1/",), "the first run after the doubt"
    small = record.model_copy(update={"built": manifest_of(current=current)})
    assert parts(small, NOW) == ("v1/",)


# The search index


@in_one_layout
def test_purging_deletes_the_words_of_an_edited_text(searched: PublishedSite) -> None:
    searched.edit(1, description="Nobody decides.")
    searched.done("rebuild", "--as-of", hour(2))
    assert words_in(searched, b"zyva"), "a retired index has it"
    searched.done("publish", "--purge-retired")
    assert not words_in(searched, b"zyva")
    searched.check()


def test_a_listing_in_no_order_stops_the_run_before_it_takes_anything_for_unknown(
    published_site: PublishedSite,
) -> None:
    """Directory buckets of S3 list in no order."""

    class Shuffled(Wrapper):
        def list(self, prefix: str) -> Iterator[Listed]:
            yield from reversed([*self._store.list(prefix)])

    record = published_site.record()
    with pytest.raises(StoreError, match="needs listings in order of keys"):
        Audit(Shuffled(published_site.store()), record, record.built.current_generations()).doubts()


def test_what_was_found_is_still_put_right_when_a_market_is_blocked_meanwhile(published_site: PublishedSite) -> None:
    remove_page(published_site)
    config = load(Path("config.yaml"), overrides=[f"publish.target={published_site.target}"], environ={})
    with locked(config.output) as folder:
        options = Options(is_verifying=True)
        publication = Publication(folder, published_site.store(), config, shape(config), options)
        run = publication.plan(SILENT)
        published_site.block(8)
        publication.publish(run)
    published_site.check()
    assert not published_site.traces(8)
