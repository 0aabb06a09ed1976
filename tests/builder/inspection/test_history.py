"""The figures of the history page are those of a plain computation, and candles are read again only if need be."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from generator.builder.inspection import history
from generator.builder.inspection.history import (
    MOVERS,
    SHOWN_DAYS,
    DayVolume,
    Move,
)

AS_OF: Final = "2026-01-31T12:34:56.000Z"
HOUR: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY: Final = datetime(2026, 1, 31, tzinfo=UTC)


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


# ── volume ────────────────────────────────────────────────────────────────────────────────────────────────────────


def day(before: int, volume: float = 1.0, trades: int = 1) -> tuple[int, float, int]:
    """The candle of a day so many days before the one that runs."""
    return milliseconds(DAY - timedelta(days=before)), volume, trades


def test_the_volume_of_a_day_is_that_of_all_candles_and_days_without_a_trade_lie_between() -> None:
    candles = [day(1, 2.5, 3), day(4, 7.0, 2), day(1, 1.5, 1), day(3, 0.0, 0)]
    assert history.volume_per_day(candles, AS_OF) == [
        DayVolume("2026-01-27", 7.0, 2),
        DayVolume("2026-01-28", 0.0, 0),
        DayVolume("2026-01-29", 0.0, 0),
        DayVolume("2026-01-30", 4.0, 4),
    ]


def test_only_the_last_days_that_are_over_are_shown() -> None:
    found = history.volume_per_day([day(before) for before in range(SHOWN_DAYS + 2)], AS_OF)
    assert len(found) == SHOWN_DAYS
    assert (found[0].day, found[-1].day) == ("2025-11-02", "2026-01-30")
    assert {one.volume for one in found} == {1.0}


def test_without_a_trade_no_day_is_shown() -> None:
    assert history.volume_per_day([day(1, 0.0, 0)], AS_OF) == []
    assert history.volume_per_day([], AS_OF) == []


# ── movers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def hour(before: int, opened: float | None, closed: float | None, market: str = "a") -> tuple[Any, ...]:
    """The candle of an hour so many hours before the one that runs."""
    return market, milliseconds(HOUR - timedelta(hours=before)), opened, closed


def moves(*candles: tuple[Any, ...]) -> list[Move]:
    return history.movers(candles, AS_OF)


def test_a_move_leads_from_the_price_before_the_first_candle_to_that_of_the_last_in_whatever_order_they_come() -> None:
    candles = [hour(24, 0.2, 0.9), hour(10, 0.9, 0.4), hour(1, 0.4, 0.5)]
    for first in range(3):
        assert moves(*candles[first:], *candles[:first]) == [Move("a", 0.2, 0.5)]


def test_candles_of_the_running_hour_and_of_more_than_24_hours_ago_do_not_count() -> None:
    assert moves(hour(25, 0.1, 0.2), hour(0, 0.5, 0.9)) == []
    assert moves(hour(25, 0.1, 0.2), hour(24, 0.2, 0.5), hour(0, 0.5, 0.9)) == [Move("a", 0.2, 0.5)]


def test_candles_before_a_market_has_a_price_do_not_count() -> None:
    assert moves(hour(5, None, None), hour(4, 0.9, 0.1)) == [Move("a", 0.9, 0.1)]
    assert moves(hour(5, None, None)) == []


def test_the_greatest_moves_come_first_whatever_their_direction_and_equal_ones_by_id() -> None:
    candles = [hour(1, 0.5, 0.5 + step / 64, f"{step + 20}") for step in range(-MOVERS, MOVERS) if step]
    found = moves(*candles)
    assert [move.id for move in found] == ["10", "11", "29", "12", "28", "13", "27", "14", "26", "15"]
