"""Writes the markets in which hardly anybody trades: variations of two thousand that an author wrote.

A site with a million markets has that many of them, and few rows of each; and nobody waits for a million authors.
"""

import random
from datetime import datetime
from typing import Final

from generator.demo import draws, texts
from generator.demo.rows import Author, TableRow

#: How many markets vary in a site that has them.
MODELS: Final = 2_000
#: How much earlier than its model a market may be, in microseconds.
_LONGEST: Final = 30 * 86_400_000_000
#: The place of the number of traders in a row of `markets`; before it are three times.
_TRADERS: Final = 16


class Crowd:
    """Writes quiet markets in order of their numbers."""

    def __init__(self, rng: random.Random, as_of: datetime, models: int = MODELS) -> None:
        self._rng = rng
        author = Author(rng, as_of)
        self._models = [_Model(author.write(texts.QUIET_FROM + number)) for number in range(models)]

    def write(self, number: int) -> dict[str, list[TableRow]]:
        """The rows of the market `number` by relation."""
        return self._models[number % len(self._models)].varied(self._rng, number)


class _Model:
    """A market, and its times in microseconds since 1970."""

    def __init__(self, rows: dict[str, list[TableRow]]) -> None:
        self._rows = rows
        (self._market,) = rows["markets"]
        created, resolved, active = self._market[_TRADERS - 3 : _TRADERS]
        # A settlement is not shifted: it may be soon after the last trade.
        self._moments = [_parsed(created)] if resolved else [_parsed(created), _parsed(active)]
        self._fills = [_parsed(fill[5]) for fill in rows["fills"]]
        self._points = [_parsed(point[1]) for point in rows["probabilities"]]
        self._is_upper = self._market[0].isupper()

    def varied(self, rng: random.Random, number: int) -> dict[str, list[TableRow]]:
        """Rows of another market like it: id, texts, times and amounts are its own."""
        key = draws.uuid(rng).upper() if self._is_upper else draws.uuid(rng)
        earlier, factor = int(rng.random() * _LONGEST), 0.5 + rng.random()
        _, slug, question, *about, volume, yes, no, close, outcome, _, resolved, active = self._market[:_TRADERS]
        created, *rest = draws.stamps([moment - earlier for moment in self._moments])
        market = (
            *(key, slug and f"{slug}-{number}", f"{question} ({number})", *about, round(volume * factor, 2), yes, no),
            *(close, outcome, created, resolved, *(rest or (active,)), *self._market[_TRADERS:]),
        )
        rows = {"markets": [market]}
        for name in ("market_categories", "fx_members"):
            rows[name] = [(key, *row[1:]) for row in self._rows[name]]
        if self._fills:
            times = draws.stamps([moment - earlier for moment in self._fills])
            rows["fills"] = [
                (draws.uuid(rng), key, round(amount * factor, 2), round(shares * factor, 4), price, time, user, bet)
                for (_, _, amount, shares, price, _, user, bet), time in zip(self._rows["fills"], times, strict=True)
            ]
        if self._points:
            times = draws.stamps([moment - earlier for moment in self._points])
            points = zip(times, self._rows["probabilities"], strict=True)
            rows["probabilities"] = [(key, time, prob) for time, (_, _, prob) in points]
        return rows


def _parsed(time: str) -> int:
    return draws.micros(datetime.fromisoformat(time).replace(tzinfo=None))
