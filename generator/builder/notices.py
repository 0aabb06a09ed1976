"""Remarks about what is published differently than the operator may expect, for the report and stderr. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from generator.api import times
from generator.config.settings import Config
from generator.markets.catalog import Catalog, Market
from generator.markets.categories import slug_of
from generator.markets.detail import Detail
from generator.markets.quarantine import printable
from generator.markets.tally import Example, Tally
from generator.wording import counted, plural

#: How far a time may lie after as-of before it counts as in the future. Clocks of servers differ by seconds, and rows
#: arrive while a build begins; a local time mistaken for UTC is off by half an hour at least.
CLOCK_SKEW: Final = timedelta(minutes=5)

_LOCAL_TIME: Final = "correct it, or convert local time to UTC in a view"


class Topic(StrEnum):
    """What a remark is about, as metrics name it."""

    EARLY_OUTCOME = "early_outcome"
    NO_RESOLUTION = "no_resolution"
    EMPTY_QUESTION = "empty_question"
    BIDI_OVERRIDE = "bidi_override"
    FUTURE_TIME = "future_time"
    UNUSABLE_SLUG = "unusable_slug"
    MERGED_CATEGORY = "merged_category"
    SAME_SLUG = "same_slug"
    EMPTY_CATEGORY = "empty_category"
    FALSE_VERSION = "false_version"
    NEW_SESSION = "new_session"


class Kind(NamedTuple):
    """What remarks have in common: `subject` is `market`, `category` or `file`, `effect` what to expect or to do."""

    topic: Topic
    subject: str
    what: str
    effect: str


class Remark(NamedTuple):
    """A remark about a market (id), category (name) or file; `value` is what it is about, if that may be shown."""

    kind: Kind
    key: str
    value: str = ""

    def __str__(self) -> str:
        value = f" ({self.value})" if self.value else ""
        return f"{self.kind.subject} {self.key}: {self.kind.what}{value}; {self.kind.effect}"


_EARLY_OUTCOME: Final = Kind(
    Topic.EARLY_OUTCOME,
    "market",
    "has a resolution or a resolved_at before its time",
    "both are published as null until its status is resolved or cancelled",
)
_NO_RESOLUTION: Final = Kind(
    Topic.NO_RESOLUTION,
    "market",
    "is resolved but has no resolution",
    "it is published as it stands: set its resolution",
)
_EMPTY_QUESTION: Final = Kind(
    Topic.EMPTY_QUESTION,
    "market",
    "question is empty",
    "it is published as it stands: write the question, or hide the market",
)
_BIDI_OVERRIDE: Final = Kind(
    Topic.BIDI_OVERRIDE,
    "market",
    "a text has a bidirectional override (U+202D or U+202E)",
    "it is published, but reads otherwise than it is written: look at it as code points",
)
_MERGED_CATEGORY: Final = Kind(
    Topic.MERGED_CATEGORY,
    "category",
    "is published in another spelling",
    "the two differ only in case, in spaces or in Unicode form",
)
_SAME_SLUG: Final = Kind(
    Topic.SAME_SLUG, "category", "has the slug of another", "markets are published without it: rename it"
)
_EMPTY_CATEGORY: Final = Kind(
    Topic.EMPTY_CATEGORY, "category", "has no public market", "it gets no lists: correct the setting `categories`"
)
_FALSE_VERSION: Final = Kind(
    Topic.FALSE_VERSION,
    "market",
    "detail_version did not change, but its orders, fills or points did",
    "this build read every detail; change detail_version with each of these rows, in the same transaction",
)
_NEW_SESSION: Final = Kind(
    Topic.NEW_SESSION,
    "file",
    "is missing or altered, so nobody knows what changed since the last build",
    "the change feed begins a new session, and followers start again from the dump",
)
#: What to expect of a time in the future, by the market's column.
_LEADS: Final = {"created_at": "new", "last_activity_at": "activity", "resolved_at": "ended"}


def of(catalog: Catalog, config: Config) -> Iterator[Remark]:
    """Remarks about the rows of markets; in the extended variant about slugs and categories, too.

    An early outcome is the one secret a market has, so it is not quoted.
    """
    latest = latest_time(catalog.as_of)
    for market in catalog.markets:
        yield from _of_market(market)
        yield from _of_times(market, latest)
        reason = catalog.refused_slugs.get(market.id)
        if reason:
            kind = Kind(
                Topic.UNUSABLE_SLUG, "market", f"slug cannot be used: {reason.rule}", "it is found by its id only"
            )
            yield Remark(kind, market.id, reason.value or "")
    if config.variant == "extended":
        yield from _of_categories(catalog, config.categories or ())


def false_version(market_id: str) -> Remark:
    """The remark about a market whose version did not change with its rows."""
    return Remark(_FALSE_VERSION, market_id)


def new_session(key: str) -> Remark:
    """The remark about a file of the output folder without which the change feed cannot go on."""
    return Remark(_NEW_SESSION, key)


def of_detail(detail: Detail, latest: str) -> Iterator[Remark]:
    """Remarks about the fills and points of a market that are published; `latest` is `latest_time`."""
    shown = {
        "fills.created_at": detail.recent_fills[0].timestamp if detail.recent_fills else "",
        "probabilities.recorded_at": detail.points[-1][0] if detail.points else "",
    }
    for column, time in shown.items():
        if time > latest:
            kind = Kind(Topic.FUTURE_TIME, "market", f"{column} is in the future", _LOCAL_TIME)
            yield Remark(kind, detail.market.id, time)


def latest_time(as_of: str) -> str:
    """The latest time that does not count as in the future; both are RFC 3339, UTC."""
    return times.instant(datetime.fromisoformat(as_of) + CLOCK_SKEW)


def lines(remarks: Iterable[Remark]) -> Iterator[str]:
    """A line for every kind of remark, with an example; the most frequent first."""
    tally = Tally[Kind]()
    for remark in remarks:
        tally.add(remark.kind, Example(remark.key, remark.value))
    return tally.lines(_sentence, "remark")


def _sentence(kind: Kind, count: int, example: str) -> str:
    return f"{plural(kind.subject)}: {counted(count, 'remark', ',')}: {kind.what} {example}; {kind.effect}"


def _of_market(market: Market) -> Iterator[Remark]:
    if market.has_early_outcome:
        yield Remark(_EARLY_OUTCOME, market.id, market.status)
    if market.status == "resolved" and market.resolution is None:
        yield Remark(_NO_RESOLUTION, market.id)
    if not market.has_visible_question:
        yield Remark(_EMPTY_QUESTION, market.id)
    if market.has_bidi_override:
        yield Remark(_BIDI_OVERRIDE, market.id)


def _of_times(market: Market, latest: str) -> Iterator[Remark]:
    for column, sort in _LEADS.items():
        time = getattr(market, column)
        if time and time > latest:
            what, effect = f"{column} is in the future", f"it leads the sort `{sort}`: {_LOCAL_TIME}"
            yield Remark(Kind(Topic.FUTURE_TIME, "market", what, effect), market.id, time)


def _of_categories(catalog: Catalog, wanted: Iterable[str]) -> Iterator[Remark]:
    for name, shown in sorted(catalog.spellings.shown.items()):
        yield Remark(_MERGED_CATEGORY, printable(name), printable(shown))
    for name, other in sorted(catalog.spellings.refused.items()):
        yield Remark(_SAME_SLUG, printable(name), printable(other))
    known = catalog.categories()
    for reference in wanted:
        if slug_of(reference, known) is None:
            yield Remark(_EMPTY_CATEGORY, printable(reference))
