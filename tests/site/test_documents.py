"""The artifacts of a build: every list sorted, every document once."""

import json
from collections.abc import Callable
from datetime import datetime
from functools import cmp_to_key
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.api import keys
from generator.api.contract import MARKET_STATUSES, SORTS, STATUS_FILTERS
from generator.config.settings import Config
from generator.site import documents, families
from generator.site.catalog import Catalog
from generator.site.family import Ingredients
from tests.support.sites.builds import make_config
from tests.support.sites.rows import FX_MEMBER, catalog_of, market_id, public_market

Item = dict[str, Any]

# ── the sort orders, implemented a second time on wire items, as pairwise comparisons ──────────────────────────────


def instant(text: str) -> float:
    return (datetime.fromisoformat(text) - datetime.fromisoformat("2000-01-01T00:00:00Z")).total_seconds()


def ended(item: Item) -> float:
    return instant(item["closeTime"] if item["resolvedAt"] is None else item["resolvedAt"])


COMPARED: dict[str, list[Callable[[Item], float]]] = {
    "popular": [lambda item: item["traderCount"], lambda item: item["volume"]],
    "activity": [lambda item: instant(item["lastActivityAt"])],
    "volume": [lambda item: item["volume"]],
    "new": [lambda item: instant(item["createdAt"])],
    "ended": [ended],
}
SELECTED: dict[str, set[str]] = {"all": {*MARKET_STATUSES}, "archive": {"closed", "resolved", "cancelled"}}


def naive(items: list[Item], status: str, sort: str) -> list[Item]:
    def compare(left: Item, right: Item) -> int:
        for value in COMPARED[sort]:
            if value(left) != value(right):
                return 1 if value(left) < value(right) else -1
        return 1 if left["id"] > right["id"] else -1

    selected = [item for item in items if item["status"] in SELECTED.get(status, {status})]
    return sorted(selected, key=cmp_to_key(compare))


#: Few different values, so that most comparisons end in a tie.
few_times = st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01 00:00:00.000400", "2026-01-02T01:00:00+01:00"])
columns = st.fixed_dictionaries(
    {
        "status": st.sampled_from(MARKET_STATUSES),
        "trader_count": st.integers(0, 2),
        "volume": st.sampled_from([0.0, 1.0, 10.0]),
        "created_at": few_times,
        "last_activity_at": few_times,
        "close_time": few_times,
        "resolved_at": st.none() | few_times,
    }
)
catalogs = st.dictionaries(st.integers(0, 2**32 - 1), columns, max_size=26)


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(catalogs, st.randoms(use_true_random=False))
def test_every_list_is_exactly_the_sorted_one(rows: dict[int, dict[str, Any]], rng: Any) -> None:
    markets = [public_market(number, **row) for number, row in rows.items()]
    items = [json.loads(market.body) for market in markets]
    rng.shuffle(markets)
    found = {made.name: [*map(json.loads, made.items)] for made in documents.lists(catalog_of(*markets), ())}
    wanted = product(STATUS_FILTERS, SORTS)
    assert found == {f"{status}/{sort}": naive(items, status, sort) for status, sort in wanted}


def documents_of(made: Catalog, config: Config) -> dict[str, bytes]:
    items = {one.name: one.items for one in documents.lists(made, ())}
    derived = families.of_markets(Ingredients(made, items.__getitem__, config, lambda _: None))
    return {artifact.key: artifact.body for artifact in (*derived, *families.of_settings(config))}


def test_the_documents_are_those_of_markets_the_errors_and_those_that_describe_the_site(tmp_path: Path) -> None:
    made = catalog_of(public_market(1), public_market(2, fx=FX_MEMBER))
    found = documents_of(made, make_config(tmp_path, snapshot__size=1))
    errors = [keys.error(status) for status in (400, 404, 405, 429, 503)]
    feeds = [keys.feed(name, extension) for name in ("new", "resolved") for extension in ("json", "atom")]
    of_markets = [keys.SNAPSHOT, keys.PRICES, *feeds]
    assert list(found) == [*of_markets, keys.SITE_INDEX, keys.OPENAPI, keys.LLMS, keys.CHANGELOG, *errors]
    groups = json.loads(found[keys.SNAPSHOT])
    assert {name: [market["id"] for market in group] for name, group in groups.items()} == {
        "freshMarkets": [market_id(1)],
        "closingSoonMarkets": [market_id(1)],
    }


def test_feeds_begin_like_their_lists_without_members_of_fx_families(tmp_path: Path) -> None:
    settled: dict[str, Any] = {"status": "resolved", "resolution": "YES"}
    made = catalog_of(
        public_market(1, **settled, created_at="2026-01-01T00:00:00Z", resolved_at="2026-01-09T00:00:00Z"),
        public_market(2, **settled, created_at="2026-01-02T00:00:00Z", resolved_at="2026-01-08T00:00:00Z"),
        public_market(3, created_at="2026-01-03T00:00:00Z"),
        public_market(4, fx=FX_MEMBER, created_at="2026-01-04T00:00:00Z"),
    )
    found = documents_of(made, make_config(tmp_path))
    for name, expected in (("new", [3, 2, 1]), ("resolved", [1, 2])):
        feed = json.loads(found[keys.feed(name, "json")])
        assert [entry["id"] for entry in feed["items"]] == [f"urn:uuid:{market_id(number)}" for number in expected]
        assert found[keys.feed(name, "atom")].count(b"<entry>") == len(expected)


def test_feeds_can_be_left_out(tmp_path: Path) -> None:
    found = documents_of(catalog_of(public_market(1)), make_config(tmp_path, feeds__enabled=False))
    assert not [key for key in found if key.startswith(f"{keys.FEEDS}/")]
    assert b"/feeds/" not in found[keys.SITE_INDEX] + found[keys.LLMS]
