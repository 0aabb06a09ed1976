"""Reads all rows that a question is about, in as few requests as the site allows: lists, searches, the dump, the feed.

What takes too many requests is left out, and the answer says so.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from shlex import quote
from typing import Any

import public_markets_client as api
from public_markets_client import selecting
from public_markets_client.decoding import decoded, properties
from public_markets_client.models import FullMarket, Market, MarketDetail, Status

#: Rows that are walked at most: as many as a hundred requests give, and thirty searches; beyond ten, the dump is taken.
_MOST_WALKED, _MOST_FOUND, _FEW = 10_000, 3_000, 1_000
#: Markets of a dump that are kept in memory at most.
_MOST_DUMPED = 200_000
#: Steps and details that are read at most: together, less than the site takes in a minute.
_MOST_STEPS, _MOST_DETAILS = 200, 80


@dataclass(frozen=True)
class Reading:
    """Rows, and what is missing; nothing if they are all that there are."""

    rows: list[Any]
    missing: str = ""


def markets(client: api.Client, status: Status, category: str | None, words: str | None) -> Reading:
    """All markets of a status, of a category or with these words."""
    if words and not selecting.has_letters(words):
        raise api.ApiError("must have a letter or a digit", path="q")
    build = client.build()
    if words and build.search:
        return _bounded(client.markets(status=status, category=category, q=words), _MOST_FOUND)
    many = next((many for name, many in build.lists.items() if name.startswith(f"{status}/")), 0)
    no_dump = "the site has no search and no dump"
    if not category and (words or many > _FEW):
        with suppress(api.NotFoundError, api.AnswerError, api.StartAgainError):
            try:
                return _bounded(_dumped(client, status, words), _MOST_DUMPED)
            except api.OtherHostError as error:
                no_dump = f"the dump {elsewhere(error)}"
    walked = _bounded(client.markets(status=status, category=category), _MOST_WALKED)
    if not words:
        return walked
    missing = [walked.missing, f"{no_dump}: words were looked for in the questions alone"]
    rows = [row for row in walked.rows if selecting.has_words(row.question, words)]
    return Reading(rows, "; ".join(filter(None, missing)))


def elsewhere(error: api.OtherHostError) -> str:
    """What to do where the site leads to another host; as the site chooses its name, it may be no word of a shell."""
    return f"leads to another host (if that is right, pm --host {quote(error.host)} URL … asks it)"


def questions(client: api.Client, status: Status, category: str | None) -> Reading:
    """All questions of a status, and of a category."""
    return _bounded(client.questions(status=status, category=category), _MOST_WALKED)


def _bounded(walk: Iterator[Any], most: int) -> Reading:
    rows = [*islice(walk, most)]
    is_cut = len(rows) == most and next(walk, None) is not None
    return Reading(rows, f"only the first {most} of the site's list were read" if is_cut else "")


def _dumped(client: api.Client, status: Status, words: str | None) -> Iterator[Market]:
    """The same markets by id, as lists have them."""
    is_more = {key for _, key, *_ in properties(FullMarket)} - {key for _, key, *_ in properties(Market)}
    for market in client.dump():
        text = f"{market.question} {market.description or ''}"
        if selecting.is_listed(market, status) and (not words or selecting.has_words(text, words)):
            yield decoded(Market, {key: value for key, value in market.json.items() if key not in is_more})


@dataclass(frozen=True)
class Move:
    """A market's probability at some time, or its first one if it is newer, and now."""

    id: str
    then: float
    now: float

    @property
    def by(self) -> float:
        """How far it went."""
        return self.now - self.then


@dataclass
class _Course:
    """What is known of a market: probabilities since a time, the one before, and whether trades were many."""

    probs: list[float]
    before: float | None = None
    fills: int = 0


def moves(client: api.Client, since: datetime) -> Reading:
    """The markets whose probability is another than then, the farthest first."""
    courses, is_whole, refused = dict[str, _Course](), False, ""
    try:
        courses, is_whole = _of_feed(client, since)
    except api.OtherHostError as error:
        refused = f"the feed {elsewhere(error)}"
    for market in () if is_whole else client.markets(status="all", sort="activity"):
        if market.last_activity_at <= since or len(courses) >= _MOST_WALKED:
            break
        courses.setdefault(market.id, _Course([market.prob], None, market.fills24h))
    unknown = [market_id for market_id, course in courses.items() if course.before is None]
    unknown.sort(key=lambda one: (min(courses[one].probs) - max(courses[one].probs), -courses[one].fills, one))
    for market_id in unknown[:_MOST_DETAILS]:
        with suppress(api.NotFoundError):
            courses[market_id].before = prob_at(client.market(market_id), since)
    found = (
        Move(market_id, course.before, course.probs[-1])
        for market_id, course in courses.items()
        if course.before is not None and course.before != course.probs[-1]
    )
    rest = len(unknown) - _MOST_DETAILS
    few = f"of {rest} markets, with fewer trades, the probability at that time was not looked up" if rest > 0 else ""
    missing = "; ".join(filter(None, [refused, few]))
    return Reading(sorted(found, key=lambda one: (-abs(one.by), one.id)), missing)


def _of_feed(client: api.Client, since: datetime) -> tuple[dict[str, _Course], bool]:
    """What the newest steps of the feed tell, and whether they reach back so far."""
    before, courses, is_whole = dict[str, float](), dict[str, _Course](), False
    with suppress(api.NotFoundError, api.StartAgainError):
        for as_of, values in client.dated_changes(_MOST_STEPS):
            # Of markets that are gone, sites keep nothing in earlier steps.
            market_id, prob = values.get("id"), values.get("prob")
            is_whole = is_whole or as_of <= since
            if isinstance(market_id, str) and isinstance(prob, int | float):
                if as_of <= since:
                    before[market_id] = prob
                    continue
                course = courses.setdefault(market_id, _Course([], before.get(market_id)))
                course.probs.append(prob)
                course.fills = max(course.fills, values.get("fills24h") or 0)
        return courses, is_whole
    return {}, False


def prob_at(detail: MarketDetail, instant: datetime) -> float | None:
    """The probability at an instant, by the history of a detail; the oldest if that is younger, None if there is none.

    Details have some hundred points at most, so it may be that of a little earlier.
    """
    earlier = [point.prob for point in detail.prob_history if point.timestamp <= instant]
    oldest = [point.prob for point in detail.prob_history[:1]]
    return (earlier[-1:] or oldest or [None])[0]  # type: ignore[list-item]


def trend(detail: MarketDetail, as_of: datetime) -> dict[str, float]:
    """The probability now and some days before as-of, as far as the history goes back."""
    found = {"now": detail.market.prob}
    for days in (1, 7, 30):
        instant = as_of - timedelta(days=days)
        prob = prob_at(detail, instant) if any(one.timestamp <= instant for one in detail.prob_history) else None
        found |= {} if prob is None else {f"{days} d ago": prob}
    return found


def shown(client: api.Client, ids: list[str], status: Status = "all") -> dict[str, Market]:
    """Those of these markets that are still there, from details or, if that takes fewer requests, from a list."""
    wanted = {*ids}
    if len(wanted) * 100 > client.build().markets:
        return {one.id: one for one in client.markets(status=status) if one.id in wanted}
    found = dict[str, Market]()
    for market_id in ids:
        with suppress(api.NotFoundError):
            found[market_id] = client.market(market_id).market
    return found
