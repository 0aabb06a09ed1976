"""The fields of the extended variant in items and details, and what becomes of them when a site changes."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys, slugs
from generator.markets import faults
from tests.acceptance.extended.site import ExtendedSite, home, walk
from tests.support.commands import run
from tests.support.faults import check_whole
from tests.support.sites.builds import AS_OF, build_now, files, lasting
from tests.support.sites.rows import insert_category, insert_fill, insert_market, insert_order, market_id


def test_an_item_ends_with_slug_category_and_categories(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, slug="Will-It_Rain")
    insert_category(extended_site.connection, "u.s. 2024 elections", 7)
    insert_category(extended_site.connection, "weather", 3)
    extended_site.build()
    body = (extended_site.output / keys.first_page("open/new", 1)).read_text()
    extras = '"slug":"Will-It_Rain","category":"weather","categories":["weather","u.s. 2024 elections"]'
    assert body == body.partition(',"slug"')[0] + f',{extras}}}],"nextCursor":null}}'
    assert '"acceptingBets":true,"slug"' in body
    assert {**extended_site.market(), **extended_site.item()} == extended_site.market()


def test_what_is_not_there_is_absent_but_categories_are_always_told(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection)
    extended_site.build()
    assert {*extended_site.item()} - {*contract.EXTENDED_PROPERTIES} == {*extended_site.item()} - {"categories"}
    assert {*extended_site.market()} & contract.EXTENDED_PROPERTIES == {"categories"}
    assert extended_site.item()["categories"] == []


def test_a_detail_tells_where_the_market_was_made_and_who_sponsors_it(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, creation_source="web", sponsor="Café")
    insert_market(extended_site.connection, 2, creation_source="", sponsor=None)
    extended_site.build()
    assert list(extended_site.market().items())[-2:] == [("creationSource", "web"), ("sponsor", "Café")]
    assert (extended_site.market(2)["creationSource"], "sponsor" in extended_site.market(2)) == ("", False)
    assert not {"creationSource", "sponsor"} & {*extended_site.item()}


def test_the_snapshot_is_closed_to_what_items_carry(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, slug="rain")
    insert_category(extended_site.connection, "weather")
    extended_site.build()
    fresh = extended_site.read(keys.SNAPSHOT)["freshMarkets"][0]
    assert fresh.keys() == {field.alias for field in contract.PublicMarketSignal.model_fields.values()}


def test_order_book_and_fills_stay_unless_the_site_withholds_them(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection)
    insert_order(extended_site.connection)
    insert_fill(extended_site.connection)
    extended_site.build()
    shown = extended_site.read(keys.detail(market_id(1)))
    assert (len(shown["orderBook"]["bids"]), len(shown["recentFills"])) == (1, 1)
    extended_site.build(detail__order_book="false", detail__recent_fills=0)
    withheld = extended_site.read(keys.detail(market_id(1)))
    assert (withheld["orderBook"], withheld["recentFills"]) == ({"bids": [], "asks": []}, [])


def test_the_core_variant_reads_and_shows_none_of_it(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, slug="rain", creation_source=b"blob", sponsor=b"blob")
    insert_category(extended_site.connection, "weather")
    insert_category(extended_site.connection, None, None)
    report = extended_site.build(variant="core", categories="nothing")
    assert (report.remarks, report.quarantine.total()) == ([], 0)
    assert not {*extended_site.item(), *extended_site.market()} & contract.EXTENDED_PROPERTIES
    assert not (extended_site.output / keys.SLUGS).exists()
    assert "categories" not in extended_site.read(keys.BUILD)
    assert len(extended_site.manifest().lists()) == 30


BAD_ROWS: Final = (
    (None, 0, "category: must not be NULL"),
    ("", 0, "category: is empty"),
    (" \u2003", 0, "category: is empty"),
    ("a\nb", 0, "category: holds a control character"),
    ("a\x7f", 0, "category: holds a control character"),
    ("a\x85", 0, "category: holds a control character"),
    ("a-b--0123456789", 0, "category: has the form of another category's slug"),
    ("x" * 101, 0, "category: string should have at most 100 characters"),
    (b"bytes", 0, "category: not a text"),
    ("fine", None, "position: must not be NULL"),
    ("fine", "first", "position: not a whole number"),
    ("fine", 0.5, "position: not a whole number"),
    ("fine", float("inf"), "position: not a whole number"),
)


def test_a_bad_row_costs_the_category_and_not_the_market(extended_site: ExtendedSite) -> None:
    for number, (category, position, _) in enumerate(BAD_ROWS):
        insert_market(extended_site.connection, number)
        insert_category(extended_site.connection, category, position, market_id=market_id(number))
        insert_category(extended_site.connection, "good", 5, market_id=market_id(number))
    report = extended_site.build()
    reasons = {row.key: row.reason for row in report.quarantine if row.relation == "market_categories"}
    assert (report.built, report.quarantine.total(), len(reasons)) == (len(BAD_ROWS), len(BAD_ROWS), len(BAD_ROWS))
    for number, (_, _, reason) in enumerate(BAD_ROWS):
        assert (extended_site.item(number)["category"], extended_site.item(number)["categories"]) == ("good", ["good"])
        assert reasons[market_id(number)].startswith(reason)
    assert not any(line.endswith(faults.ANY) for line in report.findings())


def test_categories_in_one_position_follow_by_name(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection)
    for category, position in (("b", 1), ("a", 1), ("C", 1), ("z", -1), ("m", 10**12)):
        insert_category(extended_site.connection, category, position)
    extended_site.build()
    assert extended_site.item()["categories"] == ["z", "C", "a", "b", "m"]


def test_what_is_strange_but_allowed_is_shown_as_it_is(extended_site: ExtendedSite) -> None:
    names = ["👩\u200d🚀 space", "a\u2028b", "</script>", "x" * 100, " padded "]
    insert_market(extended_site.connection)
    for position, name in enumerate(names):
        insert_category(extended_site.connection, name, position)
    assert extended_site.build().quarantine.total() == 0
    assert extended_site.item()["categories"] == names
    index = {category["slug"]: category["name"] for category in extended_site.read(keys.BUILD)["categories"]}
    assert index == {slugs.of_category(name): name for name in names}
    assert all(extended_site.has_lists(slug) for slug in index)


def test_hidden_markets_give_no_category_and_take_no_slug(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, slug="rain")
    insert_market(extended_site.connection, 2, slug="rain", approval="pending")
    insert_market(extended_site.connection, 3, slug="CANARY", is_listed=0)
    for number in (2, 3):
        insert_category(extended_site.connection, "CANARY", market_id=market_id(number))
        insert_category(extended_site.connection, None, market_id=market_id(number))
    report = extended_site.build()
    assert (report.quarantine.total(), report.remarks) == (0, [])
    assert extended_site.item()["slug"] == "rain"
    assert [name for name, content in files(extended_site.output, "").items() if b"CANARY" in content] == []


# ── what is withdrawn, and categories, slugs and variants that change ─────────────────────────────────────────────────


@pytest.mark.usefixtures("few_limits", "one_processor")
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
@pytest.mark.usefixtures("few_limits")
def test_a_takedown_reaches_slugs_and_lists_of_categories(extended_site: ExtendedSite) -> None:
    four_published_markets(extended_site)
    in_folder(extended_site, "takedown", market_id(1))
    left = published(extended_site)
    assert keys.detail_by_slug("market-1") not in left
    assert [key for key, body in left.items() if market_id(1).encode() in body or b"market-1" in body] == []
    assert walk(left, keys.list_name("all", "new", "rain"), 1) == [market_id(2), market_id(3)]
    assert walk(left, keys.list_name("all", "new", "snow"), 1) == [market_id(4)]
    record = json.loads(left[keys.BUILD])
    assert (record["markets"], record["lists"][keys.list_name("all", "new")]) == (3, 3)
    assert {category["slug"] for category in record["categories"]} == {"rain", "snow"}
    in_folder(extended_site, "rebuild", "--as-of", "2024-01-31T12:20:00Z")
    rebuilt = published(extended_site)
    changed = {key for key in left.keys() | rebuilt.keys() if left.get(key) != rebuilt.get(key)}
    assert changed == {keys.BUILD}, "what is left is what a build without the market makes"
    assert list(extended_site.manifest().slugs) == [market_id(2), market_id(3), market_id(4)]


@pytest.mark.usefixtures("few_limits", "one_processor")
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
