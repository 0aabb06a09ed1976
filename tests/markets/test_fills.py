"""Fills are counted once each within a window; a bad fill costs only itself."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api import forms
from generator.markets import row_validation
from generator.markets.batch_validation import BATCH
from generator.markets.fills import NO_FILLS, Window, opening, recent, windows
from generator.markets.quarantine import Quarantine
from tests.support.sites.builds import NOW
from tests.support.sites.rows import fill_id, market_id

START = "2026-01-30T12:00:00.000Z"
MIDNIGHT: Final = datetime(2026, 1, 28, tzinfo=UTC)
STEPS: Final = [timedelta(seconds=seconds) for seconds in (0, 1, 60, 432, 3600, 6 * 3600, 86_400)]
#: Milliseconds after MIDNIGHT: anywhere, and around the edges of steps.
PLACES: Final = st.integers(0, 4 * 86_400_000) | st.builds(
    lambda hours, off: hours * 3_600_000 + off, st.integers(0, 4 * 24), st.integers(-2, 2)
)


def fill(number: int, created_at: Any, amount: Any = 1.0) -> tuple[Any, ...]:
    return (market_id(1), fill_id(number), amount, 2.0, 0.5, created_at)


@pytest.mark.parametrize("seed", range(3))
def test_markets_are_counted_apart_however_their_fills_fall_into_batches(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same rows every time
    times = [NOW, NOW, "2026-01-31 12:00:00.000500", "2026-01-31T12:00:00.001Z", START, "2026-01-30 12:00:00.001", "no"]
    owners = [market_id(number) for number in range(9) for _ in range(chance.randrange(BATCH))]
    rows = [
        (owner, fill_id(chance.randrange(BATCH)), chance.choice((1.0, 2, -1.0)), 2.0, None, chance.choice(times))
        for owner in owners
    ]
    good = [row for row in rows if row[2] > 0 and row[5] not in {"no", START, "2026-01-31T12:00:00.001Z"}]
    counted = {owner: window.number for owner, window in windows(rows, START, NOW).items() if window.number}
    assert counted == Counter(owner for owner, _ in {(row[0], row[1]) for row in good})


def at(place: int) -> datetime:
    return MIDNIGHT + timedelta(milliseconds=place)


def naive_opening(as_of: datetime, step: timedelta) -> datetime:
    """The last of the day's steps that is 24 hours ago or longer."""
    moment = as_of - timedelta(hours=24)
    found = moment.replace(hour=0, minute=0, second=0, microsecond=0) if step else moment
    while step and found + step <= moment:
        found += step
    return found


def counted_at(as_of: datetime, moments: list[datetime], step: timedelta) -> tuple[Window, set[int]]:
    """The window, and which of the fills it holds by a naive count."""
    start, end = naive_opening(as_of, step), as_of
    rows = [fill(number, forms.instant(moment)) for number, moment in enumerate(moments)]
    found = windows(rows, forms.instant(opening(as_of, step)), forms.instant(end), step)
    return found.get(market_id(1), NO_FILLS), {n for n, moment in enumerate(moments) if start < moment <= end}


@given(PLACES, st.lists(PLACES, max_size=6), st.sampled_from(STEPS), st.floats(0, 1))
def test_windows_count_like_a_naive_count_and_hold_until_what_they_count_changes(
    place: int, places: list[int], step: timedelta, share: float
) -> None:
    as_of, moments = at(place), list(map(at, places))
    window, held = counted_at(as_of, moments, step)
    assert window.number == len(held)
    end = datetime.fromisoformat(window.until) if window.until else as_of + timedelta(days=9)
    last = end - timedelta(milliseconds=1)
    later = max(as_of, as_of + timedelta(milliseconds=(last - as_of) // timedelta(milliseconds=1) * share // 1))
    assert as_of < end
    assert [counted_at(moment, moments, step)[1] for moment in (later, last)] == [held, held]
    assert window.holds_at(forms.instant(last))
    if window.until:
        assert not window.holds_at(window.until)
        assert counted_at(end, moments, step)[1] != held


@pytest.mark.parametrize("place", [0, BATCH - 1, BATCH, 2 * BATCH + 7])
def test_a_bad_fill_costs_itself_wherever_it_stands_among_many(quarantine: Quarantine, place: int) -> None:
    times = [row_validation.timestamp(f"2026-01-15 00:00:00.{number:06}") for number in range(1000)]
    fills = [fill(number, times[number * 1000 // (3 * BATCH)]) for number in range(3 * BATCH)]
    fills[place] = fill(place, "yesterday")
    shown = recent(fills, 50, quarantine)
    assert [row.key for row in quarantine] == [fill_id(place)]
    expected = sorted((row for row in fills if row[5] != "yesterday"), key=lambda row: row[1])
    expected.sort(key=lambda row: str(row[5]), reverse=True)
    assert [fill.id for fill in shown] == [row[1] for row in expected[:50]]
