"""`publish --verify`: lists the store, compares it with the record, and repairs it."""

from collections.abc import Iterator
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
from tests.support.sites.builds import NOW, manifest_of
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.rows import market_id

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


def remove_first_pages(site: PublishedSite) -> None:
    for key in site.objects():
        if key.startswith(keys.list_prefix("closed/new") + "/first/"):
            site.remove(key)


def add_strangers(site: PublishedSite) -> None:
    site.put(keys.detail(market_id(4_711)), b"{}")
    site.put("v1/notes.txt", b"hello")
    site.put(keys.page("open/new", "p00000000000000000000", 20, 20), b"{}")


def alter_page_but_not_its_size(site: PublishedSite) -> None:
    key = page(site)
    site.put(key, site.objects()[key][::-1])


@pytest.mark.parametrize("is_opaque", [False, True])
def test_manual_changes_to_the_store_are_undone(published_site: PublishedSite, *, is_opaque: bool) -> None:
    """Pages are compared byte by byte where ETags are opaque; faults/test_stores.py alters every object."""
    published_site.server.behaviour.opaque_etags = is_opaque
    good = published_site.objects()
    for harm in (remove_detail, remove_first_pages, add_strangers, alter_page_but_not_its_size):
        harm(published_site)
    assert published_site.objects() != good
    result = published_site.done("publish", "--verify")
    assert published_site.objects() == good
    assert "11 markets" in result.stdout
    published_site.check()
    assert int(result.stdout.partition("api: ")[2].split()[0]) <= 110, "only what was damaged"


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


# Listings in doubt


def test_a_listing_is_held_neither_in_parts_nor_whole(published_site: PublishedSite) -> None:
    """It is read while it is compared, and the lease renewed meanwhile."""
    listed, renewed = list[str](), list[int]()

    class Listing(Wrapper):
        def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
            for found in self._store.list(prefix, after):
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


def test_a_listing_in_no_order_stops_the_run_before_it_takes_anything_for_unknown(
    published_site: PublishedSite,
) -> None:
    """Directory buckets of S3 list in no order."""

    class Shuffled(Wrapper):
        def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
            yield from reversed([*self._store.list(prefix, after)])

    record = published_site.record()
    with pytest.raises(StoreError, match="needs listings in order of keys"):
        Audit(Shuffled(published_site.store()), record, record.built.current_generations()).doubts()


def test_what_was_found_is_still_put_right_when_a_market_is_blocked_meanwhile(published_site: PublishedSite) -> None:
    published_site.remove(page(published_site))
    config = load(Path("config.yaml"), overrides=[f"publish.target={published_site.target}"], environ={})
    with locked(config.output) as folder:
        options = Options(is_verifying=True)
        publication = Publication(folder, published_site.store(), config, shape(config), options)
        run = publication.plan(SILENT)
        published_site.block(8)
        publication.publish(run)
    published_site.check()
    assert not published_site.traces(8)
