"""Draws the life of each demo market: when it opens and closes, how it ends. It knows no database."""

import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from generator.api.contract import PRICE_MAX, PRICE_MIN, MarketStatus, Resolution
from generator.demo import texts

CANARY: Final = "CANARY-"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - like all times here, UTC without saying so
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Life:
    """The times of a market, in UTC: `created` < `last_trade` <= `resolved` <= as-of."""

    created: datetime
    last_trade: datetime
    close: datetime
    resolved: datetime | None = None

    def moments(self, rng: random.Random, count: int, lateness: float = 1) -> list[int]:
        """Draw `count` times in order, in microseconds since 1970, ending with the last trade.

        A `lateness` above 1 crowds them towards it.
        """
        if not count:
            return []
        last, draw = (self.last_trade - _EPOCH) // _MICROSECOND, rng.random
        span = (self.last_trade - self.created) // _MICROSECOND
        earlier = [draw() ** lateness for _ in range(count - 1)]
        earlier.sort(reverse=True)
        return [*(last - int(span * ago + 0.5) for ago in earlier), last]


@dataclass(frozen=True)
class MadeUpMarket:
    """What all rows of a market share."""

    number: int
    id: str
    status: MarketStatus
    resolution: Resolution | None
    life: Life
    prob: float

    def is_(self, kind: str) -> bool:
        """Whether the market is of a kind in `texts.KINDS`."""
        return _is(self.number, kind)

    @property
    def is_quiet(self) -> bool:
        """Whether hardly anybody trades."""
        return self.number >= texts.QUIET_FROM

    def turn(self, kind: str) -> int:
        """The number of markets of this kind before this one."""
        first, period = texts.KINDS[kind]
        return (self.number - first) // period

    def text(self, text: str | None) -> str | None:
        """Mark the text with CANARY if the market is hidden."""
        return CANARY + text if text and self.is_("hidden") else text

    def time(self, moment: datetime) -> str:
        """Format a time in the form used by this market's row."""
        return f"{moment.isoformat(timespec='seconds')}Z" if self.is_("times in RFC 3339") else timestamp(moment)


def _is(number: int, kind: str) -> bool:
    first, period = texts.KINDS[kind]
    return number % period == first


def timestamp(moment: datetime) -> str:
    """Format a time as usual in SQLite."""
    return moment.isoformat(" ", "microseconds")


def stamp(moment: int) -> str:
    """The same of microseconds since 1970."""
    return timestamp(_EPOCH + moment * _MICROSECOND)


def uuid(rng: random.Random) -> str:
    """Draw an id."""
    return str(UUID(int=rng.getrandbits(128), version=4))


def user(rng: random.Random) -> str:
    """Draw the id of a user, which is private."""
    return f"{CANARY}user-{rng.randrange(5_000)}"


def draw_market(rng: random.Random, number: int, as_of: datetime) -> MadeUpMarket:
    """Draw the market `number` with its life up to `as_of`."""
    status = texts.STATUSES[number % len(texts.STATUSES)]
    resolution = texts.RESOLUTIONS[number % len(texts.RESOLUTIONS)] if status == "resolved" else None
    is_trading = status == "open" and not _is(number, "overdue")
    life = _trading_life(rng, number, as_of) if is_trading else _past_life(rng, as_of)
    if status == "resolved" or (status == "cancelled" and not _is(number, "cancelled without a time")):
        settled = life.last_trade + (as_of - life.last_trade) * rng.uniform(0.1, 0.9)
        life = replace(life, resolved=settled)
    key = uuid(rng)
    prob = _final_prob(rng, number, resolution)
    return MadeUpMarket(number, key.upper() if _is(number, "id in upper case") else key, status, resolution, life, prob)


def days(rng: random.Random, shortest: float, longest: float) -> timedelta:
    """Draw a duration from a log-uniform distribution."""
    return timedelta(days=shortest * (longest / shortest) ** rng.random())


def _trading_life(rng: random.Random, number: int, as_of: datetime) -> Life:
    if _is(number, "imported"):
        hour = as_of.replace(minute=0, second=0, microsecond=0)
        return Life(hour - timedelta(days=45), hour - timedelta(hours=3), hour + timedelta(days=60))
    age = days(rng, 0.2, 700)
    close = as_of + days(rng, 0.1, 900)
    if rng.random() < 0.6:  # noqa: PLR2004 - most people choose a day, not a time
        close = close.replace(hour=23, minute=59, second=59, microsecond=0)
    return Life(as_of - age, as_of - age * 0.9 * rng.random() ** 4, close)


def _past_life(rng: random.Random, as_of: datetime) -> Life:
    age = days(rng, 1, 700)
    last_trade = as_of - age * rng.uniform(0.02, 0.6)
    return Life(as_of - age, last_trade, last_trade + age * 0.01 * rng.random())


def _final_prob(rng: random.Random, number: int, resolution: Resolution | None) -> float:
    if resolution in ("YES", "NO"):
        certainty = rng.choice((1.0, 0.99, 0.97, 0.912))
        return certainty if resolution == "YES" else round(1 - certainty, 3)
    if _is(number, "deep order book"):
        return round(rng.uniform(0.45, 0.55), 3)  # room for forty levels on either side
    return round(min(PRICE_MAX, max(PRICE_MIN, rng.betavariate(0.8, 0.8))), 3)
