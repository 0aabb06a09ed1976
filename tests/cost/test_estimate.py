"""The estimate, compared with manual arithmetic and with real builds and publishes."""

import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api import contract
from generator.cost import estimate, readers, sizes
from generator.cost.estimate import Basis, Terms
from generator.cost.readers import Limit
from generator.cost.sizes import Change, Downloads, ListSize, Site
from generator.tree import chunks, pages
from generator.tree.generation import ItemList
from generator.tree.pages import LIMITS, PagedList, page_count
from tests.support.sites.builds import make_config

HUNDREDS = Site((ListSize("open/new", 1_000, 300_000), ListSize("all/new", 250, 75_000)), objects=55, bytes=500_000)


def test_without_a_history_every_page_and_chunk_counts_as_changed_and_is_charged_with_what_is_stored(
    terms: Terms,
) -> None:
    made = estimate.cost(HUNDREDS, Basis(), terms).layouts
    assert made["pages"].objects == 55 + page_count(1_000) + page_count(250) + 200
    # An index and a head for each list.
    assert made["chunks"].objects == 55 + (7 + 2) + (2 + 2)
    for layout in made.values():
        assert layout.puts_per_publish == layout.objects + 3
        assert layout.puts_per_month == layout.puts_per_publish * 730
        assert layout.usd_per_month == {
            "S3 + CloudFront": round(layout.puts_per_month * 5e-6 + layout.stored_bytes * 0.023e-9, 2),
            "R2": round(layout.puts_per_month * 4.5e-6 + layout.stored_bytes * 0.015e-9, 2),
        }


@pytest.mark.parametrize(("schedule", "hours", "kept"), [(60, 6, 7), (5, 6, 73), (360, 6, 2), (1_440, 6, 1)])
def test_a_generation_is_kept_for_its_lifetime_by_the_publishes_that_come_within_it(
    terms: Terms, schedule: int, hours: int, kept: int
) -> None:
    assert Terms(schedule, timedelta(hours=hours), terms.prices).kept == kept


def change(objects: int, minutes: float = 60, lists: frozenset[str] = frozenset()) -> Change:
    return Change(lists, lists, objects, minutes)


def test_what_builds_change_is_a_mean_over_about_a_day() -> None:
    basis = estimate.learned(Basis(), HUNDREDS, change(10), schedule=720)
    assert (basis.builds, basis.minutes, basis.loads["pages"].puts) == (1, 60, 13)
    basis = estimate.learned(basis, HUNDREDS, change(20), schedule=720)
    assert basis.loads["pages"].puts == 18
    # A day has two such builds, so the third weighs as much as all before.
    basis = estimate.learned(basis, HUNDREDS, change(0), schedule=720)
    assert (basis.builds, basis.loads["pages"].puts) == (3, 10.5)


def test_a_list_that_changes_costs_its_pages_and_its_first_pages() -> None:
    basis = estimate.learned(Basis(), HUNDREDS, change(2, lists=frozenset({"all/new"})), schedule=60)
    assert basis.loads["pages"].puts == page_count(250) + 100 + 2 + 3
    assert basis.loads["pages"].retired_objects == page_count(250)
    assert (basis.loads["chunks"].puts, basis.loads["chunks"].retired_objects) == (3 + 1 + 2 + 3, 3)


def test_builds_further_apart_change_more_and_never_more_than_everything(terms: Terms) -> None:
    basis = estimate.learned(Basis(), HUNDREDS, change(7, minutes=6), schedule=60)
    hourly = estimate.cost(HUNDREDS, basis, terms).layouts["pages"]
    assert hourly.puts_per_publish == 100
    daily = estimate.cost(HUNDREDS, basis, Terms(14_400, timedelta(hours=6), terms.prices)).layouts["pages"]
    assert daily.puts_per_publish == daily.objects + 3
    often = estimate.cost(HUNDREDS, basis, Terms(5, timedelta(hours=6), terms.prices)).layouts["pages"]
    assert often.puts_per_publish == 10


def test_builds_seconds_apart_teach_nothing_so_building_twice_in_a_row_lowers_no_estimate() -> None:
    assert estimate.learned(Basis(), HUNDREDS, change(0, minutes=0.9), schedule=60) == Basis()
    known = estimate.learned(Basis(), HUNDREDS, change(7, minutes=1), schedule=60)
    assert known.builds == 1
    assert estimate.learned(known, HUNDREDS, change(0, minutes=0), schedule=60) == known


