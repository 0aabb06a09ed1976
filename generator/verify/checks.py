"""What is asked of a site, and how each answer is compared with what it must be."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from generator.api import contract, keys, slugs
from generator.api.contract import PublicMarketDetail, PublicMarketList
from generator.api.downloads import ChangesHead
from generator.api.feeds import FEED_NAMES, Feed, FeedName
from generator.api.prices import Prices
from generator.config.settings import Config
from generator.feeds import json_feed
from generator.verify.earlier_states import EarlierStates
from generator.verify.expected import ExpectedSite
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteAnswer, SiteReader

_Model = TypeVar("_Model", bound=BaseModel)

#: The limits of pages, in turn.
_LIMITS: Final = (20, 100, 1, 7, 50, 33, 99, 2)
#: The most pages of a walk in a sample.
_WALKED: Final = 5
#: The most searches, the lengths of the words that they are made of, and how many take one.
_SEARCHES: Final = 1_000
_WORD: Final = range(3, 40)
_PER_SEARCH: Final = 5
#: What of an entry of a feed follows from its market alone.
_OF_ENTRY: Final = frozenset({"id", "title", "content_text", "date_published", "tags"})


@dataclass(frozen=True)
class Inquiry:
    """Who is asked, what must be answered, and the earlier states by which a stale answer is known."""

    reader: SiteReader
    site: ExpectedSite
    earlier: EarlierStates


#: Asks, and yields what is wrong with the answers.
Check = Callable[[Inquiry], Iterator[Mismatch]]


def all_of(site: ExpectedSite, sample: int | None, seed: str) -> list[Check]:
    """Everything to ask: all of what there is little of, and so many of each of the rest; None for all of that, too."""
    rng = random.Random(seed)  # noqa: S311 - which ones is no secret

    def some(names: list[str]) -> list[str]:
        return names if sample is None or len(names) <= sample else rng.sample(names, sample)

    names = sorted(site.lists)
    of_all = [name for name in names if keys.CATEGORY_SEPARATOR not in name]
    of_categories = [name for name in names if keys.CATEGORY_SEPARATOR in name]
    asked: list[Check] = [_counts, _snapshot, _prices, _changes, *map(FeedCheck, FEED_NAMES)]
    asked += [Walk(name, rng.randrange(len(_LIMITS)), 1) for name in (*of_all, *some(of_categories))]
    longest = None if sample is None else _WALKED
    asked += [Walk(name, rng.randrange(len(_LIMITS)), longest) for name in some(names)]
    asked += map(DetailCheck, some([market.id for market in site.catalog.listed()]))
    return asked + [Walk(name, 0, longest, q) for name, q in _searches(site, sample, rng)]


def _searches(site: ExpectedSite, sample: int | None, rng: random.Random) -> Iterator[tuple[str, str]]:
    """The beginnings of one or two words of a market, and a list that has it; none where there is no search."""
    listed = [market for market in site.catalog.listed() if market.words]
    number = _SEARCHES if sample is None else sample // _PER_SEARCH + 1
    for market in rng.sample(listed, min(len(listed), number)):
        known = sorted(word for word in market.words if len(word) in _WORD)
        chosen = rng.sample(known, min(len(known), rng.choice((1, 2))))
        if chosen:
            name = keys.list_name(rng.choice(("all", market.status)), rng.choice(contract.SORTS))
            yield name, " ".join(word[: rng.randint(_WORD[0], len(word))] for word in chosen)


# ── lists and searches ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Walk:
    """A walk through a list, or what a search finds in it, whose limit changes; over `longest` pages at most."""

    name: str
    turn: int
    longest: int | None
    q: str = ""

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare page after page, up to the first mismatch."""
        items = asked.site.found(self.name, self.q) if self.q else asked.site.lists.get(self.name, ())
        place, cursor = 0, dict[str, str]()
        for number in range(self.longest or len(items) + 1):
            limit = _LIMITS[(self.turn + number) % len(_LIMITS)]
            answer = asked.reader.get(keys.MARKETS, {**self._parameters(), "limit": limit, **cursor})
            page, broken = _parsed(answer, PublicMarketList)
            # A later page may hold fewer markets than its limit, and so may one of a search.
            least = min(limit if not cursor and not self.q else 1, len(items) - place)
            wrong = broken or _of_page(asked, answer, page, items[place:], range(least, limit + 1))
            yield from wrong
            place += len(page.items) if page else 0
            if wrong or page is None or page.next_cursor is None:
                return
            cursor = {"cursor": page.next_cursor}

    def _parameters(self) -> dict[str, str]:
        filtered, _, sort = self.name.partition("/")
        status, _, category = filtered.partition(keys.CATEGORY_SEPARATOR)
        chosen = {"status": status, "sort": sort, "category": category, "q": self.q}
        return {name: value for name, value in chosen.items() if value}


