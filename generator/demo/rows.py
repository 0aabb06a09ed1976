"""Generates the rows and texts of realistic markets, market by market. It knows no database."""

import random
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from math import exp, log
from typing import Any

from generator.api.contract import PRICE_MAX, PRICE_MIN
from generator.demo import texts
from generator.demo.lifecycles import CANARY, Market, draw_market, timestamp, user, uuid

Row = dict[str, Any]
Walk = list[tuple[datetime, float]]


# ── its rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _market_row(rng: random.Random, market: Market, fills: list[Row]) -> Row:
    """All columns except slug, question and description."""
    life = market.life
    approval, is_listed = texts.HIDDEN_BY[market.turn("hidden") % 3] if market.is_("hidden") else ("approved", True)
    volume = round(sum(fill["amount"] for fill in fills), 2)
    liquidity = 50 + volume * rng.uniform(0.1, 0.5)
    return {
        "id": market.id,
        "status": market.status,
        "approval": approval,
        "is_listed": is_listed,
        "prob": market.prob,
        "volume": 500.0 if market.is_("tied") else volume,
        "pool_yes": round(liquidity * (1 - market.prob), 6),
        "pool_no": round(liquidity * market.prob, 6),
        "close_time": market.time(life.close),
        "resolution": market.resolution,
        "created_at": market.time(life.created),
        "resolved_at": market.time(life.resolved) if life.resolved else None,
        "last_activity_at": market.time(life.resolved or life.last_trade),
        "trader_count": 12 if market.is_("tied") else round(len(fills) ** 0.8),
        "trading_pause_reason": market.text(rng.choice(texts.PAUSE_REASONS)) if market.is_("paused") else None,
        "creation_source": market.text(rng.choice(texts.CREATION_SOURCES)),
        "sponsor": market.text(rng.choice(texts.SPONSORS)),
        "creator_id": user(rng),
        "moderation_note": f"{CANARY}note, seen by {rng.randrange(20)} moderators",
        "top_forecasters": f"{CANARY}{[rng.randrange(5_000) for _ in range(3)]}",
    }


def _category_rows(rng: random.Random, market: Market, primary: str) -> list[Row]:
    related = texts.RELATED[primary]
    names = [primary, *rng.sample(related, rng.randint(0, len(related)))]
    return [
        {"market_id": market.id, "category": market.text(name), "position": position}
        for position, name in enumerate(names)
    ]


def _walk(rng: random.Random, market: Market) -> Walk:
    """A random walk back in time from the market's probability, in log-odds to stay within 0…1."""
    inside = min(0.98, max(0.02, market.prob))
    odds = log(inside / (1 - inside))
    moments = market.life.moments(rng, _history_length(rng, market))
    probs = [market.prob]
    for _ in moments[1:]:
        odds = odds * 0.998 + rng.gauss(0, 0.12)
        probs.append(round(1 / (1 + exp(-odds)), 4))
    return list(zip(moments, reversed(probs), strict=False))  # empty without moments


def _history_length(rng: random.Random, market: Market) -> int:
    if market.is_("thousands of points"):
        return rng.randint(3_000, 4_000)
    if market.is_("hardly any history"):
        return market.turn("hardly any history") % 4
    return 50 + int(250 * rng.random() ** 4)


def _fill_rows(rng: random.Random, market: Market, walk: Walk) -> Iterator[Row]:
    times = [moment for moment, _ in walk]
    for moment in market.life.moments(rng, _fill_count(rng, market), lateness=3):
        prob = walk[max(0, bisect_right(times, moment) - 1)][1] if walk else market.prob
        price = min(PRICE_MAX, max(PRICE_MIN, round(prob + rng.gauss(0, 0.01), 3)))
        amount = round(rng.lognormvariate(2.5, 1.2), 2)
        yield {
            "id": uuid(rng),
            "market_id": market.id,
            "amount": amount,
            "shares": round(amount / price, 4),
            "price": None if rng.random() < 0.03 else price,  # noqa: PLR2004 - a fill without a price
            "created_at": timestamp(moment),
            "user_id": user(rng),
            "matched_bet_id": f"{CANARY}bet-{rng.getrandbits(64):x}",
        }


def _fill_count(rng: random.Random, market: Market) -> int:
    if market.is_("thousands of fills"):
        return rng.randint(2_000, 3_500)
    return 0 if market.is_("no fills") else 1 + min(1_500, int(rng.lognormvariate(2.85, 1.4)))


