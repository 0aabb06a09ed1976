"""Generates the rows and texts of realistic markets, market by market. It knows no database."""

import random
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import repeat
from math import exp, log
from typing import Any, Final, NamedTuple

from generator.api.contract import PRICE_MAX, PRICE_MIN
from generator.demo import texts
from generator.demo.lifecycles import CANARY, MadeUpMarket, draw_market, stamp, user, uuid
from generator.demo.questions import Asker, MadeUpMember

#: Values in the order of the table's columns.
TableRow = tuple[Any, ...]
#: The place of the amount in a row of `fills`.
_AMOUNT: Final = 2


# ── its rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Walk:
    """A history of probabilities: their times in microseconds since 1970, in order, and their values."""

    moments: list[int]
    probs: list[float]


class _Wording(NamedTuple):
    """The texts of a market."""

    slug: str | None
    question: str | None
    description: str | None


def _market_row(rng: random.Random, market: MadeUpMarket, wording: _Wording, amounts: list[float]) -> TableRow:
    life = market.life
    approval, is_listed = texts.HIDDEN_BY[market.turn("hidden") % 3] if market.is_("hidden") else ("approved", True)
    volume = round(sum(amounts), 2)
    liquidity = 50 + volume * rng.uniform(0.1, 0.5)
    return (
        market.id,
        *wording,
        market.status,
        approval,
        is_listed,
        market.prob,
        500.0 if market.is_("tied") else volume,
        round(liquidity * (1 - market.prob), 6),
        round(liquidity * market.prob, 6),
        market.time(life.close),
        market.resolution,
        market.time(life.created),
        market.time(life.resolved) if life.resolved else None,
        market.time(life.resolved or life.last_trade),
        12 if market.is_("tied") else round(len(amounts) ** 0.8),
        market.text(rng.choice(texts.PAUSE_REASONS)) if market.is_("paused") else None,
        market.text(rng.choice(texts.CREATION_SOURCES)),
        market.text(rng.choice(texts.SPONSORS)),
        user(rng),
        f"{CANARY}note, seen by {rng.randrange(20)} moderators",
        f"{CANARY}{[rng.randrange(5_000) for _ in range(3)]}",
    )


def _category_rows(rng: random.Random, market: MadeUpMarket, drawn: str, primary: str) -> list[TableRow]:
    """The categories that go with the one that was drawn, after the primary one."""
    related = texts.RELATED[drawn]
    names = dict.fromkeys([primary, *rng.sample(related, rng.randint(0, len(related)))])
    return [(market.id, market.text(name), position) for position, name in enumerate(names)]


def _walk(rng: random.Random, market: MadeUpMarket) -> _Walk:
    """A random walk back in time from the market's probability, in log-odds to stay within 0…1."""
    inside = min(0.98, max(0.02, market.prob))
    odds = log(inside / (1 - inside))
    moments = market.life.moments(rng, _history_length(rng, market))
    probs = [market.prob]
    for _ in moments[1:]:
        odds = odds * 0.998 + rng.gauss(0, 0.12)
        probs.append(round(1 / (1 + exp(-odds)), 4))
    probs.reverse()
    return _Walk(moments, probs)


def _history_length(rng: random.Random, market: MadeUpMarket) -> int:
    if market.is_quiet:
        return market.number % 3
    if market.is_("thousands of points"):
        return rng.randint(3_000, 4_000)
    if market.is_("hardly any history"):
        return market.turn("hardly any history") % 4
    return 50 + int(250 * rng.random() ** 4)


