"""The fields of the extended variant in items and details."""

from typing import Final

from generator.api import contract, keys, slugs
from generator.markets import faults
from tests.acceptance.extended.site import ExtendedSite
from tests.support.sites.builds import files
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
