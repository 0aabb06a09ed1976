"""Builds of the extended variant: what items carry, lists of categories, markets by their slugs, and their ends."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, cursors, keys, slugs
from generator.api.contract import SORTS, STATES_OF_FILTER, STATUS_FILTERS
from generator.builder.report import Report
from generator.config.settings import Config
from generator.tree.manifest import Manifest
from tests.support.builds import AS_OF, EXTENDED, build_now, files, make_config, run
from tests.support.faults import check_whole
from tests.support.rows import insert_category, insert_fill, insert_fx_member, insert_market, insert_order, market_id

pytestmark = pytest.mark.usefixtures("few_limits")

POLITICS: Final = "politics"
ELECTIONS: Final = slugs.of_category("u.s. 2024 elections")


class Site:
    """A database to be changed and the folder that is built from it."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.connection = connection
        self._builds = 0

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def settings(self, **settings: object) -> Config:
        return make_config(self.folder, **{"variant": "extended", **settings})

    def build(self, **settings: object) -> Report:
        """Build a minute later than before."""
        self._builds += 1
        return build_now(self.settings(**settings), AS_OF + timedelta(minutes=self._builds), shrink=True)

    def set(self, number: int, **columns: object) -> None:
        for name, value in columns.items():
            self.connection.execute(f"UPDATE markets SET {name} = ? WHERE id = ?", [value, market_id(number)])

    def move(self, number: int, category: str) -> None:
        self.connection.execute(
            "UPDATE market_categories SET category = ? WHERE market_id = ?", [category, market_id(number)]
        )

    def read(self, key: str) -> Any:
        return json.loads((self.output / key).read_bytes())

    def item(self, number: int = 1) -> dict[str, Any]:
        items = self.read(keys.first_page("all/new", 100))["items"]
        (found,) = (item for item in items if item["id"] == market_id(number))
        return dict(found)

    def market(self, number: int = 1) -> dict[str, Any]:
        return dict(self.read(keys.detail(market_id(number)))["market"])

    def listed(self, name: str) -> list[str]:
        return [item["id"] for item in self.read(keys.first_page(name, 100))["items"]]

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
def site(tmp_path: Path, database: sqlite3.Connection) -> Site:
    return Site(tmp_path, database)


# ── what items and details carry ──────────────────────────────────────────────────────────────────────────────────


def test_an_item_ends_with_slug_category_and_categories(site: Site) -> None:
    insert_market(site.connection, slug="Will-It_Rain")
    insert_category(site.connection, "u.s. 2024 elections", 7)
    insert_category(site.connection, "weather", 3)
    site.build()
    body = (site.output / keys.first_page("open/new", 1)).read_text()
    extras = '"slug":"Will-It_Rain","category":"weather","categories":["weather","u.s. 2024 elections"]'
    assert body == body.partition(',"slug"')[0] + f',{extras}}}],"nextCursor":null}}'
    assert '"acceptingBets":true,"slug"' in body
    assert {**site.market(), **site.item()} == site.market()


def test_what_is_not_there_is_absent_but_categories_are_always_told(site: Site) -> None:
    insert_market(site.connection)
    site.build()
    assert {*site.item()} - {*contract.EXTENDED_PROPERTIES} == {*site.item()} - {"categories"}
    assert {*site.market()} & contract.EXTENDED_PROPERTIES == {"categories"}
    assert site.item()["categories"] == []


def test_a_detail_tells_where_the_market_was_made_and_who_sponsors_it(site: Site) -> None:
    insert_market(site.connection, creation_source="web", sponsor="Café")
    insert_market(site.connection, 2, creation_source="", sponsor=None)
    site.build()
    assert list(site.market().items())[-2:] == [("creationSource", "web"), ("sponsor", "Café")]
    assert (site.market(2)["creationSource"], "sponsor" in site.market(2)) == ("", False)
    assert not {"creationSource", "sponsor"} & {*site.item()}


