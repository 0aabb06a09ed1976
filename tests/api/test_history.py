"""The record of accuracy is that of a plain computation, of markets that closed before the day began."""

import random
from collections.abc import Mapping
from typing import Any, Final

import pytest

from generator.api import history
from generator.api.history import History, Settled

NOW: Final = "2026-01-31T12:34:56.000Z"
MIDNIGHT: Final = "2026-01-31T00:00:00.000Z"
BEFORE: Final = "2026-01-30T23:59:59.999Z"


def made(probs: Mapping[str, tuple[float | None, float | None]], yes: set[str], closed_at: str = BEFORE) -> History:
    """The record of markets that closed then, by their probabilities a week and a day before."""
    outcomes = {market: Settled(market in yes, closed_at) for market in probs}
    return history.make(outcomes, [(market, *found) for market, found in probs.items()], NOW)


def shown(found: History, horizon: int = 0) -> dict[float, tuple[Any, ...]]:
    """Count, mean and YES of the ranges that have markets, by their beginning."""
    calibration = found.horizons[horizon].calibration
    assert [(one.low, one.high) for one in calibration] == [(place / 10, (place + 1) / 10) for place in range(10)]
    return {one.low: (one.markets, one.mean_prob, one.resolved_yes) for one in calibration if one.markets}


def test_a_range_has_the_mean_probability_of_its_markets_and_how_many_resolved_yes() -> None:
    probs = {"a": 0.31, "b": 0.35, "c": 0.39, "d": 1.0, "e": 0.0, "f": 0.9}
    found = made({market: (prob, None) for market, prob in probs.items()}, {"a", "d"})
    assert shown(found) == {0.0: (1, 0.0, 0), 0.3: (3, pytest.approx(0.35), 1), 0.9: (2, 0.95, 1)}
    assert shown(found, 1) == {}
    assert (found.resolved_yes, found.resolved_no, found.as_of) == (2, 4, MIDNIGHT)


def test_each_time_before_the_close_has_its_own_markets_and_score() -> None:
    found = made({"a": (0.5, 0.75), "b": (None, 0.25), "c": (None, None)}, {"a"})
    assert [(one.days_before, one.markets, one.brier_score) for one in found.horizons] == [(7, 1, 0.25), (1, 2, 0.0625)]
    assert found.resolved_yes + found.resolved_no == 3
    assert made({}, set()).horizons[0].brier_score is None


def test_a_market_that_closed_on_the_day_that_runs_does_not_count_nor_one_that_has_no_outcome() -> None:
    assert made({"a": (0.5, 0.5)}, {"a"}).resolved_yes == 1
    late = made({"a": (0.5, 0.5)}, {"a"}, MIDNIGHT)
    assert (late.resolved_yes, late.horizons[0].markets) == (0, 0)
    other = history.make({}, [("b", 0.5, 0.5)], NOW)
    assert (other.resolved_no, other.horizons[0].markets) == (0, 0)


def test_the_order_of_rows_changes_no_digit() -> None:
    drawn = random.Random(8)  # noqa: S311 - every run has the same rows
    probs = {str(number): (drawn.random(), drawn.random()) for number in range(200)}
    yes = {market for market in probs if drawn.random() < 0.5}
    shuffled = [*probs]
    drawn.shuffle(shuffled)
    assert made(probs, yes) == made({market: probs[market] for market in shuffled}, yes)
