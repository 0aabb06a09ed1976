"""Makes up questions that some of the demo's markets answer together. It knows no database, and no other rows.

Each hundred markets have the same questions, in another season. What a market's own rows are drawn from is not touched:
of a market in a question, only its texts and its primary category are others than they would be.
"""
# ruff: noqa: S311 - nothing here is secret, and equal arguments must give equal rows

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from generator.demo import texts
from generator.demo.lifecycles import CANARY, MadeUpMarket, timestamp, user, uuid
from generator.demo.texts import MadeUpQuestion

#: How many markets share a season.
SEASON: Final = 100
#: What a share pays, by the market's resolution.
_PAYOUTS: Final = {"YES": 1.0, "NO": 0.0, "CANCEL": 0.5}


@dataclass
class MadeUpMember:
    """A market's place in a question: the rows of both, and what is to be said of the market, or None."""

    member: tuple[Any, ...]
    #: The row of the question, if the market is the first in it.
    question: tuple[Any, ...] | None
    #: The market's primary category and question.
    wording: tuple[str, str] | None


@dataclass
class _Open:
    """A question that lacks members still: what it wants, as statuses and resolutions."""

    asked: MadeUpQuestion
    season: int
    number: int
    wanted: list[str] = field(default_factory=list)
    id: str = ""
    members: int = 0

    @property
    def title(self) -> str:
        return self.asked.title.format(season=self.season)

    def joined(self, market: MadeUpMarket, state: str) -> MadeUpMember:
        """The market becomes a member."""
        self.wanted.remove(state)
        is_first = not self.members
        if is_first:
            self.id = uuid(random.Random(f"question of {market.id}"))
        label = self.asked.labels[self.members]
        self.members += 1
        payout = _PAYOUTS[market.resolution] if market.resolution else None
        shown = CANARY + label if self.asked.is_hidden else market.text(label)
        position = self.members if self.asked.is_ordered else None
        wording = None if self.asked.is_hidden else (self.asked.category, f"{self.title} {label}")
        return MadeUpMember(
            (self.id, market.id, shown, position, payout), self._row(market) if is_first else None, wording
        )

    def _row(self, first: MadeUpMarket) -> tuple[Any, ...]:
        mark = CANARY if self.asked.is_hidden else ""
        slug = f"{mark}{self.asked.slug}-{self.season}" if self.asked.slug else None
        description = self.asked.description and mark + self.asked.description
        approval = "pending" if self.asked.is_hidden else "approved"
        key = f"{mark}{self.season}-{self.number}"
        created = timestamp(first.life.created)
        asker = user(random.Random(self.id))
        return self.id, slug, mark + self.title, description, self.asked.kind, approval, True, created, key, asker


class Asker:
    """Decides, market by market in order of their numbers, which question each is in."""

    def __init__(self) -> None:
        self._season = 0
        self._open: list[_Open] = []

    def place(self, market: MadeUpMarket) -> MadeUpMember | None:
        """Put the market into a question that wants one like it; None if there is none."""
        season = market.number // SEASON + 1
        if season != self._season:
            self._season, self._open = season, [*_asked(season)]
        state = market.resolution or market.status
        found = next((one for one in self._open if state in one.wanted), None)
        return found.joined(market, state) if found else None


def _asked(season: int) -> Iterator[_Open]:
    for number, asked in enumerate(texts.ASKED, start=1):
        yield _Open(asked, season, number, [*asked.wanted])