def _of_page(
    asked: Inquiry, answer: SiteAnswer, page: PublicMarketList | None, rest: Sequence[bytes], sizes: range
) -> list[Mismatch]:
    """What is wrong with a page, which must hold the first of the `rest`; it may have one of these sizes."""
    shown = from_json(answer.body)["items"]
    wanted = [from_json(item) for item in rest[: len(shown)]]
    if shown != wanted:
        return [_of_items(asked, answer, shown, wanted)]
    has_more = page is not None and page.next_cursor is not None
    if len(shown) not in sizes or has_more != (len(shown) < len(rest)):
        follows = "says that more follow" if has_more else "is the last"
        text = f"has {len(shown)} items and {follows}, of {len(rest)} that are left; its limit is {sizes[-1]}"
        return [Mismatch(Verdict.WRONG, answer.target, text)]
    return []


def _of_items(asked: Inquiry, answer: SiteAnswer, shown: Sequence[Any], wanted: Sequence[Any]) -> Mismatch:
    """How bad it is that these items are not those that are wanted."""
    gone = next((item["id"] for item in shown if item["id"] not in asked.site.markets), None)
    since = asked.earlier.since(shown)
    if gone:
        told = f", as it was before {since}" if since else ""
        text = f"shows market {gone}, which the dump has no more{told}{answer.age}"
        return Mismatch(Verdict.WITHDRAWN, answer.target, text)
    if since:
        text = f"is out of date since {since}; what is published is as of {asked.site.build.as_of}{answer.age}"
        return Mismatch(Verdict.STALE, answer.target, text)
    place, (one, other) = next(
        (place, pair)
        for place, pair in enumerate(zip(shown, [*wanted, *[{}] * len(shown)], strict=False))
        if pair[0] != pair[1]
    )
    return Mismatch(Verdict.WRONG, answer.target, f"item {place + 1} {_unlike(one, other)}{answer.age}")


def _unlike(shown: Any, wanted: Any) -> str:
    """In what an object differs from the one that is wanted."""
    if shown.get("id") != wanted.get("id"):
        return f"is market {shown.get('id')}; the dump and the order say {wanted.get('id', 'that there is none')}"
    name = next(name for name in {**wanted, **shown} if shown.get(name) != wanted.get(name))
    other = f"says {wanted[name]!r:.80}" if name in wanted else "has none"
    return f"has {name} {shown.get(name)!r:.80}; the dump {other}"


