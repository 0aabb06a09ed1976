"""Lists of categories, and markets that are found by their slugs."""

import json
from itertools import product
from pathlib import Path

import pytest

from generator.api import cursors, keys, slugs
from generator.api.contract import SORTS, STATUS_FILTERS
from tests.acceptance.extended.site import ELECTIONS, POLITICS, ExtendedSite, walk
from tests.support.edges.serving import in_order
from tests.support.sites.builds import files
from tests.support.sites.rows import insert_category, insert_fx_member, insert_market, market_id


def test_every_list_of_a_category_is_walked_in_the_databases_order(demo_folder: Path, extended_output: Path) -> None:
    published, lengths = files(extended_output), list[int]()
    for (category, slug), status, sort in product(
        (("politics", POLITICS), ("u.s. 2024 elections", ELECTIONS)), STATUS_FILTERS, SORTS
    ):
        ids = in_order(demo_folder / "markets.db", status, sort, category)
        lengths.append(len(ids))
        for limit in (1, 2, 7, 20, 100):
            assert walk(published, keys.list_name(status, sort, slug), limit) == ids, (slug, status, sort, limit)
    assert len(lengths) == 60
    assert sum(length > 2 for length in lengths) > 20


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


@pytest.mark.usefixtures("few_limits", "one_processor")
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


# ── slugs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def test_a_slug_of_unusual_form_leads_to_its_market(extended_site: ExtendedSite) -> None:
    unusual = ["Upper-CASE", "-leading", "s" * 223, "S" * 255, "_", "lists"]
    for number, slug in enumerate(unusual):
        insert_market(extended_site.connection, number, slug=slug)
    assert extended_site.build().remarks == []
    for number, slug in enumerate(unusual):
        assert extended_site.item(number)["slug"] == slug
        assert extended_site.by_slug(slug) == (extended_site.output / keys.detail(market_id(number))).read_bytes()


def test_a_market_with_an_unusable_slug_is_found_by_its_id_only_and_the_report_says_so(
    extended_site: ExtendedSite,
) -> None:
    unusable = ["s" * 256, market_id(1), market_id(99), "snapshot", "Snapshot", "a b", "ü", b"blob"]
    for number, slug in enumerate(unusable):
        insert_market(extended_site.connection, number, slug=slug)
    report = extended_site.build()
    assert (report.quarantine.total(), len(report.remarks)) == (0, len(unusable))
    assert not (extended_site.output / keys.SLUGS).exists()
    for number, remark in enumerate(sorted(report.remarks, key=lambda remark: remark.key)):
        assert not {"slug"} & {*extended_site.item(number), *extended_site.market(number)}
        assert remark.sentence().startswith(f"market {market_id(number)}: slug cannot be used: ")
        assert remark.sentence().endswith("; it is found by its id only")


def test_a_slug_of_two_markets_leads_to_neither_until_one_gives_it_up(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, 1, slug="same")
    insert_market(extended_site.connection, 2, slug="SAME")
    assert len(extended_site.build().remarks) == 2
    assert (extended_site.by_slug("same"), "slug" in extended_site.item(1), "slug" in extended_site.item(2)) == (
        None,
        False,
        False,
    )
    extended_site.set(2, slug="other")
    assert extended_site.build().remarks == []
    assert (extended_site.item(1)["slug"], extended_site.item(2)["slug"]) == ("same", "other")
