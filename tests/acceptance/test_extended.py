"""The extended variant: lists of categories, markets found by slug, and what becomes of both when a site changes.

The golden trees have the bytes; tests/markets has the rules for names and slugs one by one.
"""

import json
import sqlite3
from collections.abc import Mapping
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, cursors, keys, slugs
from generator.api.contract import SORTS, STATUS_FILTERS
from generator.builder.report import Report
from generator.markets import faults
from generator.tree.manifest import Manifest
from tests.support.edges.serving import in_order
from tests.support.faults import check_whole
from tests.support.sites.builds import AS_OF, build_now, files, make_config
from tests.support.sites.rows import (
    insert_category,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_order,
    market_id,
)

POLITICS: Final = "politics"
ELECTIONS: Final = slugs.of_category("u.s. 2024 elections")


class ExtendedSite:
    """A database that tests change, and the folder built from it."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.output = folder / "output"
        self.connection = connection
        self._builds = 0

    def build(self, **settings: object) -> Report:
        """Build as of one minute after the previous build."""
        self._builds += 1
        config = make_config(self.folder, **{"variant": "extended", **settings})
        return build_now(config, AS_OF + timedelta(minutes=self._builds), shrink=True)

    def read(self, key: str) -> Any:
        return json.loads((self.output / key).read_bytes())

    def item(self, number: int = 1) -> dict[str, Any]:
        items = self.read(keys.first_page("all/new", 100))["items"]
        (found,) = (item for item in items if item["id"] == market_id(number))
        return dict(found)

    def market(self, number: int = 1) -> dict[str, Any]:
        return dict(self.read(keys.detail(market_id(number)))["market"])

    def has_lists(self, category: str) -> bool:
        names = [keys.list_name(status, sort, category) for status in STATUS_FILTERS for sort in SORTS]
        found = {(self.output / keys.first_page(name, limit)).is_file() for name in names for limit in (1, 20, 100)}
        assert len(found) == 1, "some of its lists are there and some are not"
        return found.pop()

    def by_slug(self, slug: str) -> bytes | None:
        path = self.output / keys.detail_by_slug(slug)
        return path.read_bytes() if path.exists() else None

    def manifest(self) -> Manifest:
        return Manifest.model_validate_json((self.output / "manifest.json").read_bytes())


@pytest.fixture
def site(tmp_path: Path, database: sqlite3.Connection) -> ExtendedSite:
    return ExtendedSite(tmp_path, database)


# ── categories ────────────────────────────────────────────────────────────────────────────────────────────────────


def walk(published: Mapping[str, bytes], list_name: str, limit: int) -> list[str]:
    """The ids of a list, page by page."""
    page = json.loads(published[keys.first_page(list_name, limit)])
    found = [item["id"] for item in page["items"]]
    while page["nextCursor"] is not None:
        assert len(page["items"]) == limit
        place = cursors.read(list_name, page["nextCursor"])
        page = json.loads(published[keys.page(list_name, place.generation, limit, place.position)])
        found += [item["id"] for item in page["items"]]
    return found


def test_every_list_with_and_without_a_category_is_walked_in_the_databases_order(
    demo_folder: Path, extended_output: Path
) -> None:
    published, lengths = files(extended_output), list[int]()
    categories = (("politics", POLITICS), ("u.s. 2024 elections", ELECTIONS), (None, None))
    for (category, slug), status, sort in product(categories, STATUS_FILTERS, SORTS):
        ids = in_order(demo_folder / "markets.db", status, sort, category)
        lengths.append(len(ids))
        for limit in (1, 2, 7, 20, 100):
            assert walk(published, keys.list_name(status, sort, slug), limit) == ids, (slug, status, sort, limit)
    assert len(lengths) == 90
    assert sum(length > 2 for length in lengths) > 50


@pytest.mark.usefixtures("few_limits", "one_processor")
def test_every_category_has_lists_unless_the_settings_choose(site: ExtendedSite) -> None:
    made = {name: slugs.of_category(name) for name in ("weather", "Formula 1", "u.s. elections", "fx")}
    for number, category in enumerate(made, 1):
        insert_market(site.connection, number)
        insert_category(site.connection, category, market_id=market_id(number))
    insert_fx_member(site.connection, market_id=market_id(4))

    def offered(**settings: object) -> set[str]:
        told = site.build(**settings).remarks
        assert [remark.sentence() for remark in told] == site.read("report.json")["remarks"]
        index = {category["name"] for category in site.read(keys.BUILD)["categories"]}
        assert {name for name, slug in made.items() if site.has_lists(slug)} == index
        assert len(site.manifest().lists()) == 30 * (1 + len(index))
        return index

    assert offered() == {*made}
    assert site.read(keys.first_page(keys.list_name("all", "new", "fx"), 20))["items"] == [], "of FX members alone"
    assert offered(categories="Formula 1,weather") == {"Formula 1", "weather"}
    assert offered(categories=made["u.s. elections"]) == {"u.s. elections"}
    assert offered(categories="weather,wether") == {"weather"}
    assert site.read("report.json")["remarks"] == [
        "category wether: has no public market; it gets no lists: correct the setting `categories`"
    ]
    assert offered(categories="[]") == set()
    assert site.item(2)["categories"] == ["Formula 1"]


BAD_ROWS: Final = (
    (None, 0, "category: must not be NULL"),
    (" \u2003", 0, "category: is empty"),
    ("a\nb", 0, "category: holds a control character"),
    ("a\x85", 0, "category: holds a control character"),
    ("a-b--0123456789", 0, "category: has the form of another category's slug"),
    ("x" * 101, 0, "category: string should have at most 100 characters"),
    (b"bytes", 0, "category: not a text"),
    ("fine", None, "position: must not be NULL"),
    ("fine", "first", "position: not a whole number"),
    ("fine", 0.5, "position: not a whole number"),
    ("fine", float("inf"), "position: not a whole number"),
)


def test_a_bad_row_costs_the_category_and_not_the_market(site: ExtendedSite) -> None:
    for number, (category, position, _) in enumerate(BAD_ROWS):
        insert_market(site.connection, number)
        insert_category(site.connection, category, position, market_id=market_id(number))
        insert_category(site.connection, "good", 5, market_id=market_id(number))
    for category, position in (("b", 6), ("a", 6), ("C", 6), ("z", -1), ("m", 10**12)):
        insert_category(site.connection, category, position, market_id=market_id(0))
    report = site.build()
    reasons = {row.key: row.reason for row in report.quarantine if row.relation == "market_categories"}
    assert (report.built, report.quarantine.total(), len(reasons)) == (len(BAD_ROWS), len(BAD_ROWS), len(BAD_ROWS))
    for number, (_, _, reason) in enumerate(BAD_ROWS):
        assert reasons[market_id(number)].startswith(reason)
        assert number == 0 or site.item(number)["categories"] == ["good"]
    assert site.item(0)["categories"] == ["z", "good", "C", "a", "b", "m"], "by position, then by name"
    assert not any(line.endswith(faults.ANY) for line in report.findings())


# ── slugs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_id_and_slug_give_the_same_bytes(extended_output: Path) -> None:
    published = files(extended_output)
    by_slug = {key: body for key, body in published.items() if key.startswith(keys.SLUGS)}
    assert len(by_slug) > 100
    for key, body in by_slug.items():
        market = json.loads(body)["market"]
        assert body == published[keys.detail(market["id"])]
        assert key == keys.detail_by_slug(market["slug"]) == keys.detail_by_slug(market["slug"].upper())
    with_slug = [body for key, body in published.items() if key.startswith(keys.DETAILS) and b'"slug":' in body]
    assert len(with_slug) == len(by_slug)


def test_a_market_with_an_unusable_slug_is_found_by_its_id_only_and_the_report_says_so(site: ExtendedSite) -> None:
    unusual = ["Upper-CASE", "S" * 255, "_", "lists"]
    unusable = ["s" * 256, market_id(99), "Snapshot", "a b", "ü", b"blob", "same", "SAME"]
    for number, slug in enumerate([*unusual, *unusable]):
        insert_market(site.connection, number, slug=slug)
    report = site.build()
    assert (report.quarantine.total(), len(report.remarks)) == (0, len(unusable))
    assert len([*(site.output / keys.SLUGS).rglob("*.json")]) == len(unusual)
    for number, slug in enumerate(unusual):
        assert site.item(number)["slug"] == slug
        assert site.by_slug(slug) == (site.output / keys.detail(market_id(number))).read_bytes()
    for number, remark in enumerate(sorted(report.remarks, key=lambda remark: remark.key), len(unusual)):
        assert not {"slug"} & {*site.item(number), *site.market(number)}
        assert remark.sentence().startswith(f"market {market_id(number)}: slug cannot be used: ")
        assert remark.sentence().endswith("; it is found by its id only")


# ── what is not shown ─────────────────────────────────────────────────────────────────────────────────────────────


def test_order_book_and_fills_stay_unless_the_site_withholds_them(site: ExtendedSite) -> None:
    insert_market(site.connection)
    insert_order(site.connection)
    insert_fill(site.connection)
    site.build()
    shown = site.read(keys.detail(market_id(1)))
    assert (len(shown["orderBook"]["bids"]), len(shown["recentFills"])) == (1, 1)
    site.build(detail__order_book="false", detail__recent_fills=0)
    withheld = site.read(keys.detail(market_id(1)))
    assert (withheld["orderBook"], withheld["recentFills"]) == ({"bids": [], "asks": []}, [])


def test_the_core_variant_reads_and_shows_none_of_it(site: ExtendedSite) -> None:
    insert_market(site.connection, slug="rain", creation_source=b"blob", sponsor=b"blob")
    insert_category(site.connection, "weather")
    insert_category(site.connection, None, None)
    report = site.build(variant="core", categories="nothing")
    assert (report.remarks, report.quarantine.total()) == ([], 0)
    assert not {*site.item(), *site.market()} & contract.EXTENDED_PROPERTIES
    assert not (site.output / keys.SLUGS).exists()


def test_hidden_markets_give_no_category_and_take_no_slug(site: ExtendedSite) -> None:
    insert_market(site.connection, slug="rain")
    insert_market(site.connection, 2, slug="rain", approval="pending")
    insert_market(site.connection, 3, slug="CANARY", is_listed=0)
    for number in (2, 3):
        insert_category(site.connection, "CANARY", market_id=market_id(number))
        insert_category(site.connection, None, market_id=market_id(number))
    report = site.build()
    assert (report.quarantine.total(), report.remarks) == (0, [])
    assert site.item()["slug"] == "rain"
    assert [name for name, content in files(site.output, "").items() if b"CANARY" in content] == []


@pytest.mark.usefixtures("few_limits", "one_processor")
def test_a_withdrawn_market_is_gone_by_id_by_slug_and_from_its_categories_past_and_present(site: ExtendedSite) -> None:
    for number in range(1, 6):
        insert_market(site.connection, number, slug=f"market-{number}")
        insert_category(site.connection, "rain" if number < 4 else "snow", market_id=market_id(number))
    site.build()
    site.connection.execute("UPDATE market_categories SET category = 'wind' WHERE market_id = ?", [market_id(1)])
    site.connection.execute("UPDATE markets SET question = 'Edited?' WHERE id = ?", [market_id(4)])
    site.build()
    retired = {generation.list for generation in site.manifest().retired}
    assert {keys.list_name("all", "new", "rain"), keys.list_name("all", "new", "snow")} <= retired
    site.connection.execute("UPDATE markets SET approval = 'rejected' WHERE id = ?", [market_id(1)])
    assert site.build().markets.withdrawn == [market_id(1)]
    assert site.by_slug("market-1") is None
    assert not (site.output / keys.detail(market_id(1))).exists()
    assert not site.has_lists("wind")
    kept = {generation.list for generation in site.manifest().retired}
    assert keys.list_name("all", "new", "rain") not in kept
    assert keys.list_name("all", "new", "snow") in kept
    assert [key for key, body in files(site.output).items() if market_id(1).encode() in body] == []
    check_whole(site.output)
