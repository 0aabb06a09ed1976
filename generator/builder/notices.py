"""Remarks about what is published differently than the operator may expect, for the report and stderr. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from generator.api import contract, forms, links, prices
from generator.config.settings import Config
from generator.findings import Finding, FindingCounts, warning
from generator.markets.categories import slug_of
from generator.markets.detail import Detail
from generator.markets.market import Market
from generator.markets.quarantine import printable
from generator.site.catalog import Catalog
from generator.wording import counted, plural

#: How far a time may lie after as-of before it counts as in the future. Clocks of servers differ by seconds, and rows
#: arrive while a build begins; a local time mistaken for UTC is off by half an hour at least.
CLOCK_SKEW: Final = timedelta(minutes=5)

#: How long a market may be open past its closing time: a site's own job may close its markets once an hour.
OVERDUE_AFTER: Final = timedelta(hours=1)

_LOCAL_TIME: Final = "correct it, or convert local time to UTC in a view"


class Topic(StrEnum):
    """What a remark is about, as metrics name it."""

    EARLY_OUTCOME = "early_outcome"
    NO_RESOLUTION = "no_resolution"
    OVERDUE = "overdue"
    EMPTY_QUESTION = "empty_question"
    BIDI_OVERRIDE = "bidi_override"
    HIDDEN_CHARACTER = "hidden_character"
    MIXED_SCRIPTS = "mixed_scripts"
    FUTURE_TIME = "future_time"
    UNUSABLE_SLUG = "unusable_slug"
    UNUSABLE_KEY = "unusable_key"
    MERGED_CATEGORY = "merged_category"
    SAME_SLUG = "same_slug"
    CUT_CATEGORY = "cut_category"
    EMPTY_CATEGORY = "empty_category"
    FALSE_VERSION = "false_version"
    DAMAGE = "damage"
    NEW_SESSION = "new_session"
    NO_PRICES = "no_prices"
    FEW_CONNECTIONS = "few_connections"
    TRADES = "trades"
    TWO_QUESTIONS = "two_questions"
    BLANK_LABEL = "blank_label"
    EARLY_PAYOUT = "early_payout"
    NOT_EXCLUSIVE = "not_exclusive"
    NEW_QUESTIONS = "new_questions"
    JOINED_QUESTION = "joined_question"


#: What happened during a build: each time is new, and does not end.
EVENTS: Final = frozenset({
    Topic.FALSE_VERSION, Topic.DAMAGE, Topic.NEW_SESSION, Topic.NEW_QUESTIONS, Topic.JOINED_QUESTION
})  # fmt: skip
#: Remarks whose value, such as a number of markets, may be another in every build of a site that is as it was.
MOVING: Final = frozenset({
    Topic.EARLY_OUTCOME, Topic.FUTURE_TIME, Topic.CUT_CATEGORY, Topic.NOT_EXCLUSIVE, Topic.FEW_CONNECTIONS
})  # fmt: skip
#: One remark stands for all of these, whichever is its example: it is told again when they have a digit more.
TOGETHER: Final = frozenset({Topic.OVERDUE})
#: What kinds of remarks are called that are not shown.
REST: Final = "remark"

#: What is said only of sites that have questions.
OF_QUESTIONS: Final = frozenset({
    Topic.TWO_QUESTIONS, Topic.BLANK_LABEL, Topic.EARLY_PAYOUT, Topic.NOT_EXCLUSIVE, Topic.NEW_QUESTIONS,
    Topic.JOINED_QUESTION,
})  # fmt: skip


def _kind(topic: Topic, subject: str, text: str, effect: str) -> Finding:
    """What remarks of one kind have in common; `effect` is what to expect or to do."""
    return Finding(topic=topic, subject=subject, text=text, remedy=effect)


_EARLY_OUTCOME: Final = _kind(
    Topic.EARLY_OUTCOME,
    "market",
    "has a resolution or a resolved_at before its time",
    "both are published as null until its status is resolved or cancelled",
)
_NO_RESOLUTION: Final = _kind(
    Topic.NO_RESOLUTION,
    "market",
    "is resolved but has no resolution",
    "it is published as it stands: set its resolution",
)
_OVERDUE: Final = _kind(
    Topic.OVERDUE,
    "market",
    "is open past its close_time",
    "it is in the lists of open markets, and accepts no bets: publish it as closed, as docs/recipes.md says "
    "under “No status closed”",
)
_EMPTY_QUESTION: Final = _kind(
    Topic.EMPTY_QUESTION,
    "market",
    "question is empty",
    "it is published as it stands: write the question, or hide the market",
)
_BIDI_OVERRIDE: Final = _kind(
    Topic.BIDI_OVERRIDE,
    "market",
    "a text has a bidirectional override (U+202D or U+202E)",
    "it is published, but reads otherwise than it is written: look at it as code points",
)
_HIDDEN_CHARACTER: Final = _kind(
    Topic.HIDDEN_CHARACTER,
    "market",
    "question has a character that shows nothing, such as a zero-width space",
    "it is published, but searches may not find its words: remove the character",
)
_MIXED_SCRIPTS: Final = _kind(
    Topic.MIXED_SCRIPTS,
    "market",
    "a word of the question has letters of two scripts, which may look alike",
    "it is published, but searches may not find the word: look at it as code points",
)
_UNUSABLE_KEY: Final = _kind(
    Topic.UNUSABLE_KEY,
    "market",
    "key cannot be used",
    "no link leads to its page, and no takedown finds it by its key: give each market a key of its own, or none",
)
_MERGED_CATEGORY: Final = _kind(
    Topic.MERGED_CATEGORY,
    "category",
    "is published in another spelling",
    "the two differ only in case, in spaces or in Unicode form",
)
_SAME_SLUG: Final = _kind(
    Topic.SAME_SLUG, "category", "has the slug of another", "markets are published without it: rename it"
)
_CUT_CATEGORY: Final = _kind(
    Topic.CUT_CATEGORY,
    "category",
    f"has {contract.CATEGORY_LENGTH} characters, the most that a name may have, as if a view had cut it",
    "of longer names, those that begin alike may have become one category: give each a shorter name of its own",
)
_EMPTY_CATEGORY: Final = _kind(
    Topic.EMPTY_CATEGORY, "category", "has no public market", "it gets no lists: correct the setting `categories`"
)
FALSE_VERSION: Final = _kind(
    Topic.FALSE_VERSION,
    "market",
    "a version (detail_version or market_version) did not change, but rows that it stands for did",
    "this build read everything; change detail_version with each order, fill and point, market_version with all else, "
    "in the same transaction",
)
DAMAGE: Final = _kind(
    Topic.DAMAGE,
    "file",
    "was altered since it was built",
    "this build compared every file and made it again; look at the disk, and who else writes there",
)
NEW_QUESTIONS: Final = _kind(
    Topic.NEW_QUESTIONS,
    "database",
    "has questions now, and the last build had none",
    "deploy output/edge/ again: until then an edge knows no path of questions",
)
JOINED_QUESTION: Final = _kind(
    Topic.JOINED_QUESTION,
    "market",
    "joined a question that was taken down",
    "it is blocked, too, until `takedown --undo --question` releases the question",
)
NEW_SESSION: Final = _kind(
    Topic.NEW_SESSION,
    "file",
    "is missing or altered, so nobody knows what changed since the last build",
    "the change feed begins a new session, and followers start again from the dump",
)
FEW_CONNECTIONS: Final = _kind(
    Topic.FEW_CONNECTIONS,
    "worker",
    "not every worker got a connection to the database",
    "the rest of the build read their parts, so it took longer: let the pool, or the limit of this user, hold one "
    "connection for each worker and one more",
)
NO_PRICES: Final = _kind(
    Topic.NO_PRICES,
    "file",
    f"would be larger than {prices.MOST_BYTES // 1_000_000} MB",
    "it is not published, and a request for it is a 404: set prices_file to false, so that nobody is told of it",
)
_TRADES: Final = _kind(
    Topic.TRADES,
    "setting",
    "points are whole now, and trades need dumps.fills: true",
    "set it if all trades, which can tell who traded, are to be public, and take out dumps.histories",
)
_AND_OTHERS: Final = ", and "
#: What to expect of a time in the future, by the market's column.
_LEADS: Final = {"created_at": "new", "last_activity_at": "activity", "resolved_at": "ended"}


def of(catalog: Catalog, config: Config) -> Iterator[Finding]:
    """Remarks about the rows of markets and their keys; in the extended variant about slugs and categories, too.

    An early outcome is the one secret a market has, so it is not quoted.
    """
    latest = latest_time(catalog.as_of)
    for market in catalog.markets:
        yield from _of_market(market)
        yield from _of_times(market, latest)
        reason = catalog.naming.refused_slugs.get(market.id)
        if reason:
            text = f"slug cannot be used: {reason.text}"
            kind = _kind(Topic.UNUSABLE_SLUG, "market", text, "it is found by its id only")
            yield kind.about(market.id, reason.value)
        if refused := catalog.naming.site_keys.refused.get(market.id):
            yield _UNUSABLE_KEY._replace(text=f"key cannot be used: {refused.text}").about(market.id, refused.value)
    yield from _of_overdue(catalog)
    if config.variant == "extended":
        yield from _of_categories(catalog, config.categories or ())


def of_links(config: Config, catalog: Catalog, *, has_keys: bool) -> Iterator[Finding]:
    """What is missing for links to pages of markets and questions; `has_keys`: markets have a column for keys."""
    count, questions = len(catalog.markets), catalog.questions or ()
    if count and not questions and catalog.links(config.market_url).needs_question:
        yield warning("market_url: has {question}, but no market is in a question, so none gets a link; leave it out")
    if links.uses_keys(config.question_url) and (missing := len(questions) - len(catalog.question_keys())) > 0:
        yield warning(
            f"question_url: has {{key}}, and {missing:,} of {counted(len(questions), 'question', ',')} have no usable "
            "key, so they get no link; give each a key of its own"
        )
    if not links.uses_keys(config.market_url) or not count:
        return
    if not has_keys:
        yield warning(
            "market_url: has {key}, but markets has no column `key`, so no market gets a link; add the column, or "
            "write {id}"
        )
    elif (missing := count - len(catalog.site_keys())) > 0:
        yield warning(
            f"market_url: has {{key}}, and {missing:,} of {counted(count, 'market', ',')} have no usable key, so they "
            "get no link; give each a key of its own"
        )


def of_histories(config: Config, before: Mapping[str, Any]) -> Iterator[Finding]:
    """The remark about a setting that is gone: it is in the configuration, or a version that had it made Parquet.

    `before` are the settings that are recorded with the last build.
    """
    if config.dumps.histories is not None or (before.get("dumps.parquet") and "dumps.fills" not in before):
        yield _TRADES.about("dumps.fills")


def empty_relations(names: Sequence[str]) -> str:
    """The line about relations in which a first build finds nothing: the builds that follow are compared with it."""
    return (
        f"{', '.join(names)}: this folder's first build finds no row; if your site has any, look at the view, and at "
        "what the database user may see (row level security)"
    )


def of_detail(detail: Detail, latest: str) -> Iterator[Finding]:
    """Remarks about the fills and points of a market that are published; `latest` is `latest_time`."""
    shown = {
        "fills.created_at": detail.recent_fills[0].timestamp if detail.recent_fills else "",
        "probabilities.recorded_at": detail.points[-1][0] if detail.points else "",
    }
    for column, time in shown.items():
        if time > latest:
            yield _in_future(column, _LOCAL_TIME).about(detail.market.id, time)


def latest_time(as_of: str) -> str:
    """The latest time that does not count as in the future; both are RFC 3339, UTC."""
    return forms.instant(datetime.fromisoformat(as_of) + CLOCK_SKEW)


def lines(remarks: Iterable[Finding]) -> Iterator[str]:
    """A line for every kind of remark, with an example; the most frequent first."""
    return FindingCounts(remarks).lines(heading, REST)


def heading(remark: Finding, count: int) -> str:
    """How the line about so many remarks of a kind begins."""
    return f"{plural(remark.subject)}: {counted(count, 'remark', ',')}"


def _of_market(market: Market) -> Iterator[Finding]:
    if market.has_early_outcome:
        yield _EARLY_OUTCOME.about(market.id, market.status)
    if market.status == "resolved" and market.resolution is None:
        yield _NO_RESOLUTION.about(market.id)
    if not market.has_visible_question:
        yield _EMPTY_QUESTION.about(market.id)
    elif market.hides_characters:
        yield _HIDDEN_CHARACTER.about(market.id)
    if market.has_bidi_override:
        yield _BIDI_OVERRIDE.about(market.id)
    if market.mixes_scripts:
        yield _MIXED_SCRIPTS.about(market.id)


def _of_overdue(catalog: Catalog) -> Iterator[Finding]:
    """One remark about all of them, with the one that closed first: without the status closed, most markets are."""
    ended = forms.instant(datetime.fromisoformat(catalog.as_of) - OVERDUE_AFTER)
    overdue = [market for market in catalog.markets if market.status == "open" and market.close_time < ended]
    if overdue:
        first = min(overdue, key=attrgetter("close_time", "id"))
        others = f"{_AND_OTHERS}{counted(len(overdue) - 1, 'other', ',')}" if len(overdue) > 1 else ""
        yield _OVERDUE.about(first.id, f"{first.close_time}{others}")


def magnitude(remark: Finding) -> int:
    """How many digits the number of those has that the remark about overdue markets stands for."""
    others = (remark.value or "").rpartition(_AND_OTHERS)[2] if _AND_OTHERS in (remark.value or "") else "0"
    return len(str(1 + int(others.split(" ")[0].replace(",", ""))))


def _of_times(market: Market, latest: str) -> Iterator[Finding]:
    for column, sort in _LEADS.items():
        time = getattr(market, column)
        if time and time > latest:
            yield _in_future(column, f"it leads the sort `{sort}`: {_LOCAL_TIME}").about(market.id, time)


def _in_future(column: str, effect: str) -> Finding:
    return _kind(Topic.FUTURE_TIME, "market", f"{column} is in the future", effect)


def _of_categories(catalog: Catalog, wanted: Iterable[str]) -> Iterator[Finding]:
    for name, shown in sorted(catalog.naming.spellings.shown.items()):
        yield _MERGED_CATEGORY.about(printable(name), printable(shown))
    for name, other in sorted(catalog.naming.spellings.refused.items()):
        yield _SAME_SLUG.about(printable(name), printable(other))
    known = catalog.categories()
    yield from _of_cut_categories(catalog, known)
    for reference in wanted:
        if slug_of(reference, known) is None:
            yield _EMPTY_CATEGORY.about(printable(reference))


def _of_cut_categories(catalog: Catalog, known: Mapping[str, str]) -> Iterator[Finding]:
    """Remarks about names as long as a name may be that several markets have: they may be the beginnings of others."""
    longest = {slug: name for slug, name in known.items() if len(name) == contract.CATEGORY_LENGTH}
    holders = Counter(slug for market in catalog.markets for slug in market.categories if slug in longest)
    for slug, name in longest.items():
        if holders[slug] > 1:
            yield _CUT_CATEGORY.about(printable(name), counted(holders[slug], "market", ","))
