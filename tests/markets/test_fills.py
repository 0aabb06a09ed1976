"""Fills are counted once each within a window; a bad fill costs only itself."""

import random
from collections import Counter
from typing import Any

import pytest

from generator.markets import batch_validation, row_validation
from generator.markets.batch_validation import BATCH
from generator.markets.fills import NO_FILLS, Window, recent, windows
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
    assert windows([fill(1, created_at)], START, NOW).get(market_id(1), NO_FILLS).number == counted


def test_a_fill_counts_once_and_a_bad_one_does_not() -> None:
    fills = [fill(1, NOW), fill(1, NOW), fill(2, NOW, amount=-1.0), fill(3, NOW)]
    assert windows(fills, START, NOW)[market_id(1)].number == 2


@pytest.mark.parametrize("seed", range(20))
def test_markets_are_counted_apart_however_their_fills_fall_into_batches(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same rows every time
    monkeypatch.setattr(batch_validation, "BATCH", chance.randrange(1, 7))
    times = [NOW, NOW, "2026-01-31 12:00:00.000500", "2026-01-31T12:00:00.001Z", START, "2026-01-30 12:00:00.001", "no"]
    owners = [market_id(number) for number in range(5) for _ in range(chance.randrange(12))]
    rows = [
        (owner, fill_id(chance.randrange(4)), chance.choice((1.0, 2, -1.0)), 2.0, None, chance.choice(times))
        for owner in owners
    ]
    good = [row for row in rows if row[2] > 0 and row[5] not in {"no", START, "2026-01-31T12:00:00.001Z"}]
    counted = {owner: window.number for owner, window in windows(rows, START, NOW).items() if window.number}
    assert counted == Counter(owner for owner, _ in {(row[0], row[1]) for row in good})


def test_a_count_holds_until_its_first_fill_leaves_the_window_or_another_one_enters() -> None:
    first, later = "2026-01-31T10:00:00.000Z", "2026-02-01T09:00:00.000Z"
    shown = fill(1, first), fill(2, NOW)
    assert windows(shown, START, NOW)[market_id(1)] == Window(2, "2026-02-01T10:00:00.000Z")
    assert windows((*shown, fill(3, later)), START, NOW)[market_id(1)] == Window(2, later)
    assert windows([fill(3, later)], START, NOW)[market_id(1)] == Window(0, later)
    assert Window(2, later).holds_at("2026-02-01T08:59:59.999Z")
    assert not Window(2, later).holds_at(later)
    assert NO_FILLS.holds_at("9999-01-01T00:00:00.000Z")


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
