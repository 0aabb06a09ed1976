"""What the command shows people and language models: a line per market, cut so that an answer stays short."""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from public_markets_client.models import Market, MarketDetail, Price, Question, QuestionDetail, QuestionMarket

#: The most bytes of a table without --limit: some 1,450 tokens.
BUDGET = 5_800
#: The most bytes of a text and of a description, and of a detail the most levels, fills and points of the history.
_WORDS, _DESCRIPTION, _ROWS, _POINTS = 90, 1_200, 5, 10
#: The most bytes of a label among others.
_LABEL = 30
MARKET_COLUMNS = ["id", "prob", "volume", "trader_count", "fills24h", "close_time", "state", "category", "question"]
QUESTION_COLUMNS = ["id", "kind", "size", *MARKET_COLUMNS[2:-1], "title"]
PRICE_COLUMNS = ["id", "prob", "volume", "last_activity_at", "question"]
CHANGE_COLUMNS = ["id", "changes", "question"]
#: How many columns of a terminal a question gets at least, if no more cells than these stand before it.
_LEGIBLE, _KEPT = 30, 2
#: The cells of a row; the last one is the question.
Row = list[str]


def market_row(market: Market) -> Row:
    """A market of a list."""
    state = market.status + (f":{market.resolution}" if market.resolution else "")
    figures = (market.prob, market.volume, market.trader_count, market.fills24h, market.close_time, state)
    category = cut((market.category or "-").replace(" ", "_"))
    return [market.id, *map(shown, figures), category, cut(market.question)]


def question_row(question: Question) -> Row:
    """A question of a list, or a market that is in none; the title is followed by its markets' probabilities."""
    figures = (question.size, question.volume, question.trader_count, question.fills24h, question.close_time)
    category = cut((question.category or "-").replace(" ", "_"))
    markets = [f"{cut(one.label or '', _LABEL)} {shown(one.prob)}{_outcome(one)}".strip() for one in question.markets]
    more = ["…"] if question.size > len(markets) else []
    title = f"{cut(question.title)}: {', '.join([*markets, *more])}"
    return [question.id, question.kind, *map(shown, figures), question.status, category, title]


def _outcome(market: QuestionMarket | Market) -> str:
    """What to say of a market beside its probability, if it is not open."""
    return "" if market.status == "open" else f" {market.resolution or market.status}"


def price_row(price: Price, question: str) -> Row:
    """An open market's price."""
    return [*map(shown, (price.id, price.prob, price.volume, price.last_activity_at)), cut(question)]


def change_row(change: Mapping[str, Any], question: str) -> Row:
    """A line of a step: a market with its new values, or the digest of one that is gone."""
    if "gone" in change:
        return [f"gone: a market whose id has the SHA-256 digest {change['gone']}"]
    values = (f"{name}={cut(str(value))}" for name, value in change.items() if name not in {"id", "question"})
    return [str(change.get("id")), *values, cut(question)]


def lines(rows: Sequence[Row], width: int) -> Iterator[str]:
    """The rows as lines of at most so many columns; for room, what stands before the question goes first."""
    many = max(map(len, rows)) - 1
    while many > _KEPT and any(_columns(" ".join(row[:-1][:many])) + _LEGIBLE > width for row in rows):
        many -= 1
    for row in rows:
        line = printable(" ".join([*row[:-1][:many], row[-1]]))
        while _columns(line) > width:
            line = f"{line[:-2]}…"
        yield line


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def detail_lines(detail: MarketDetail) -> Iterator[str]:
    """One market: what is known of it, the best of its book, the latest fills, and some points of its history."""
    for name, value in detail.market.to_dict().items():
        if name != "description" and value is not None:
            yield f"{name}: {cut(shown(value), 4 * _WORDS)}"
    for name, levels in (("bids", detail.order_book.bids), ("asks", detail.order_book.asks)):
        yield f"{name}: {' '.join(f'{shown(one.amount)}@{shown(one.price)}' for one in levels[:_ROWS])}"
    fills = (f"{shown(one.timestamp)} {shown(one.shares)}@{shown(one.price)}" for one in detail.recent_fills[:_ROWS])
    yield f"fills, newest first: {'; '.join(fills)}"
    *earlier, last = detail.prob_history or [None]
    points = [*earlier[:: len(earlier) // _POINTS + 1], last]
    yield f"history: {'; '.join(f'{shown(one.timestamp)} {shown(one.prob)}' for one in points if one)}"
    yield f"description: {cut(detail.market.description or '', _DESCRIPTION)}"


def question_lines(detail: QuestionDetail) -> Iterator[str]:
    """One question: what is known of it, then its markets, one on a line."""
    for name, value in detail.question.to_dict().items():
        if name != "description" and value is not None:
            yield f"{name}: {cut(shown(value), 4 * _WORDS)}"
    yield f"description: {cut(detail.question.description or '', _DESCRIPTION)}"
    for one in detail.markets:
        pays = "" if one.payout is None else f", pays {shown(one.payout)}"
        yield f"{one.market.id} {shown(one.market.prob)}{_outcome(one.market)}{pays} {cut(one.label)}"


def shown(value: Any) -> str:
    """A value in few letters: times to the minute in UTC, numbers without zeros that say nothing."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%MZ")
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def cut(text: str, length: int = _WORDS) -> str:
    """The beginning of a text on one line, of at most so many bytes in UTF-8."""
    words = " ".join(text.split())
    encoded = words.encode("utf-8", "replace")
    return words if len(encoded) <= length else encoded[: length - 3].decode("utf-8", "ignore") + "…"


def fitting(rows: Iterable[str], budget: int) -> Iterator[str]:
    """The first rows that have at most so many bytes together."""
    for row in rows:
        budget -= len(printable(row).encode()) + 1
        if budget < 0:
            return
        yield row


def printable(text: str) -> str:
    """The text without what would act on a terminal: sites publish what anybody wrote."""
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)
