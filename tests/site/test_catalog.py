"""Orderings, lists and snapshot groups of markets in memory."""

import gc
import tracemalloc
from typing import Any

from pydantic_core import from_json

from generator.api import contract, slugs
from generator.api.contract import SORTS, Sort, StatusFilter
from generator.markets import row_validation
from generator.markets.market import Market
from generator.site.catalog import Catalog
from tests.support.sites.builds import NOW
from tests.support.sites.rows import FX_MEMBER, catalog_of, market_id, market_row, public_market

NAMES = {market_id(number): f"{number}" for number in range(100)}


def order(made: Catalog, sort: Sort, status: StatusFilter = "all") -> str:
    """The numbers of the markets in a list."""
    lists = {(of_status, of_sort): items for _, of_status, of_sort, items in made.lists()}
    return " ".join(NAMES[from_json(item)["id"]] for item in lists[status, sort])


def fresh(made: Catalog, size: int = 6) -> str:
    return " ".join(NAMES[market.id] for market in made.snapshot(size).fresh_markets)


def closing(made: Catalog, size: int = 6) -> str:
    return " ".join(NAMES[market.id] for market in made.snapshot(size).closing_soon_markets)


def test_members_of_a_public_fx_family_are_in_no_list_and_no_group_but_in_the_catalog() -> None:
    made = catalog_of(public_market(1), public_market(2, fx=FX_MEMBER))
    assert {order(made, sort) for sort in SORTS} == {"1"}
    assert (fresh(made), closing(made)) == ("1", "1")
    assert [market.item.id for market in made.markets] == [market_id(1), market_id(2)]


def test_fresh_markets_are_the_newest_that_accept_bets() -> None:
    made = catalog_of(
        public_market(1, created_at="2026-01-01T00:00:00Z"),
        public_market(2, created_at="2026-01-03T00:00:00Z"),
        public_market(3, created_at="2026-01-02T00:00:00Z", trading_pause_reason=" "),
        public_market(4, created_at="2026-01-09T00:00:00Z", status="closed"),
        public_market(5, created_at="2026-01-09T00:00:00Z", close_time=NOW),
        public_market(6, created_at="2026-01-09T00:00:00Z", trading_pause_reason="under review"),
    )
    assert fresh(made) == "2 3 1"
    assert fresh(made, 2) == "2 3"
    assert fresh(made, 0) == ""


def test_closing_soon_are_the_open_ones_that_close_after_as_of_soonest_first() -> None:
    made = catalog_of(
        public_market(1, close_time="2026-01-31T12:00:00.001Z"),
        public_market(2, close_time="2026-01-31T12:00:00Z"),
        public_market(3, close_time="2026-01-31T11:59:59Z"),
        public_market(4, close_time="9999-12-31T00:00:00Z"),
        public_market(5, close_time="2026-01-31T13:00:00+00:30"),
        public_market(6, close_time="2026-02-01T00:00:00Z", status="resolved"),
    )
    assert closing(made) == "1 5 4"
    assert closing(made, 2) == "1 5"


def test_ties_in_the_groups_end_with_the_id_ascending() -> None:
    made = catalog_of(*(public_market(number) for number in (9, 3, 5)))
    assert (fresh(made), closing(made)) == ("3 5 9", "3 5 9")


def of_categories(number: int, *names: str, **columns: Any) -> Market:
    row = market_row(number, **columns)
    extended = row_validation.ExtendedFields(None, [*names])
    return Market.of(row_validation.market(row, fx=columns.get("fx"), fills24h=0, as_of=NOW, extended=extended))


def test_a_category_has_the_lists_that_all_have_with_its_markets_only() -> None:
    made = catalog_of(
        of_categories(1, "rain", "F 1", volume=1.0),
        of_categories(2, "rain", volume=2.0, status="closed"),
        of_categories(3, volume=3.0),
        of_categories(4, "rain", volume=4.0),
    )
    f1 = slugs.of_category("F 1")
    assert made.categories() == {f1: "F 1", "rain": "rain"}
    lists = {(category, status, sort): items for category, status, sort, items in made.lists(made.categories())}
    assert len(lists) == 90
    shown = {key: " ".join(NAMES[from_json(item)["id"]] for item in items) for key, items in lists.items()}
    assert shown["rain", "all", "volume"] == "4 2 1"
    assert shown["rain", "open", "volume"] == "4 1"
    assert shown[f1, "all", "volume"] == "1"
    assert shown[None, "all", "volume"] == "4 3 2 1"
    assert {category for category, *_ in made.lists(["rain"])} == {None, "rain"}


def test_a_market_takes_about_a_kilobyte_so_that_a_million_of_them_fit() -> None:
    public_market()  # what is made once
    tracemalloc.start()
    try:
        held = [public_market(number, question=f"Will it rain on day {number}, everywhere?") for number in range(200)]
        gc.collect()  # frees the tuples that Python keeps to use again
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(held) < 1_300


def test_the_item_of_a_market_is_what_lists_show() -> None:
    market = of_categories(1, "rain", "F 1", prob=0.1, volume=1e15, question="\u2028 é \U0001f327")
    assert contract.encode(market.item) == market.body
    assert market.category_names() == {"rain": "rain", slugs.of_category("F 1"): "F 1"}
