"""Draws of which a demo database needs millions, many at a time: what `random`, `uuid` and `datetime` do one by one."""

import random
from datetime import UTC, datetime, timedelta
from math import cos, exp, log, pi, sin, sqrt
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = 1_000_000
#: Of Kinderman and Monahan's method, as in `random.normalvariate`.
_MAGIC: Final = 4 * exp(-0.5) / sqrt(2.0)
#: The character that holds an id's variant, by the bits drawn for it.
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def micros(moment: datetime) -> int:
    """The microseconds of a naive time since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


class _Days(dict[int, str]):
    def __missing__(self, day: int) -> str:
        self[day] = (_EPOCH + timedelta(days=day)).isoformat(" ")[: len("2026-01-31 ")]
        return self[day]


class _Clock(dict[int, str]):
    def __missing__(self, second: int) -> str:
        minutes, seconds = divmod(second, 60)
        self[second] = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}."
        return self[second]


_DAYS: Final = _Days()
_CLOCK: Final = _Clock()


def stamps(moments: list[int]) -> list[str]:
    """Times as usual in SQLite, of microseconds since 1970."""
    days, clock, found = _DAYS, _CLOCK, []
    for moment in moments:
        seconds, fraction = divmod(moment, _SECOND)
        day, second = divmod(seconds, 86_400)
        found.append(f"{days[day]}{clock[second]}{fraction:06}")
    return found


def normals(rng: random.Random, count: int, sigma: float) -> list[float]:
    """The next `count` values of `rng.gauss(0, sigma)`."""
    if count < 1:
        return []
    found, draw = [rng.gauss(0, sigma)], rng.random
    if vars(rng)["gauss_next"] is not None and count > 1:  # gauss makes two at a time, and keeps one
        found.append(rng.gauss(0, sigma))
    for _ in range((count - len(found)) // 2):
        angle = draw() * 2 * pi
        radius = sqrt(-2.0 * log(1.0 - draw()))
        found += (cos(angle) * radius * sigma, sin(angle) * radius * sigma)
    return found if len(found) == count else [*found, rng.gauss(0, sigma)]


def lognormal(rng: random.Random, mu: float, sigma: float) -> float:
    """Like `rng.lognormvariate`."""
    draw = rng.random
    while True:
        first, second = draw(), 1.0 - draw()
        z = _MAGIC * (first - 0.5) / second
        if z * z / 4.0 <= -log(second):
            return exp(mu + z * sigma)


def uuid(rng: random.Random) -> str:
    """Draw an id."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"


def below_5000(rng: random.Random) -> int:
    """Like `rng.randrange(5_000)`."""
    draw = rng.getrandbits
    while (number := draw(13)) >= 5_000:  # noqa: PLR2004
        pass
    return number