def test_the_snapshot_is_closed_to_what_items_carry(site: Site) -> None:
    insert_market(site.connection, slug="rain")
    insert_category(site.connection, "weather")
    site.build()
    fresh = site.read(keys.SNAPSHOT)["freshMarkets"][0]
    assert fresh.keys() == {field.alias for field in contract.PublicMarketSignal.model_fields.values()}


def test_order_book_and_fills_stay_unless_the_site_withholds_them(site: Site) -> None:
    insert_market(site.connection)
    insert_order(site.connection)
    insert_fill(site.connection)
    site.build()
    shown = site.read(keys.detail(market_id(1)))
    assert (len(shown["orderBook"]["bids"]), len(shown["recentFills"])) == (1, 1)
    site.build(detail__order_book="false", detail__recent_fills=0)
    withheld = site.read(keys.detail(market_id(1)))
    assert (withheld["orderBook"], withheld["recentFills"]) == ({"bids": [], "asks": []}, [])


def test_the_core_variant_reads_and_shows_none_of_it(site: Site) -> None:
    insert_market(site.connection, slug="rain", creation_source=b"blob", sponsor=b"blob")
    insert_category(site.connection, "weather")
    insert_category(site.connection, None, None)
    report = site.build(variant="core", categories="nothing")
    assert (report.remarks, report.quarantine.total()) == ([], 0)
    assert not {*site.item(), *site.market()} & contract.EXTENDED_PROPERTIES
    assert not (site.output / keys.SLUGS).exists()
    assert "categories" not in site.read(keys.BUILD)
    assert len(site.manifest().lists) == 30


# ── rows of categories that break a rule ──────────────────────────────────────────────────────────────────────────


BAD_ROWS: Final = (
    (None, 0, "category: must not be NULL"),
    ("", 0, "category: is empty"),
    (" \u2003", 0, "category: is empty"),
    ("a\nb", 0, "category: holds a control character"),
    ("a\x7f", 0, "category: holds a control character"),
    ("a\x85", 0, "category: holds a control character"),
    ("x" * 101, 0, "category: string should have at most 100 characters"),
    (b"bytes", 0, "category: not a text"),
    ("fine", None, "position: must not be NULL"),
    ("fine", "first", "position: not a whole number"),
    ("fine", 0.5, "position: not a whole number"),
    ("fine", float("inf"), "position: not a whole number"),
)


def test_a_bad_row_costs_the_category_and_not_the_market(site: Site) -> None:
    for number, (category, position, _) in enumerate(BAD_ROWS):
        insert_market(site.connection, number)
        insert_category(site.connection, category, position, market_id=market_id(number))
        insert_category(site.connection, "good", 5, market_id=market_id(number))
    report = site.build()
    reasons = {row.key: row.reason for row, _ in report.quarantine if row.relation == "market_categories"}
    assert (report.built, report.quarantine.total(), len(reasons)) == (len(BAD_ROWS), len(BAD_ROWS), len(BAD_ROWS))
    for number, (_, _, reason) in enumerate(BAD_ROWS):
        assert (site.item(number)["category"], site.item(number)["categories"]) == ("good", ["good"])
        assert reasons[market_id(number)].startswith(reason)


def test_a_category_that_a_market_has_twice_counts_where_it_stands_first(site: Site) -> None:
    insert_market(site.connection)
    for category, position in (("b", 5), ("a", 2), ("b", 1)):
        insert_category(site.connection, category, position)
    report = site.build()
    assert site.item()["categories"] == ["b", "a"]
    assert [row.reason for row, _ in report.quarantine] == ["category: the market has it already (b)"]
    assert site.listed(keys.list_name("all", "new", "b")) == [market_id(1)]


def test_categories_in_one_position_follow_by_name(site: Site) -> None:
    insert_market(site.connection)
    for category, position in (("b", 1), ("a", 1), ("C", 1), ("z", -1), ("m", 10**12)):
        insert_category(site.connection, category, position)
    site.build()
    assert site.item()["categories"] == ["z", "C", "a", "b", "m"]