def test_readers_are_charged_by_request_object_and_byte(terms: Terms) -> None:
    amazon, cloudflare = terms.prices.places
    size = HUNDREDS.page_bytes()
    assert size == 20 * 300 + 100
    usd = readers.reading_cost(HUNDREDS, "pages", 10_000_000, amazon)
    assert usd == pytest.approx(6 + 10 * 1.7 + 10 * 0.4 + 10_000_000 * size / 1e9 * 0.085)
    assert readers.reading_cost(HUNDREDS, "chunks", 10_000_000, cloudflare) == pytest.approx(5 + 3 + 30 * 0.36)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({}, (300 * 43_800, 0)),
        ({"variant": "extended"}, (300 * 43_800, 30 * 43_800)),
        ({"variant": "extended", "search": "off"}, (300 * 43_800, 0)),
        ({"variant": "extended", "rate_limit__requests": 20, "rate_limit__window": "10 min"}, (20 * 4_380, 20 * 4_380)),
        ({"variant": "extended", "rate_limit__window": "1 h"}, (5 * 43_800, 43_800)),
        ({"variant": "extended", "rate_limit__window": "24 h"}, (43_800, 43_800)),
    ],
)
def test_an_address_may_make_its_limit_of_requests_in_every_window_of_a_month(
    settings: dict[str, object], limit: tuple[int, int], tmp_path: Path
) -> None:
    assert Limit.of(make_config(tmp_path, **settings)) == limit


def test_an_address_costs_at_most_what_its_dearest_requests_do(terms: Terms) -> None:
    amazon, cloudflare = terms.prices.places
    limit, page = Limit(5_000_000, 1_000_000), 100 * 300 + 100
    with_dump = replace(HUNDREDS, downloads=Downloads(dump_bytes=2_000_000))
    # Egress from R2 is free: a page of chunks takes three reads, a file two, a search 24.
    for site, layout, most in ((HUNDREDS, "pages", 1), (with_dump, "pages", 2), (with_dump, "chunks", 3)):
        usd = readers.address_cost(site, layout, limit, cloudflare, 24)
        assert usd == pytest.approx(5 * 0.3 + 4 * most * 0.36 + 24 * 0.36)
    small = readers.address_cost(HUNDREDS, "pages", limit, amazon, 24)
    assert small == pytest.approx(5 * (1.7 + page / 1e3 * 0.085) + 4 * 0.4 + 24 * 0.4)
    large = readers.address_cost(with_dump, "chunks", limit, amazon, 24)
    assert large == pytest.approx(5 * (1.7 + 2 * 0.4 + 2_000 * 0.085)), "a search costs less than the dump"
    assert readers.refusal_cost(amazon) == pytest.approx(1.7)


def test_a_report_with_an_unreadable_estimate_has_none() -> None:
    for content in (None, b"", b"{}", b"[]", b"damaged", b'{"cost": null}', b'{"cost": {"layouts": 1}}'):
        assert estimate.of_report(content) is None


@given(st.integers(0, 400), st.integers(200, 600))
def test_the_bytes_of_pages_of_equal_items_are_estimated_within_thousandths(count: int, length: int) -> None:
    generation = PagedList(ItemList("open/new", [b"x" * length] * count))
    later = sum(len(body) for folder in generation.folders() for _, body in folder.pages)
    first = sum(len(generation.first(limit)) for limit in LIMITS)
    weight = pages.weight(count, count * length)
    assert (weight.immutable_bytes, weight.mutable_bytes) == pytest.approx((later, first), rel=0.003)


@given(st.integers(0, 2_000), st.integers(200, 600))
def test_chunks_and_their_bytes_are_estimated(count: int, length: int) -> None:
    items = [contract.encode({"id": str(uuid.UUID(int=number))}).ljust(length) for number in range(count)]
    generation = chunks.ChunkedList(ItemList("open/new", items))
    objects, weight = [body for _, body in generation.objects()], chunks.weight(count, count * length)
    assert weight.immutable == pytest.approx(len(objects), rel=0.15, abs=1)
    assert weight.immutable_bytes == pytest.approx(sum(map(len, objects)), rel=0.003, abs=50)
    assert (weight.mutable, weight.mutable_bytes) == (1, len(generation.head()))
    part = chunks.weight(count, count * length, 1)
    if count:
        assert part.immutable == 2
        assert part.immutable_bytes < weight.immutable_bytes or weight.immutable == 2


def test_chunks_that_did_not_change_are_not_put_again(terms: Terms) -> None:
    some = Change(frozenset(("open/new",)), frozenset(("open/new",)), 7, 60, {"open/new": 2})
    everything = Change(frozenset(("open/new",)), frozenset(("open/new",)), 7, 60)
    puts = [
        estimate.learned(Basis(), HUNDREDS, changed, schedule=60).loads["chunks"].puts for changed in (some, everything)
    ]
    assert puts == [2 + 1 + 1 + 7 + 3, 7 + 1 + 1 + 7 + 3]
    assert [sizes.new_part(HUNDREDS, changed, "chunks").objects for changed in (some, everything)] == [4, 9]
