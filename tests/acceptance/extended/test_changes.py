"""Markets are withdrawn, and categories, slugs and variant change."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from generator.api import keys
from tests.acceptance.extended.site import ExtendedSite, home, walk
from tests.support.commands import run
from tests.support.faults import check_whole
from tests.support.sites.builds import AS_OF, build_now, files, lasting
from tests.support.sites.rows import insert_category, insert_market, market_id


@pytest.mark.campaign(short=0)
def test_a_withdrawn_market_is_gone_by_id_by_slug_and_from_its_categories_past_and_present(
    extended_site: ExtendedSite,
) -> None:
    for number in range(1, 6):
        insert_market(extended_site.connection, number, slug=f"market-{number}")
        insert_category(extended_site.connection, "rain" if number < 4 else "snow", market_id=market_id(number))
    extended_site.build()
    extended_site.move(1, "wind")
    extended_site.set(4, question="Edited?")
    extended_site.build()
    retired = {generation.list for generation in extended_site.manifest().retired}
    assert {keys.list_name("all", "new", "rain"), keys.list_name("all", "new", "snow")} <= retired
    extended_site.set(1, approval="rejected")
    report = extended_site.build()
    assert report.markets.withdrawn == [market_id(1)]
    assert (extended_site.by_slug("market-1"), (extended_site.output / keys.detail(market_id(1))).exists()) == (
        None,
        False,
    )
    assert not extended_site.has_lists("wind")
    kept = {generation.list for generation in extended_site.manifest().retired}
    assert keys.list_name("all", "new", "rain") not in kept
    assert keys.list_name("all", "new", "snow") in kept
    assert [key for key, body in files(extended_site.output).items() if market_id(1).encode() in body] == []
    check_whole(extended_site.output)


def test_a_slug_that_changes_or_changes_hands_leads_where_it_should(extended_site: ExtendedSite) -> None:
    for number, slug in ((1, "one"), (2, "two"), (3, "three")):
        insert_market(extended_site.connection, number, slug=slug)
    extended_site.build()
    extended_site.set(1, slug="two")
    extended_site.set(2, slug="one")
    extended_site.set(3, slug="trois")
    extended_site.build()
    for number, slug in ((1, "two"), (2, "one"), (3, "trois")):
        assert extended_site.by_slug(slug) == (extended_site.output / keys.detail(market_id(number))).read_bytes()
    assert extended_site.by_slug("three") is None
    extended_site.set(1, approval="pending", slug="gone")
    extended_site.set(3, slug="two")
    extended_site.build()
    assert json.loads(extended_site.by_slug("two") or b"")["market"]["id"] == market_id(3)
    check_whole(extended_site.output)


def in_folder(site: ExtendedSite, command: str, *arguments: str) -> None:
    """Run a command that must not fail, with the target www/."""
    settings = ("variant=extended", "source.url=sqlite:///markets.db", "publish.target=./www", "publish.cache_fill=0")
    overrides = [word for setting in settings for word in ("--set", setting)]
    done = run(command, *arguments, *overrides, cwd=home(site.folder))
    assert done.returncode == 0, done.stderr


def published(site: ExtendedSite) -> dict[str, bytes]:
    found = files(site.folder / "www")
    assert found == files(site.output)
    return found


def four_published_markets(site: ExtendedSite) -> None:
    for number in range(1, 5):
        insert_market(site.connection, number, slug=f"market-{number}")
        insert_category(site.connection, "rain" if number < 4 else "snow", market_id=market_id(number))
    in_folder(site, "rebuild", "--as-of", "2024-01-31T12:00:00Z")
    site.set(1, volume=77.0)
    in_folder(site, "rebuild", "--as-of", "2024-01-31T12:10:00Z")
    shown = published(site)
    assert shown[keys.detail_by_slug("market-1")] == shown[keys.detail(market_id(1))]
    assert {generation.list for generation in site.manifest().retired} >= {keys.list_name("all", "new", "rain")}


@pytest.mark.campaign(short=0)
def test_a_takedown_reaches_slugs_and_lists_of_categories(extended_site: ExtendedSite) -> None:
    four_published_markets(extended_site)
    in_folder(extended_site, "takedown", market_id(1))
    left = published(extended_site)
    assert keys.detail_by_slug("market-1") not in left
    assert [key for key, body in left.items() if market_id(1).encode() in body or b"market-1" in body] == []
    assert walk(left, keys.list_name("all", "new", "rain"), 1) == [market_id(2), market_id(3)]
    assert walk(left, keys.list_name("all", "new", "snow"), 1) == [market_id(4)]
    record = json.loads(left[keys.BUILD])
    assert (record["markets"], record["lists"][keys.list_name("all", "new", "rain")]) == (3, 2)
    assert {category["slug"] for category in record["categories"]} == {"rain", "snow"}
    in_folder(extended_site, "rebuild", "--as-of", "2024-01-31T12:20:00Z")
    rebuilt = published(extended_site)
    changed = {key for key in left.keys() | rebuilt.keys() if left.get(key) != rebuilt.get(key)}
    assert changed == {keys.BUILD}, "what is left is what a build without the market makes"
    assert list(extended_site.manifest().slugs) == [market_id(2), market_id(3), market_id(4)]


@pytest.mark.campaign(short=0)
def test_a_site_can_change_its_variant_and_back(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, slug="rain")
    insert_category(extended_site.connection, "weather")
    extended_site.build(variant="core")
    first = lasting(files(extended_site.output))
    extended_site.build()
    assert extended_site.by_slug("rain")
    extended_site.build(variant="core")
    build_now(extended_site.settings(variant="core"), AS_OF + timedelta(days=1))
    again = lasting(files(extended_site.output))
    assert [key for key in again.keys() | first.keys() if again.get(key) != first.get(key)] == [keys.BUILD]
    check_whole(extended_site.output)


def test_a_second_build_in_place_writes_nothing(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, slug="rain")
    insert_category(extended_site.connection, "weather")
    assert build_now(extended_site.settings()).written > 400
    report = build_now(extended_site.settings())
    assert (report.written, report.deleted) == (0, 0)


def test_no_byte_of_the_extended_output_is_private(extended_output: Path) -> None:
    everything = files(extended_output, "")
    assert len(everything) > 3_000
    assert [name for name, content in everything.items() if b"CANARY" in content or "CANARY" in name] == []