def test_what_is_strange_but_allowed_is_shown_as_it_is(site: Site) -> None:
    names = ["👩\u200d🚀 space", "a\u2028b", "</script>", "x" * 100, " padded "]
    insert_market(site.connection)
    for position, name in enumerate(names):
        insert_category(site.connection, name, position)
    assert site.build().quarantine.total() == 0
    assert site.item()["categories"] == names
    index = {one["slug"]: one["name"] for one in site.read(keys.BUILD)["categories"]}
    assert index == {slugs.of_category(name): name for name in names}
    assert all(site.has_lists(slug) for slug in index)


def test_hidden_markets_give_no_category_and_take_no_slug(site: Site) -> None:
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


# ── lists of categories ───────────────────────────────────────────────────────────────────────────────────────────


def ranked(database: Path) -> dict[str, list[str]]:
    """Every list of politics and of the elections, by the database itself; times are in one form there after all."""
    orders = {
        "popular": "trader_count DESC, volume DESC",
        "activity": "instant(last_activity_at) DESC",
        "volume": "volume DESC",
        "new": "instant(created_at) DESC",
        "ended": "instant(coalesce(resolved_at, close_time)) DESC",
    }
    found = {}
    with closing(sqlite3.connect(database)) as connection:
        connection.create_function("instant", 1, lambda text: text.replace("T", " ").rstrip("Z")[:23].ljust(23, "0"))
        for name, slug in (("politics", POLITICS), ("u.s. 2024 elections", ELECTIONS)):
            for status, states in STATES_OF_FILTER.items():
                marks = ", ".join("?" * len(states))
                for sort in SORTS:
                    rows = connection.execute(
                        "SELECT lower(id) FROM markets WHERE approval = 'approved' AND is_listed"
                        " AND id NOT IN (SELECT market_id FROM fx_members WHERE is_public)"
                        " AND id IN (SELECT market_id FROM market_categories WHERE category = ?)"
                        f" AND status IN ({marks}) ORDER BY {orders[sort]}, lower(id)",
                        [name, *states],
                    )
                    found[keys.list_name(status, sort, slug)] = [row[0] for row in rows]
    return found


def walk(published: Mapping[str, bytes], list_name: str, limit: int) -> list[str]:
    page = json.loads(published[keys.first_page(list_name, limit)])
    found = [item["id"] for item in page["items"]]
    while page["nextCursor"] is not None:
        place = cursors.read(list_name, page["nextCursor"])
        page = json.loads(published[keys.page(list_name, place.generation, limit, place.position)])
        found += [item["id"] for item in page["items"]]
    return found


def test_every_list_of_a_category_is_walked_in_the_databases_order(demo_folder: Path, extended_output: Path) -> None:
    published, expected = files(extended_output), ranked(demo_folder / "markets.db")
    assert len(expected) == 60
    assert sum(len(ids) > 2 for ids in expected.values()) > 20
    for name, ids in expected.items():
        for limit in (1, 2, 7, 20, 100):
            assert walk(published, name, limit) == ids, (name, limit)


def test_the_lists_of_all_categories_are_those_of_the_core(demo_output: Path, extended_output: Path) -> None:
    core, extended = files(demo_output), files(extended_output)
    for status in STATUS_FILTERS:
        for sort in SORTS:
            name = keys.list_name(status, sort)
            assert walk(extended, name, 20) == walk(core, name, 20)


def test_a_cursor_is_bound_to_its_category(extended_output: Path) -> None:
    name = keys.list_name("all", "new", POLITICS)
    at = json.loads((extended_output / keys.first_page(name, 1)).read_bytes())["nextCursor"]
    assert cursors.read(name, at).position == 1
    for other in (keys.list_name("all", "new"), keys.list_name("all", "new", ELECTIONS)):
        with pytest.raises(cursors.CursorError):
            cursors.read(other, at)


