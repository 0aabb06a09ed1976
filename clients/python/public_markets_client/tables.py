"""What the command shows people and language models: a line per market, cut so that an answer stays short."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from public_markets_client.models import Build, Market, MarketDetail, Price, Question, QuestionDetail, QuestionMarket
from public_markets_client.selecting import TIMES, value_of

#: The most tokens of an answer without --limit, and those that its last lines may need.
BUDGET, LAST = 1_450, 100
#: What is hardly more than a token: four letters, three digits, anything else in ASCII, two bytes of other letters.
_TOKEN = re.compile(rb"[A-Za-z]{1,4}|[0-9]{1,3}|[!-/:-@\[-`{-~\n]|[\x80-\xff]{1,2}")
#: The most bytes of a text and of a description, and of a detail the most levels, fills and points of the history.
_WORDS, _DESCRIPTION, _ROWS, _POINTS = 90, 1_200, 5, 10
#: The most bytes of a label among others.
_LABEL = 30
MARKET_COLUMNS = ["id", "prob", "volume", "trader_count", "fills24h", "close_time", "state", "category", "question"]
QUESTION_COLUMNS = ["id", "kind", "size", *MARKET_COLUMNS[2:-1], "title"]
PRICE_COLUMNS = ["id", "prob", "volume", "last_activity_at", "question"]
CHANGE_COLUMNS = ["id", "changes", "question"]
MOVE_COLUMNS = ["id", "then", "now", "by", "state", "question"]
#: How many columns of a terminal a question gets at least, if no more cells than these stand before it.
_LEGIBLE, _KEPT = 30, 2
_EXTREMES: tuple[tuple[str, Any], ...] = (("lowest", min), ("highest", max))
#: The cells of a row; the last one is the question.
Row = list[str]


def row(item: Any, columns: Sequence[str]) -> Row:
    """A market or question of a list; spaces are only in the last cell."""
    cells = [_cell(item, name) for name in columns]
    return [*(one.replace(" ", "_") for one in cells[:-1]), cells[-1]]


def count_row(count: Mapping[str, Any]) -> Row:
    """How many rows have a value, their volume, and the value."""
    return [cut(shown(value)) for value in count.values()]


def _cell(item: Any, name: str) -> str:
    value = value_of(item, name)
    if name == "title":
        return _titled(item)
    return "-" if value is None else cut(shown(value))


def _titled(question: Question) -> str:
    """The title of a question, or of a market that is in none, and its markets' probabilities."""
    markets = [f"{cut(one.label or '', _LABEL)} {shown(one.prob)}{_outcome(one)}".strip() for one in question.markets]
    more = ["…"] if question.size > len(markets) else []
    return f"{cut(question.title)}: {', '.join([*markets, *more])}"


def _outcome(market: QuestionMarket | Market) -> str:
    """What to say of a market beside its probability, if it is not open."""
    return "" if market.status == "open" else f" {market.resolution or market.status}"


def price_row(price: Price, market: Market | None) -> Row:
    """An open market's price."""
    return [*map(shown, (price.id, price.prob, price.volume, price.last_activity_at)), _question(market)]


def move_row(move: Any, market: Market | None) -> Row:
    """How far a market's probability went."""
    state = value_of(market, "state") if market else "gone"
    return [move.id, shown(move.then), shown(move.now), f"{move.by:+.4g}", state, _question(market)]


def with_columns(usual: Sequence[str], asked: Iterable[str | None]) -> list[str]:
    """The usual columns, and before the state those that were asked for."""
    added = dict.fromkeys(TIMES.get(name or "", name or "") for name in asked)
    wanted = [name for name in added if name not in {*usual, *TIMES, "", "popular", "even"}]
    here = usual.index("state")
    return [*usual[:here], *wanted, *usual[here:]]


def about_lines(build: Build, index: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """What there is, how old it is, and the addresses of everything."""
    hours = (now - build.as_of).total_seconds() / 3600
    yield f"as of: {shown(build.as_of)}, {hours:.1f} hours ago"
    totals = {name.partition("/")[0]: many for name, many in build.lists.items()}
    yield f"markets: {', '.join(f'{many} {status}' for status, many in totals.items())}"
    if build.questions:
        yield f"questions: {build.questions.count}"
    if build.categories:
        yield f"categories: {cut(', '.join(one.name for one in build.categories), _DESCRIPTION)}"
    looked = "the dump" if index.get("dumps") else "the questions of markets alone"
    yield f"search: {', '.join(build.search) if build.search else f'none: pm looks through {looked}'}"
    yield f"API: {build.variant}, version {build.generator}"
    for name, value in index.items():
        if isinstance(value, str):
            yield f"{name}: {cut(value, 4 * _WORDS)}"
        elif isinstance(value, dict | list):
            several = value.values() if isinstance(value, dict) else value
            yield f"{name}: {cut(', '.join(map(str, several)), 4 * _WORDS)}"


def _question(market: Market | None) -> str:
    return cut(market.question) if market else "-"


def change_row(change: Mapping[str, Any], market: Market | None) -> Row:
    """A line of a step: a market with its new values, or the digest of one that is gone."""
    if "gone" in change:
        return [f"gone: a market whose id has the SHA-256 digest {change['gone']}"]
    told = [name for name in change if name not in {"id", "question", "kind"}]
    if "createdAt" in change and "kind" in change:
        told = ["prob", "volume", "status", "closeTime"]  # of all that a new market has
    values = [str(change["kind"])] if "kind" in change else []
    values += [f"{name}={cut(str(change.get(name)))}" for name in told]
    question = change.get("question")
    return [str(change.get("id")), *values, _question(market) if question is None else cut(str(question))]


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


def detail_lines(detail: MarketDetail, trend: Mapping[str, float]) -> Iterator[str]:
    """One market: what is known of it, the best of its book, the latest fills, and some points of its history."""
    for name, value in detail.market.to_dict().items():
        if name != "description" and value is not None:
            yield f"{name}: {cut(shown(value), 4 * _WORDS)}"
    for name, levels in (("bids", detail.order_book.bids), ("asks", detail.order_book.asks)):
        yield f"{name}: {' '.join(f'{shown(one.amount)}@{shown(one.price)}' for one in levels[:_ROWS])}"
    extremes = {
        word: choose(detail.prob_history, key=lambda one: one.prob) for word, choose in _EXTREMES if detail.prob_history
    }
    told = [f"{when} {shown(prob)}" for when, prob in trend.items()]
    told += [f"{word} {shown(one.prob)} at {shown(one.timestamp)}" for word, one in extremes.items()]
    yield f"trend: {', '.join(told)}"
    yield f"description: {cut(detail.market.description or '', _DESCRIPTION)}"
    fills = (f"{shown(one.timestamp)} {shown(one.shares)}@{shown(one.price)}" for one in detail.recent_fills[:_ROWS])
    yield f"fills, newest first: {'; '.join(fills)}"
    *earlier, last = detail.prob_history or [None]
    points = [*earlier[:: len(earlier) // _POINTS + 1], last]
    yield f"history: {'; '.join(f'{shown(one.timestamp)} {shown(one.prob)}' for one in points if one)}"


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


def tokens(text: str) -> int:
    """How many tokens of a language model a text has, rather too many than too few."""
    return len(_TOKEN.findall(text.encode("utf-8", "replace")))


def fitting(rows: Iterable[str], budget: int) -> Iterator[str]:
    """The first rows that have at most so many tokens together."""
    for row in rows:
        budget -= tokens(printable(row)) + 1
        if budget < 0:
            return
        yield row


def printable(text: str) -> str:
    """The text without what would act on a terminal: sites publish what anybody wrote."""
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)