def _fill_rows(rng: random.Random, market: MadeUpMarket, walk: _Walk) -> list[TableRow]:
    moments = market.life.moments(rng, _fill_count(rng, market), lateness=3)
    rows = list[TableRow]()
    for moment in moments:
        prob = walk.probs[max(0, bisect_right(walk.moments, moment) - 1)] if walk.moments else market.prob
        price = min(PRICE_MAX, max(PRICE_MIN, round(prob + rng.gauss(0, 0.01), 3)))
        amount = round(rng.lognormvariate(2.5, 1.2), 2)
        key, shares = uuid(rng), round(amount / price, 4)
        shown = None if rng.random() < 0.03 else price  # noqa: PLR2004 - a fill without a price
        bettor, bet = user(rng), f"{CANARY}bet-{rng.getrandbits(64):x}"
        rows.append((key, market.id, amount, shares, shown, stamp(moment), bettor, bet))
    return rows


def _fill_count(rng: random.Random, market: MadeUpMarket) -> int:
    if market.is_quiet:
        return market.number % 7 % 3
    if market.is_("thousands of fills"):
        return rng.randint(2_000, 3_500)
    return 0 if market.is_("no fills") else 1 + min(1_500, int(rng.lognormvariate(2.85, 1.4)))


def _order_rows(rng: random.Random, market: MadeUpMarket) -> Iterator[TableRow]:
    if market.status != "open" or market.is_("empty order book") or market.is_quiet:
        return
    deepest = 40 if market.is_("deep order book") else rng.randint(1, 15)
    for side, step in (("bid", -1), ("ask", 1)):
        for level in range(1, deepest + 1):
            price = (round(market.prob * 100) + step * level) / 100
            if PRICE_MIN <= price <= PRICE_MAX:
                yield from (_order_row(rng, market, side, price) for _ in range(rng.choice((1, 1, 1, 2, 2, 4))))


def _order_row(rng: random.Random, market: MadeUpMarket, side: str, price: float) -> TableRow:
    amount = round(rng.lognormvariate(3, 1.2), 2)
    is_public = rng.random() < 0.85  # noqa: PLR2004 - some orders are private
    return market.id, side, price, amount, is_public, f"{CANARY}order-{rng.getrandbits(64):x}", user(rng)


def _fx_rows(market: MadeUpMarket) -> list[TableRow]:
    """The membership in an FX family, if any. The names of private families are private."""
    terms = _fx_terms(market)
    if terms is None:
        return []
    pair, threshold = terms
    is_public = market.is_("in a public FX family")
    monday = market.life.close.date() - timedelta(days=market.life.close.weekday())
    names = (f"{pair} weekly", pair.replace("/", ""), "ECB reference rates")
    shown = (market.text(text) if is_public else CANARY + text for text in names)
    friday = monday + timedelta(days=4)
    direction = ("gte", "lte")[market.number % 2]
    return [(market.id, *shown, monday.isoformat(), friday.isoformat(), threshold, direction, is_public)]


def _fx_terms(market: MadeUpMarket) -> tuple[str, float] | None:
    """The currency pair and the threshold; each three markets form a family."""
    for kind in ("in a public FX family", "in a private FX family"):
        if market.is_(kind):
            family, member = divmod(market.turn(kind), 3)
            pair, level, distance = texts.CURRENCIES[family % len(texts.CURRENCIES)]
            return pair, round(level + member * distance, 4)
    return None


# ── its texts ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Fields(dict[str, str]):
    """The fields of a template: a market's dates, and entities drawn on first use."""

    def __init__(self, rng: random.Random, close: datetime) -> None:
        month = texts.MONTHS[close.month - 1]
        super().__init__(day=f"{close.day} {month} {close.year}", month=month, year=str(close.year))
        self._rng = rng

    def __missing__(self, name: str) -> str:
        self[name] = self._rng.choice(texts.ENTITIES[name])
        return self[name]


def _template(rng: random.Random, market: MadeUpMarket) -> tuple[str, str]:
    """Draw a primary category and a question template."""
    if terms := _fx_terms(market):
        bound = ("at or above", "at or below")[market.number % 2]
        return "finance", f"Will {terms[0]} fix {bound} {terms[1]} in the week of {{day}}?"
    category = rng.choice(tuple(texts.QUESTIONS))
    return _awkward(market.number) or (category, rng.choice(texts.QUESTIONS[category]))