def test_every_category_has_lists_unless_the_settings_choose(site: Site) -> None:
    for number, category in enumerate(["weather", "Formula 1", "u.s. elections"], 1):
        insert_market(site.connection, number)
        insert_category(site.connection, category, market_id=market_id(number))
    made = {name: slugs.of_category(name) for name in ("weather", "Formula 1", "u.s. elections")}

    def offered(**settings: object) -> set[str]:
        site.build(**settings)
        index = {one["name"] for one in site.read(keys.BUILD)["categories"]}
        assert {name for name, slug in made.items() if site.has_lists(slug)} == index
        assert len(site.manifest().lists) == 30 * (1 + len(index))
        return index

    assert offered() == {*made}
    assert offered(categories="Formula 1,weather") == {"Formula 1", "weather"}
    assert offered(categories=made["u.s. elections"]) == {"u.s. elections"}
    assert offered(categories="[]") == set()
    assert site.item(2)["categories"] == ["Formula 1"]


def test_a_configured_category_that_no_market_has_gets_no_lists_and_is_told(site: Site) -> None:
    insert_market(site.connection)
    insert_category(site.connection, "weather")
    report = site.build(categories="weather,wether")
    assert report.remarks == ["categories: no public market is in wether, so it has no lists"]
    assert json.loads((site.output / "report.json").read_bytes())["remarks"] == report.remarks
    assert [one["slug"] for one in site.read(keys.BUILD)["categories"]] == ["weather"]


def test_a_category_of_fx_members_alone_has_empty_lists(site: Site) -> None:
    insert_market(site.connection)
    insert_fx_member(site.connection)
    insert_category(site.connection, "fx")
    site.build()
    assert site.market()["category"] == "fx"
    assert site.listed(keys.list_name("all", "new", "fx")) == []


# ── markets by their slugs ────────────────────────────────────────────────────────────────────────────────────────


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


def test_a_slug_of_unusual_form_leads_to_its_market(site: Site) -> None:
    unusual = ["Upper-CASE", "-leading", "s" * 223, "S" * 255, "_", "lists"]
    for number, slug in enumerate(unusual):
        insert_market(site.connection, number, slug=slug)
    assert site.build().remarks == []
    for number, slug in enumerate(unusual):
        assert site.item(number)["slug"] == slug
        assert site.by_slug(slug) == (site.output / keys.detail(market_id(number))).read_bytes()


def test_a_market_with_an_unusable_slug_is_found_by_its_id_only_and_the_report_says_so(site: Site) -> None:
    unusable = ["s" * 256, market_id(1), market_id(99), "snapshot", "Snapshot", "a b", "ü", b"blob"]
    for number, slug in enumerate(unusable):
        insert_market(site.connection, number, slug=slug)
    report = site.build()
    assert (report.quarantine.total(), len(report.remarks)) == (0, len(unusable))
    assert not (site.output / keys.SLUGS).exists()
    for number, remark in enumerate(report.remarks):
        assert not {"slug"} & {*site.item(number), *site.market(number)}
        assert remark.startswith(f"market {market_id(number)} is found by its id only; its slug cannot be used: ")


def test_a_slug_of_two_markets_leads_to_neither_until_one_gives_it_up(site: Site) -> None:
    insert_market(site.connection, 1, slug="same")
    insert_market(site.connection, 2, slug="SAME")
    assert len(site.build().remarks) == 2
    assert (site.by_slug("same"), "slug" in site.item(1), "slug" in site.item(2)) == (None, False, False)
    site.set(2, slug="other")
    assert site.build().remarks == []
    assert (site.item(1)["slug"], site.item(2)["slug"]) == ("same", "other")


def test_remarks_are_told_on_stderr_too(site: Site) -> None:
    for number in range(1, 25):
        insert_market(site.connection, number, slug="same")
    done = run("build", "--set", "variant=extended", "--set", "source.url=sqlite:///markets.db", cwd=_home(site.folder))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is found by its id only") == 20
    assert "and 4 more such remarks, all in report.json" in done.stderr