# ── everything else ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class DetailCheck:
    """The detail of a market, by its id and by its slug."""

    market_id: str

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare the market, and what its book, fills and history promise."""
        wanted = asked.site.markets.get(self.market_id)
        if wanted is None:
            return
        answer = asked.reader.get(f"{keys.MARKETS}/{self.market_id}")
        detail, broken = _parsed(answer, PublicMarketDetail)
        yield from broken
        if detail is None:
            return
        shown = from_json(answer.body)["market"]
        if shown != wanted:
            since = asked.earlier.since([shown]) if shown.get("id") == self.market_id else None
            text = f"is out of date since {since}" if since else f"its market {_unlike(shown, wanted)}"
            yield Mismatch(Verdict.STALE if since else Verdict.WRONG, answer.target, text + answer.age)
        yield from (Mismatch(Verdict.WRONG, answer.target, text) for text in _disorder(detail))
        if wanted.get("slug"):
            by_slug = asked.reader.get(f"{keys.MARKETS}/{wanted['slug']}")
            if (by_slug.status, by_slug.body) != (HTTPStatus.OK, answer.body):
                yield Mismatch(Verdict.WRONG, by_slug.target, "is another answer than by the market's id")


def _disorder(detail: PublicMarketDetail) -> Iterator[str]:
    """What is not in the order that is published."""
    book = detail.order_book
    bids, asks = ([level.price for level in side] for side in (book.bids, book.asks))
    if bids != sorted({*bids}, reverse=True) or asks != sorted({*asks}):
        yield "its order book is not best price first, each price once"
    fills = [fill.timestamp for fill in detail.recent_fills]
    if fills != sorted(fills, reverse=True):
        yield "its fills are not newest first"
    points = [point.timestamp for point in detail.prob_history]
    if points != sorted(points):
        yield "its history is not oldest first"


def _counts(asked: Inquiry) -> Iterator[Mismatch]:
    """The counts of lists in build.json, and the names of categories."""
    site = asked.site
    target = f"/{keys.BUILD}"
    for name, count in site.build.lists.items():
        if count != len(site.lists.get(name, ())):
            yield Mismatch(
                Verdict.WRONG,
                target,
                f"says {count} for the list {name}; by the dump it has {len(site.lists.get(name, ()))}",
            )
    known = site.catalog.categories()
    for category in site.build.categories or ():
        if (
            known.get(category.slug, category.name) != category.name
            or slugs.of_category(category.name) != category.slug
        ):
            yield Mismatch(Verdict.WRONG, target, f"names the category {category.slug} {category.name!a}")


def _snapshot(asked: Inquiry) -> Iterator[Mismatch]:
    """The groups of the landing page."""
    answer = asked.reader.get(f"{keys.MARKETS}/snapshot")
    page, broken = _parsed(answer, contract.PublicMarketSnapshot)
    yield from broken
    wanted = asked.site.catalog.snapshot(asked.site.build.snapshot_size).model_dump(mode="json", by_alias=True)
    for group, markets in wanted.items() if page else ():
        shown = from_json(answer.body)[group]
        if shown != markets:
            found = _of_items(asked, answer, shown, markets)
            yield found._replace(text=f"{group}: {found.text}")


def _prices(asked: Inquiry) -> Iterator[Mismatch]:
    """The prices of all open markets, where they are published."""
    answer = asked.reader.get(keys.PRICES)
    if answer.status == HTTPStatus.NOT_FOUND:
        return
    shown, broken = _parsed(answer, Prices)
    yield from broken
    if shown is None:
        return
    listed = [asked.site.markets[market.id] for market in asked.site.catalog.listed() if market.status == "open"]
    names = ("id", "prob", "volume", "lastActivityAt")
    wanted = [{name: market[name] for name in names} for market in listed]
    found = from_json(answer.body)["markets"]
    if found != wanted:
        yield _of_items(asked, answer, found, wanted)


def _changes(asked: Inquiry) -> Iterator[Mismatch]:
    """The head of the change feed: the state that it leads to is that of the dump."""
    answer = asked.reader.get(keys.head(keys.CHANGES))
    if answer.status == HTTPStatus.NOT_FOUND:
        return
    head, broken = _parsed(answer, ChangesHead)
    yield from broken
    if head and (head.state, head.count) != (asked.site.dump.state, asked.site.dump.count):
        text = f"leads to another state than that of the dump, which is as of {asked.site.dump.as_of}"
        yield Mismatch(Verdict.STALE if head.as_of < asked.site.dump.as_of else Verdict.WRONG, answer.target, text)


@dataclass(frozen=True)
class FeedCheck:
    """The feed of this name, where it is published."""

    name: FeedName

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare which markets it shows, and what it says of each."""
        answer = asked.reader.get(keys.feed(self.name, "json"))
        if answer.status == HTTPStatus.NOT_FOUND:
            return
        shown, broken = _parsed(answer, Feed, content_type="application/feed+json")
        yield from broken
        if shown is None:
            return
        made = json_feed.make(self.name, asked.site.lists[json_feed.SOURCES[self.name]], Config())
        pairs = zip(_entries(shown), _entries(made), strict=False)
        if len(shown.items) != len(made.items) or any(one != other for one, other in pairs):
            yield Mismatch(
                Verdict.WRONG, answer.target, "shows other markets, or other texts of them, than the dump has"
            )


def _entries(feed: Feed) -> Iterator[dict[str, Any]]:
    return (entry.model_dump(include={*_OF_ENTRY}) for entry in feed.items)


def _parsed(
    answer: SiteAnswer, model: type[_Model], content_type: str = "application/json"
) -> tuple[_Model | None, list[Mismatch]]:
    """The answer's content, and how it breaks the contract: without content, only that matters."""
    broken = [Mismatch(Verdict.BROKEN, answer.target, text) for text in _flaws(answer, content_type)]
    if answer.status != HTTPStatus.OK:
        return None, [
            Mismatch(Verdict.BROKEN, answer.target, f"is answered {answer.status}, not 200{answer.age}"),
            *broken,
        ]
    try:
        return model.model_validate_json(answer.body), broken
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ascii(".".join(map(str, fault["loc"])) or "the body")[1:-1]  # it may be the name of any property
        return None, [Mismatch(Verdict.BROKEN, answer.target, f"{where}: {fault['msg']}"), *broken]


def _flaws(answer: SiteAnswer, content_type: str) -> Iterator[str]:
    """What headers lack."""
    found = answer.headers.get("content-type", "")
    if found.partition(";")[0].strip() != content_type:
        yield f"has the type {found!a}, not {content_type}"
    if answer.headers.get("access-control-allow-origin") != "*":
        yield "has no Access-Control-Allow-Origin: *, so browsers on other sites cannot read it"