def _awkward(number: int) -> tuple[str, str] | None:
    tens, rest = divmod(number, 10)
    if rest not in texts.AWKWARD_OF_TEN:
        return None
    turn = tens * len(texts.AWKWARD_OF_TEN) + texts.AWKWARD_OF_TEN.index(rest)
    if turn < len(texts.AWKWARD):
        return texts.AWKWARD[turn]
    return texts.AWKWARD[tens % len(texts.AWKWARD)] if rest == texts.AWKWARD_OF_TEN[1] else None


def _can_answer(market: MadeUpMarket) -> bool:
    """Whether a question may have the market: many a one, but none that has a text which it must keep."""
    return market.number % 3 in texts.ASKED_OF_THREE and _fx_terms(market) is None and _awkward(market.number) is None


def _question_rows(answer: MadeUpMember | None) -> dict[str, list[TableRow]]:
    if answer is None:
        return {}
    return {"questions": [answer.question] if answer.question else [], "question_members": [answer.member]}


def _description(rng: random.Random, market: MadeUpMarket) -> str | None:
    if market.is_("no description"):
        return None
    paragraphs = texts.PARAGRAPHS[: rng.choice((1, 2, 2, 3, 4, len(texts.PARAGRAPHS)))]
    fields = _Fields(rng, market.life.close)
    return "\n\n".join(paragraph.format_map(fields) for paragraph in paragraphs)


def _slug(question: str) -> str | None:
    plain = unicodedata.normalize("NFKD", question).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall("[a-z0-9]+", plain))[:80].strip("-") or None


class Author:
    """Writes markets in order of their numbers, each with a distinct question; some answer one together, if `asker`."""

    def __init__(self, rng: random.Random, as_of: datetime, asker: Asker | None = None) -> None:
        self._rng = rng
        self._as_of = as_of
        self._asker = asker
        self._questions: set[str] = set()
        self._slugs: dict[str | None, None] = {None: None}

    def write(self, number: int) -> dict[str, list[TableRow]]:
        """The rows of the market `number` by relation."""
        rng = self._rng
        market = draw_market(rng, number, self._as_of)
        walk = _walk(rng, market)
        fills = _fill_rows(rng, market, walk)
        drawn, question = self._new_question(market)
        answer = self._asker.place(market) if self._asker and _can_answer(market) else None
        category, question = answer.wording if answer and answer.wording else (drawn, question)
        slug, description = self._new_slug(market, question), _description(rng, market)
        wording = _Wording(*map(market.text, (slug, question, description)))
        return {
            "markets": [_market_row(rng, market, wording, [fill[_AMOUNT] for fill in fills])],
            "market_categories": _category_rows(rng, market, drawn, category),
            "fx_members": _fx_rows(market),
            "orders": list(_order_rows(rng, market)),
            "fills": fills,
            "probabilities": list(zip(repeat(market.id), map(stamp, walk.moments), walk.probs, strict=False)),
            **_question_rows(answer),
        }

    def _new_question(self, market: MadeUpMarket) -> tuple[str, str]:
        for _ in range(1 if market.is_quiet else 20):
            category, template = _template(self._rng, market)
            question = template.format_map(_Fields(self._rng, market.life.close))
            if not market.is_quiet and question not in self._questions:
                self._questions.add(question)
                return category, question
        return category, f"{question} ({market.number})"

    def _new_slug(self, market: MadeUpMarket, question: str) -> str | None:
        """The slug; as in real databases, some markets have none and a few share theirs. Of quiet ones none is kept."""
        if market.is_("no slug"):
            return None
        if market.is_("slug of its predecessor") and not market.is_quiet:
            return next(reversed(self._slugs))
        slug = _slug(question)
        if slug and (market.is_quiet or slug in self._slugs):
            slug = f"{slug}-{market.id[:8].lower()}"
        if not market.is_quiet:
            self._slugs[slug] = None
        return slug