def _home(folder: Path) -> Path:
    (folder / "config.yaml").touch()
    return folder


# ── ends ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_withdrawn_market_is_gone_by_id_by_slug_and_from_its_categories_past_and_present(site: Site) -> None:
    for number in range(1, 6):
        insert_market(site.connection, number, slug=f"market-{number}")
        insert_category(site.connection, "rain" if number < 4 else "snow", market_id=market_id(number))
    site.build()
    site.move(1, "wind")
    site.set(4, question="Edited?")
    site.build()
    retired = {one.list for one in site.manifest().retired}
    assert {keys.list_name("all", "new", "rain"), keys.list_name("all", "new", "snow")} <= retired
    site.set(1, approval="rejected")
    report = site.build()
    assert report.withdrawn == [market_id(1)]
    assert (site.by_slug("market-1"), (site.output / keys.detail(market_id(1))).exists()) == (None, False)
    assert not site.has_lists("wind")
    kept = {one.list for one in site.manifest().retired}
    assert keys.list_name("all", "new", "rain") not in kept
    assert keys.list_name("all", "new", "snow") in kept
    assert [key for key, body in files(site.output).items() if market_id(1).encode() in body] == []
    check_whole(site.output)


def test_a_walk_in_a_category_that_a_market_left_goes_on(site: Site) -> None:
    for number in range(1, 6):
        insert_market(site.connection, number)
        insert_category(site.connection, "rain", market_id=market_id(number))
    site.build()
    name = keys.list_name("open", "new", "rain")
    before = walk(files(site.output), name, 2)
    place = cursors.read(name, site.read(keys.first_page(name, 2))["nextCursor"])
    for number in range(1, 6):
        site.move(number, "snow")
    site.build()
    assert not site.has_lists("rain")
    page = site.read(keys.page(name, place.generation, 2, place.position))
    assert [item["id"] for item in page["items"]] == before[2:4]
    build_now(site.settings(), AS_OF + timedelta(days=1))
    assert not (site.output / keys.list_prefix(name) / place.generation).exists()
    check_whole(site.output)


def test_a_slug_that_changes_or_changes_hands_leads_where_it_should(site: Site) -> None:
    for number, slug in ((1, "one"), (2, "two"), (3, "three")):
        insert_market(site.connection, number, slug=slug)
    site.build()
    site.set(1, slug="two")
    site.set(2, slug="one")
    site.set(3, slug="trois")
    site.build()
    for number, slug in ((1, "two"), (2, "one"), (3, "trois")):
        assert site.by_slug(slug) == (site.output / keys.detail(market_id(number))).read_bytes()
    assert site.by_slug("three") is None
    site.set(1, approval="pending", slug="gone")
    site.set(3, slug="two")
    site.build()
    assert json.loads(site.by_slug("two") or b"")["market"]["id"] == market_id(3)
    check_whole(site.output)


def test_the_manifest_tells_every_key_of_a_market(site: Site) -> None:
    insert_market(site.connection, 1, slug="One")
    insert_market(site.connection, 2)
    site.build()
    record = site.manifest()
    assert list(record.details(market_id(1))) == [keys.detail(market_id(1)), keys.detail_by_slug("one")]
    assert list(record.details(market_id(2))) == [keys.detail(market_id(2))]
    assert {key for number in (1, 2) for key in record.details(market_id(number))} <= record.objects.keys()


def in_folder(site: Site, command: str, *arguments: str) -> None:
    """Run a command that must not fail, with the target www/."""
    settings = ("variant=extended", "source.url=sqlite:///markets.db", "publish.target=www", "publish.cache_fill=0")
    overrides = [word for one in settings for word in ("--set", one)]
    done = run(command, *arguments, *overrides, cwd=_home(site.folder))
    assert done.returncode == 0, done.stderr


