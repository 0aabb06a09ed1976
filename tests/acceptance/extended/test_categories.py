"""Lists of categories."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from generator.api import cursors, keys, slugs
from generator.api.contract import SORTS, STATES_OF_FILTER, STATUS_FILTERS
from tests.acceptance.extended.site import ELECTIONS, POLITICS, ExtendedSite, walk
from tests.support.sites.builds import files
from tests.support.sites.rows import insert_category, insert_fx_member, insert_market, market_id


def ranked(database: Path) -> dict[str, list[str]]:
    """Every list of politics and of the elections, sorted by the database, where all times have one form."""
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


@pytest.mark.campaign(short=0)
def test_every_list_of_a_category_is_walked_in_the_databases_order(demo_folder: Path, extended_output: Path) -> None:
    published, expected = files(extended_output), ranked(demo_folder / "markets.db")
    assert len(expected) == 60
    assert sum(len(ids) > 2 for ids in expected.values()) > 20
    for name, ids in expected.items():
        for limit in (1, 2, 7, 20, 100):
            assert walk(published, name, limit) == ids, (name, limit)


@pytest.mark.campaign(short=0)
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


@pytest.mark.campaign(short=0)
def test_every_category_has_lists_unless_the_settings_choose(extended_site: ExtendedSite) -> None:
    for number, category in enumerate(["weather", "Formula 1", "u.s. elections"], 1):
        insert_market(extended_site.connection, number)
        insert_category(extended_site.connection, category, market_id=market_id(number))
    made = {name: slugs.of_category(name) for name in ("weather", "Formula 1", "u.s. elections")}

    def offered(**settings: object) -> set[str]:
        extended_site.build(**settings)
        index = {category["name"] for category in extended_site.read(keys.BUILD)["categories"]}
        assert {name for name, slug in made.items() if extended_site.has_lists(slug)} == index
        assert len(extended_site.manifest().lists()) == 30 * (1 + len(index))
        return index

    assert offered() == {*made}
    assert offered(categories="Formula 1,weather") == {"Formula 1", "weather"}
    assert offered(categories=made["u.s. elections"]) == {"u.s. elections"}
    assert offered(categories="[]") == set()
    assert extended_site.item(2)["categories"] == ["Formula 1"]


def test_a_configured_category_that_no_market_has_gets_no_lists_and_is_told(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection)
    insert_category(extended_site.connection, "weather")
    report = extended_site.build(categories="weather,wether")
    told = ["category wether: has no public market; it gets no lists: correct the setting `categories`"]
    assert [remark.sentence() for remark in report.remarks] == told
    assert json.loads((extended_site.output / "report.json").read_bytes())["remarks"] == told
    assert [category["slug"] for category in extended_site.read(keys.BUILD)["categories"]] == ["weather"]


def test_a_category_of_fx_members_alone_has_empty_lists(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection)
    insert_fx_member(extended_site.connection)
    insert_category(extended_site.connection, "fx")
    extended_site.build()
    assert extended_site.market()["category"] == "fx"
    assert extended_site.listed(keys.list_name("all", "new", "fx")) == []
