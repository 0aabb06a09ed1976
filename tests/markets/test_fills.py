"""Fills are counted once each within a window; a bad fill costs only itself."""

from typing import Any

import pytest

from generator.markets import row_validation
from generator.markets.batch_validation import BATCH
from generator.markets.fills import count_window, recent
from generator.markets.quarantine import Quarantine
from tests.support.builds import NOW
from tests.support.rows import fill_id, market_id

START = "2026-01-30T12:00:00.000Z"


def fill(number: int, created_at: Any, amount: Any = 1.0) -> tuple[Any, ...]:
    return (market_id(1), fill_id(number), amount, 2.0, 0.5, created_at)


@pytest.mark.parametrize(
    ("created_at", "counted"),
    [
        (START, 0),
        ("2026-01-30 12:00:00.000999", 0),  # cut to milliseconds, as it is shown
        ("2026-01-30 12:00:00.001000", 1),
        ("2026-01-30 14:00:00.001+02", 1),
        (NOW, 1),
        ("2026-01-31 12:00:00.001000", 0),
        ("yesterday", 0),
    ],
)
def test_the_window_is_open_at_its_beginning_and_closed_at_its_end(created_at: str, counted: int) -> None:
    assert count_window([fill(1, created_at)], START, NOW) == counted


def test_a_fill_counts_once_and_a_bad_one_does_not() -> None:
    fills = [fill(1, NOW), fill(1, NOW), fill(2, NOW, amount=-1.0), fill(3, NOW)]
    assert count_window(fills, START, NOW) == 2


@pytest.mark.parametrize("place", [0, BATCH - 1, BATCH, 2 * BATCH + 7])
def test_a_bad_fill_costs_itself_wherever_it_stands_among_many(quarantine: Quarantine, place: int) -> None:
    times = [row_validation.timestamp(f"2026-01-15 00:00:00.{number:06}") for number in range(1000)]
    fills = [fill(number, times[number * 1000 // (3 * BATCH)]) for number in range(3 * BATCH)]
    fills[place] = fill(place, "yesterday")
    shown = recent(fills, 50, quarantine)
    assert [row.key for row, _ in quarantine] == [fill_id(place)]
    expected = sorted((row for row in fills if row[5] != "yesterday"), key=lambda row: row[1])
    expected.sort(key=lambda row: str(row[5]), reverse=True)
    assert [fill.id for fill in shown] == [row[1] for row in expected[:50]]