def published(site: Site) -> dict[str, bytes]:
    found = files(site.folder / "www")
    assert found == files(site.output)
    return found


def four_published_markets(site: Site) -> None:
    for number in range(1, 5):
        insert_market(site.connection, number, slug=f"market-{number}")
        insert_category(site.connection, "rain" if number < 4 else "snow", market_id=market_id(number))
    in_folder(site, "rebuild", "--as-of", "2024-01-31T12:00:00Z")
    site.set(1, volume=77.0)
    in_folder(site, "rebuild", "--as-of", "2024-01-31T12:10:00Z")
    shown = published(site)
    assert shown[keys.detail_by_slug("market-1")] == shown[keys.detail(market_id(1))]
    assert {one.list for one in site.manifest().retired} >= {keys.list_name("all", "new", "rain")}


def test_a_takedown_reaches_slugs_and_lists_of_categories(site: Site) -> None:
    four_published_markets(site)
    in_folder(site, "takedown", market_id(1))
    left = published(site)
    assert keys.detail_by_slug("market-1") not in left
    assert [key for key, body in left.items() if market_id(1).encode() in body or b"market-1" in body] == []
    assert walk(left, keys.list_name("all", "new", "rain"), 1) == [market_id(2), market_id(3)]
    assert walk(left, keys.list_name("all", "new", "snow"), 1) == [market_id(4)]
    record = json.loads(left[keys.BUILD])
    assert (record["markets"], record["lists"][keys.list_name("all", "new", "rain")]) == (3, 2)
    assert {one["slug"] for one in record["categories"]} == {"rain", "snow"}
    in_folder(site, "rebuild", "--as-of", "2024-01-31T12:20:00Z")
    rebuilt = published(site)
    changed = {key for key in left.keys() | rebuilt.keys() if left.get(key) != rebuilt.get(key)}
    assert changed == {keys.BUILD}, "what is left is what a build without the market makes"
    assert list(site.manifest().slugs) == [market_id(2), market_id(3), market_id(4)]


def test_a_withdrawn_market_is_gone_from_what_is_published_by_its_slug_too(site: Site) -> None:
    four_published_markets(site)
    site.set(1, approval="rejected")
    in_folder(site, "rebuild", "--allow-shrink", "--as-of", "2024-01-31T12:20:00Z")
    left = published(site)
    assert [key for key, body in left.items() if market_id(1).encode() in body] == []
    assert keys.detail_by_slug("market-1") not in left


def test_a_site_can_change_its_variant_and_back(site: Site) -> None:
    insert_market(site.connection, slug="rain")
    insert_category(site.connection, "weather")
    site.build(variant="core")
    first = files(site.output)
    site.build()
    assert site.by_slug("rain")
    site.build(variant="core")
    build_now(site.settings(variant="core"), AS_OF + timedelta(days=1))
    again = files(site.output)
    assert [key for key in again.keys() | first.keys() if again.get(key) != first.get(key)] == [keys.BUILD]
    check_whole(site.output)


def test_a_second_build_in_place_writes_nothing(site: Site) -> None:
    insert_market(site.connection, slug="rain")
    insert_category(site.connection, "weather")
    assert build_now(site.settings()).written > 6_000
    report = build_now(site.settings())
    assert (report.written, report.deleted) == (0, 0)


def test_no_byte_of_the_extended_output_is_private(extended_output: Path) -> None:
    everything = files(extended_output, "")
    assert len(everything) > 10_000
    assert [name for name, content in everything.items() if b"CANARY" in content or "CANARY" in name] == []


def test_the_settings_of_the_shared_build_are_what_its_lists_show(extended_output: Path) -> None:
    record = Manifest.model_validate_json((extended_output / "manifest.json").read_bytes())
    assert EXTENDED["categories"] == "politics,u.s. 2024 elections"
    assert {name.partition("/")[0].partition(".")[2] for name in record.lists} == {"", POLITICS, ELECTIONS}
