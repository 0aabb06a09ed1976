"""Order books are summed, fills are the newest, histories are thinned evenly in time, whatever the order of rows."""

import json
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api.contract import OrderBook
from generator.markets import row_validation
from generator.markets.detail import Book, MarketRows, from_rows, order_book
from generator.markets.fills import recent
from generator.markets.history import GRID, Point, history
from generator.markets.quarantine import Quarantine
from tests.support.sites.builds import NOW, make_config
from tests.support.sites.rows import fill_id, market_id, market_row

MARKET = market_id(1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(milliseconds: float) -> str:
    """The wire form of a moment after START."""
    return row_validation.timestamp((START + timedelta(milliseconds=milliseconds)).isoformat())


def milliseconds(time: str) -> int:
    return (datetime.fromisoformat(time) - datetime(1, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


# ── order book ────────────────────────────────────────────────────────────────────────────────────────────────────


def book(quarantine: Quarantine, *orders: tuple[Any, Any, Any]) -> Book:
    return order_book(MARKET, [(MARKET, *order) for order in orders], quarantine)


def levels(made: Book | OrderBook) -> dict[str, list[tuple[float, float]]]:
    return {side: [(level.price, level.amount) for level in getattr(made, side)] for side in ("bids", "asks")}


def test_orders_are_summed_per_price_best_first(quarantine: Quarantine) -> None:
    made = book(
        quarantine,
        *[("ask", 0.7, 1.0), ("ask", 0.6, 2.0), ("ask", 0.7, 4.0)],
        *[("bid", 0.3, 1.5), ("bid", 0.5, 3.0), ("bid", 0.3, 0.25), ("bid", 0.5, 0.0)],
    )
    assert levels(made) == {"bids": [(0.5, 3.0), (0.3, 1.75)], "asks": [(0.6, 2.0), (0.7, 5.0)]}
    assert quarantine.total() == 0


@pytest.mark.parametrize("others", [[], [("bid", None, 1.0)]], ids=["batch", "row by row"])
def test_prices_that_differ_by_rounding_errors_are_one_level(
    quarantine: Quarantine, others: list[tuple[Any, Any, Any]]
) -> None:
    made = book(
        quarantine,
        *[("bid", 0.35, 1.0), ("bid", 0.35000000000000003, 2.0), ("bid", 0.35000049, 4.0), ("bid", 0.350001, 8.0)],
        *[("ask", 0.99, 1.0), ("ask", 0.9900000000000001, 2.0), ("bid", 0.01, 1.0), ("bid", 0.009999999999, 2.0)],
        *others,
    )
    assert levels(made) == {"bids": [(0.350001, 8.0), (0.35, 7.0), (0.01, 3.0)], "asks": [(0.99, 3.0)]}
    assert quarantine.total() == len(others)


@pytest.mark.parametrize(
    "order",
    [
        *[("bid", price, 1.0) for price in (0.009, 0.009999998, 0.991, 0.990000002, float("nan"), None, "0.5")],
        *[("bid", 0.5, -1.0), ("bid", 0.5, float("inf")), ("bid", 0.5, None)],
        *[("buy", 0.5, 1.0), ("BID", 0.5, 1.0), (None, 0.5, 1.0)],
    ],
)
def test_a_bad_order_is_left_out_and_named(quarantine: Quarantine, order: tuple[Any, Any, Any]) -> None:
    made = book(quarantine, ("bid", 0.4, 1.0), order, ("ask", 0.6, 1.0))
    assert levels(made) == {"bids": [(0.4, 1.0)], "asks": [(0.6, 1.0)]}
    (row,) = quarantine
    assert (row.relation, row.key, row.rows) == ("orders", MARKET, 1)


def test_a_sum_that_is_no_number_any_more_costs_its_level(quarantine: Quarantine) -> None:
    made = book(quarantine, ("bid", 0.4, 1e308), ("bid", 0.4, 1e308), ("bid", 0.3, 1.0))
    assert levels(made) == {"bids": [(0.3, 1.0)], "asks": []}
    assert quarantine.total("orders") == 1


# ── recent fills ──────────────────────────────────────────────────────────────────────────────────────────────────


def fill(number: int, created_at: str, amount: float = 1.0) -> tuple[Any, ...]:
    return (MARKET, fill_id(number), amount, 2.0, 0.5, created_at)


def shown_fills(fills: Iterable[tuple[Any, ...]], limit: int, quarantine: Quarantine) -> list[int]:
    return [int(shown.id[:8], 16) for shown in recent(fills, limit, quarantine)]


@settings(deadline=None, max_examples=150)
@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0, 12), st.randoms(use_true_random=False))
def test_the_newest_fills_are_shown_newest_first_and_ties_by_id(
    moments: list[int], limit: int, rng: random.Random
) -> None:
    fills = [fill(number, at(1000 * moment)) for number, moment in enumerate(moments)]
    expected = sorted(range(len(moments)), key=lambda number: (-moments[number], number))[:limit]
    rng.shuffle(fills)
    quarantine = Quarantine()
    assert shown_fills(fills, limit, quarantine) == expected
    assert quarantine.total() == 0


def test_a_fill_that_is_there_twice_is_shown_once_and_named(quarantine: Quarantine) -> None:
    fills = [fill(1, at(5)), fill(2, at(4)), fill(1, at(5))]
    assert shown_fills(fills, 10, quarantine) == [1, 2]
    assert [(row.key, row.reason) for row in quarantine] == [(fill_id(1), "id: another fill has the same")]


@pytest.mark.parametrize(
    "bad",
    [
        (MARKET, "no-uuid", 1.0, 2.0, 0.5, "2026-01-15 00:00:00"),
        (MARKET, fill_id(9), -1.0, 2.0, 0.5, "2026-01-15 00:00:00"),
        (MARKET, fill_id(9), 1.0, float("nan"), 0.5, "2026-01-15 00:00:00"),
        (MARKET, fill_id(9), 1.0, 2.0, 0.5, None),
        (MARKET, fill_id(9), 1.0, 2.0, 0.5, "yesterday"),
    ],
)
def test_a_bad_fill_is_left_out_and_named(quarantine: Quarantine, bad: tuple[Any, ...]) -> None:
    fills = [fill(1, "2026-01-14 00:00:00"), bad, fill(2, "2026-01-16 00:00:00")]
    assert shown_fills(fills, 10, quarantine) == [2, 1]
    (row,) = quarantine
    assert (row.relation, row.key, row.rows) == ("fills", bad[1], 1)


# ── history ───────────────────────────────────────────────────────────────────────────────────────────────────────


def thinned(points: Sequence[Point], limit: int) -> list[Point]:
    quarantine = Quarantine()
    made, is_thinned = history(MARKET, ((MARKET, time, prob) for time, prob in points), limit, quarantine)
    assert quarantine.total() == 0
    assert is_thinned == (len(points) > limit > 0)
    return made


points_of_moments = st.lists(
    st.tuples(st.integers(0, 2_000).map(at), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=80
)
wide_points = st.lists(
    st.tuples(
        st.datetimes().map(lambda moment: row_validation.timestamp(moment.isoformat(" ", "microseconds"))),
        st.floats(0, 1),
    ),
    max_size=60,
)


def spans_with_points(points: Sequence[Point], count: int) -> set[int]:
    """Which of `count` equal spans, each without its beginning, hold points."""
    start, end = milliseconds(points[0][0]), milliseconds(points[-1][0])
    length = max(1, end - start)
    return {-(-(milliseconds(time) - start) * count // length) for time, _ in points} - {0}


@settings(deadline=None, max_examples=200)
@given(points_of_moments | wide_points, st.integers(2, 30), st.randoms(use_true_random=False))
def test_a_history_is_thinned_evenly_in_time(points: list[Point], limit: int, rng: random.Random) -> None:
    expected = thinned(points, limit)
    ordered = sorted((time, prob + 0.0) for time, prob in points)
    assert expected == sorted(expected)
    assert len(expected) <= limit
    remaining = list(ordered)
    for point in expected:
        remaining.remove(point)  # each is one of the points, and none is shown more often than it is there
    if len(points) <= limit:
        assert expected == ordered
    else:
        assert (expected[0], expected[-1]) == (ordered[0], ordered[-1])
        assert spans_with_points(expected, limit - 1) == spans_with_points(ordered, limit - 1)
    rng.shuffle(points)
    assert thinned(points, limit) == expected


def test_no_limit_of_points_means_no_history() -> None:
    assert thinned([(at(1), 0.5)], 0) == []


def test_the_last_point_of_each_span_is_the_one_that_is_kept() -> None:
    points = [(at(moment), 0.5) for moment in (0, 10, 49, 50, 51, 99, 100)]
    assert thinned(points, 3) == [(at(0), 0.5), (at(50), 0.5), (at(100), 0.5)]
    assert thinned(points, 2) == [(at(0), 0.5), (at(100), 0.5)]


@pytest.mark.parametrize("count", [3, 500, 2 * GRID + 5])
def test_points_of_one_moment_come_down_to_the_least_and_the_greatest(count: int) -> None:
    points = [(at(7), number / count) for number in range(count)]
    assert thinned(points, 2) == [points[0], points[-1]]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("count", [GRID, GRID + 1, 2 * GRID - 1, 2 * GRID, 2 * GRID + 1, 53_211])
def test_a_history_longer_than_the_grid_is_thinned_the_same_in_any_order(count: int) -> None:
    rng = random.Random(count)  # noqa: S311 - the same every time
    # Crowded towards the end, as in real markets, and not in whole seconds.
    moments = sorted(round(3e10 * rng.random() ** 0.2) for _ in range(count))
    points = [(at(moment), round(rng.random(), 4)) for moment in moments]
    shuffled = rng.sample(points, count)
    assert thinned(shuffled, 500) == thinned(points, 500) == thinned(points[::-1], 500)


def test_a_long_history_keeps_its_ends_and_no_span_without_a_point() -> None:
    count = 45_000
    points = [(at(1000 * number), (number % 101) / 100) for number in range(count)]
    shown = thinned(points[::-1], 500)
    assert len(shown) == 500
    assert (shown[0], shown[-1]) == (points[0], points[-1])
    assert {*shown} <= {*points}
    moments = [milliseconds(time) for time, _ in shown]
    span = 1000 * (count - 1) / 499
    assert max(later - earlier for earlier, later in pairwise(moments)) < 2 * span


def test_a_long_history_over_all_of_time_keeps_its_ends() -> None:
    step = timedelta(days=3652058) / 30_000
    first = datetime(1, 1, 1)  # noqa: DTZ001 - as databases store it
    points = [(row_validation.timestamp((first + step * number).isoformat()), 0.5) for number in range(30_001)]
    shown = thinned(points, 500)
    assert (len(shown), shown[0], shown[-1]) == (500, points[0], points[-1])


@pytest.mark.parametrize(
    ("recorded_at", "prob"),
    [
        *[(None, 0.5), ("yesterday", 0.5), ("2026-01-15 00:00:00,000000", 0.5), ("2026-01-15 00:00:00", 1.2)],
        *[("2026-01-15 00:00:00", float("nan")), ("2026-01-15 00:00:00", None), ("2026-01-15 00:00:00", "0.5")],
    ],
)
def test_a_bad_point_is_left_out_and_named(quarantine: Quarantine, recorded_at: Any, prob: Any) -> None:
    points = [(MARKET, at(1), 0.1), (MARKET, recorded_at, prob), (MARKET, at(0), 0.2)]
    assert history(MARKET, points, 500, quarantine) == ([(at(0), 0.2), (at(1), 0.1)], False)
    (row,) = quarantine
    assert (row.relation, row.key, row.rows) == ("probabilities", MARKET, 1)


# ── the whole ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_configuration_bounds_fills_and_points(tmp_path: Path, quarantine: Quarantine) -> None:
    market = row_validation.market(market_row(), fx=None, fills24h=0, as_of=NOW)
    shown = MarketRows(market, [], [fill(n, at(n)) for n in range(9)], [(MARKET, at(n), 0.5) for n in range(9)])
    settings_ = make_config(tmp_path, detail__recent_fills=3, detail__history_points=2)
    made = json.loads(from_rows(shown, settings_, quarantine).body())
    assert [fill["id"] for fill in made["recentFills"]] == [fill_id(8), fill_id(7), fill_id(6)]
    assert [point["timestamp"] for point in made["probHistory"]] == [at(0), at(8)]