def _order_rows(rng: random.Random, market: Market) -> Iterator[Row]:
    if market.status != "open" or market.is_("empty order book"):
        return
    deepest = 40 if market.is_("deep order book") else rng.randint(1, 15)
    for side, step in (("bid", -1), ("ask", 1)):
        for level in range(1, deepest + 1):
            price = (round(market.prob * 100) + step * level) / 100
            if PRICE_MIN <= price <= PRICE_MAX:
                yield from (_order_row(rng, market, side, price) for _ in range(rng.choice((1, 1, 1, 2, 2, 4))))


def _order_row(rng: random.Random, market: Market, side: str, price: float) -> Row:
    return {
        "market_id": market.id,
        "side": side,
        "price": price,
        "amount": round(rng.lognormvariate(3, 1.2), 2),
        "is_public": rng.random() < 0.85,  # noqa: PLR2004 - some orders are private
        "id": f"{CANARY}order-{rng.getrandbits(64):x}",
        "user_id": user(rng),
    }


def _fx_rows(market: Market) -> list[Row]:
    """The membership in an FX family, if any. The names of private families are private."""
    terms = _fx_terms(market)
    if terms is None:
        return []
    pair, threshold = terms
    is_public = market.is_("in a public FX family")
    monday = market.life.close.date() - timedelta(days=market.life.close.weekday())
    names = {"title": f"{pair} weekly", "instrument": pair.replace("/", ""), "source": "ECB reference rates"}
    row: Row = {name: market.text(text) if is_public else CANARY + text for name, text in names.items()}
    return [
        row
        | {
            "market_id": market.id,
            "week_start": monday.isoformat(),
            "week_end": (monday + timedelta(days=4)).isoformat(),
            "threshold_value": threshold,
            "direction": ("gte", "lte")[market.number % 2],
            "is_public": is_public,
        }
    ]


def _fx_terms(market: Market) -> tuple[str, float] | None:
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


def _template(rng: random.Random, market: Market) -> tuple[str, str]:
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


def _description(rng: random.Random, market: Market) -> str | None:
    if market.is_("no description"):
        return None
    paragraphs = texts.PARAGRAPHS[: rng.choice((1, 2, 2, 3, 4, len(texts.PARAGRAPHS)))]
    fields = _Fields(rng, market.life.close)
    return "\n\n".join(paragraph.format_map(fields) for paragraph in paragraphs)


def _slug(question: str) -> str | None:
    plain = unicodedata.normalize("NFKD", question).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall("[a-z0-9]+", plain))[:80].strip("-") or None


class Author:
    """Writes markets in order of their numbers, each with a distinct question."""

    def __init__(self, rng: random.Random, as_of: datetime) -> None:
        self._rng = rng
        self._as_of = as_of
        self._questions: set[str] = set()
        self._slugs: dict[str | None, None] = {None: None}

    def write(self, number: int) -> dict[str, list[Row]]:
        """The rows of the market `number` by relation."""
        rng = self._rng
        market = draw_market(rng, number, self._as_of)
        walk = _walk(rng, market)
        fills = list(_fill_rows(rng, market, walk))
        category, question = self._new_question(market)
        wording: Row = {
            "slug": market.text(self._new_slug(market, question)),
            "question": market.text(question),
            "description": market.text(_description(rng, market)),
        }
        return {
            "markets": [_market_row(rng, market, fills) | wording],
            "market_categories": _category_rows(rng, market, category),
            "fx_members": _fx_rows(market),
            "orders": list(_order_rows(rng, market)),
            "fills": fills,
            "probabilities": [
                {"market_id": market.id, "recorded_at": timestamp(at), "prob": prob} for at, prob in walk
            ],
        }

    def _new_question(self, market: Market) -> tuple[str, str]:
        for _ in range(20):
            category, template = _template(self._rng, market)
            question = template.format_map(_Fields(self._rng, market.life.close))
            if question not in self._questions:
                break
        else:
            question = f"{question} ({market.number})"
        self._questions.add(question)
        return category, question

    def _new_slug(self, market: Market, question: str) -> str | None:
        """The slug; as in real databases, some markets have none and a few share theirs."""
        if market.is_("no slug"):
            return None
        if market.is_("slug of its predecessor"):
            return next(reversed(self._slugs))
        slug = _slug(question)
        if slug and slug in self._slugs:
            slug = f"{slug}-{market.id[:8].lower()}"
        self._slugs[slug] = None
        return slug
