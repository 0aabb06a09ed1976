"""What is published beside lists: details, documents, the snapshot, prices, feeds and the change feed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from operator import attrgetter
from typing import Any, Final

from pydantic_core import from_json

from generator.api import contract, keys, prices, slugs
from generator.api.contract import PublicMarketDetail
from generator.api.downloads import ChangesHead
from generator.api.feeds import Feed, FeedName
from generator.api.prices import Prices
from generator.config.settings import Config
from generator.feeds import json_feed
from generator.verify.answers import flaws, not_ok, parsed
from generator.verify.inquiry import Inquiry, in_order, of_items, stale, unlike
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import LONGEST, SiteAnswer

#: The documents that no market is in, with their types.
_DOCUMENTS: Final = {
    f"{contract.API_VERSION}/": "application/json", keys.BUILD: "application/json", keys.OPENAPI: "application/json",
    keys.CHANGELOG: "application/json", keys.LLMS: "text/plain",
}  # fmt: skip
#: The id of an entry of an Atom feed.
_ATOM_ID: Final = re.compile(rb"<id>urn:uuid:([0-9a-f-]{36})</id>")
#: What of an entry of a feed follows from its market alone.
_OF_ENTRY: Final = frozenset({"id", "title", "content_text", "date_published", "tags"})
#: The properties of a market on which those and the order of feeds depend.
_SHOWN_IN_FEEDS: Final = frozenset(
    {"question", "status", "resolution", "closeTime", "createdAt", "resolvedAt", "categories"}
)


@dataclass(frozen=True)
class DetailCheck:
    """The detail of a market, by its id and by its slug."""

    market_id: str

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare the market, and what its book, fills and history promise."""
        wanted = asked.site.markets.get(self.market_id)
        if wanted is None:
            return
        slug = wanted.get("slug")
        for reference in (self.market_id, slug):
            if reference and (reference is not slug or slugs.can_be_reference(slug)):
                yield from _of_detail(asked, asked.reader.get(f"{keys.MARKETS}/{reference}"), wanted)


def _of_detail(asked: Inquiry, answer: SiteAnswer, wanted: Mapping[str, Any]) -> Iterator[Mismatch]:
    detail, broken = parsed(answer, PublicMarketDetail)
    yield from broken
    if detail is None:
        return
    shown: Mapping[str, Any] = from_json(answer.body)["market"]
    if asked.site.dump is None:  # lists have fewer properties
        shown = {name: value for name, value in shown.items() if name in wanted}
    if shown != wanted:
        since = asked.earlier.since([shown], [wanted]) if shown.get("id") == wanted["id"] else None
        text = f"its market {unlike(shown, wanted, asked.site.basis)}{answer.age}"
        yield stale(asked, answer, since) if since else Mismatch(Verdict.WRONG, answer.target, text)
    yield from (Mismatch(Verdict.WRONG, answer.target, text) for text in _disorder(detail))


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


def check_build(asked: Inquiry) -> Iterator[Mismatch]:
    """The counts of lists in build.json, and the names of categories."""
    site, target = asked.site, f"/{keys.BUILD}"
    if site.dump and site.build.as_of < site.dump.as_of:
        text = f"is as of {site.build.as_of}, but the dump is as of {site.dump.as_of}"
        yield Mismatch(Verdict.STALE, target, text)
        return
    doubt = ""
    if site.dump and site.dump.as_of < site.build.as_of:
        doubt = f"; or the dump, as of {site.dump.as_of}, is an old copy"
    for name in site.lists.keys() - site.build.lists.keys():
        yield Mismatch(Verdict.WRONG, target, f"does not name the list {name}")
    for name, count in site.build.lists.items():
        holds = len(site.lists.get(name, ()))
        if count != holds:
            yield Mismatch(
                Verdict.WRONG, target, f"says {count} for the list {name}; by {site.basis} it has {holds}{doubt}"
            )
    known = site.catalog.categories()
    for category in site.build.categories or ():
        is_known = known.get(category.slug, category.name) == category.name
        if not is_known or slugs.of_category(category.name) != category.slug:
            yield Mismatch(Verdict.WRONG, target, f"names the category {category.slug} {category.name!a}")


def check_documents(asked: Inquiry) -> Iterator[Mismatch]:
    """The documents that no market is in, and the dump, if the site says that it has one."""
    for path, content_type in _DOCUMENTS.items():
        answer = asked.reader.get(path)
        yield from (Mismatch(Verdict.BROKEN, answer.target, text) for text in flaws(answer, content_type))
        if answer.status != HTTPStatus.OK or not _is_readable(answer.body, content_type):
            yield Mismatch(Verdict.BROKEN, answer.target, f"is answered {answer.status}, or no {content_type}")
    if asked.site.offers.dumps and asked.site.dump is None:
        yield Mismatch(Verdict.BROKEN, f"/{keys.head(keys.DUMPS)}", "is missing, but the index of the site names it")


def _is_readable(body: bytes, content_type: str) -> bool:
    try:
        return isinstance(from_json(body), dict) if content_type == "application/json" else bool(body.decode())
    except ValueError:
        return False


def check_snapshot(asked: Inquiry) -> Iterator[Mismatch]:
    """The groups of the landing page."""
    answer = asked.reader.get(f"{keys.MARKETS}/snapshot")
    page, broken = parsed(answer, contract.PublicMarketSnapshot)
    yield from broken
    if page is None:
        return
    wanted = asked.site.catalog.snapshot(asked.site.build.snapshot_size).model_dump(mode="json", by_alias=True)
    fresh, closing = (sorted(group, key=attrgetter("id")) for group in (page.fresh_markets, page.closing_soon_markets))
    are_in_order = (
        in_order(page.fresh_markets, sorted(fresh, key=attrgetter("created_at"), reverse=True)),
        in_order(page.closing_soon_markets, sorted(closing, key=attrgetter("close_time"))),
    )
    for (group, markets), is_sorted in zip(wanted.items(), are_in_order, strict=True):
        shown = from_json(answer.body)[group]
        if shown != markets:
            found = of_items(asked, answer, shown, markets, can_be_stale=is_sorted)
            yield found._replace(text=f"{group}: {found.text}")


def check_prices(asked: Inquiry) -> Iterator[Mismatch]:
    """The prices of all open markets, where they are published."""
    site = asked.site
    items = (market.body for market in site.catalog.listed() if market.status == "open")
    body = prices.make(items, site.build.as_of, None) if site.offers.prices else None
    if body is None:
        return
    answer = asked.reader.get(keys.PRICES, longest=max(LONGEST, 2 * len(body)))
    page, broken = parsed(answer, Prices)
    yield from broken
    if page is None:
        return
    shown, wanted = from_json(answer.body)["markets"], from_json(body)["markets"]
    if shown != wanted:
        is_sorted = in_order(page.markets, sorted(page.markets, key=attrgetter("id")))
        yield of_items(asked, answer, shown, wanted, can_be_stale=is_sorted)


def check_changes(asked: Inquiry) -> Iterator[Mismatch]:
    """The change feed: its head leads to the state of the dump, and so do its steps."""
    site = asked.site
    if not site.offers.changes or not site.dump:
        return
    answer = asked.reader.get(keys.head(keys.CHANGES))
    head, broken = parsed(answer, ChangesHead)
    yield from broken
    if head is None:
        return
    if (head.state, head.count) != (site.dump.state, site.dump.count):
        text = f"leads to another state than that of the dump, which is as of {site.dump.as_of}"
        yield Mismatch(Verdict.STALE if head.as_of < site.dump.as_of else Verdict.WRONG, answer.target, text)
        return
    yield from asked.flaws
    contradiction = asked.earlier.contradiction()
    if contradiction:
        text = f"its steps lead {contradiction}, which the dump contradicts"
        yield Mismatch(Verdict.WRONG, answer.target, text)


@dataclass(frozen=True)
class FeedCheck:
    """The feed of this name, where it is published."""

    name: FeedName

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare which markets it shows, and what it says of each."""
        if not asked.site.offers.feeds:
            return
        answer = asked.reader.get(keys.feed(self.name, "json"))
        page, broken = parsed(answer, Feed, content_type="application/feed+json")
        yield from broken
        if page is None:
            return
        made = json_feed.make(self.name, asked.site.lists[json_feed.SOURCES[self.name]], Config())
        shown, wanted = _entries(page), _entries(made)
        if [*shown.items()] != [*wanted.items()] or len(shown) != len(page.items):
            yield self._unlike(asked, answer, shown, wanted)
        yield from self._in_atom(asked, wanted)

    def _in_atom(self, asked: Inquiry, wanted: Mapping[str, object]) -> Iterator[Mismatch]:
        """The same feed in its other form: which markets it shows."""
        answer = asked.reader.get(keys.feed(self.name, "atom"))
        yield from (Mismatch(Verdict.BROKEN, answer.target, text) for text in flaws(answer, "application/atom+xml"))
        if answer.status != HTTPStatus.OK:
            yield not_ok(answer)
            return
        shown = [market_id.decode() for market_id in _ATOM_ID.findall(answer.body)]
        if shown != [*wanted]:
            yield self._unlike(asked, answer, {one: wanted.get(one) for one in shown}, wanted)

    def _unlike(
        self, asked: Inquiry, answer: SiteAnswer, shown: Mapping[str, object], wanted: Mapping[str, object]
    ) -> Mismatch:
        gone = next((market_id for market_id in shown if market_id not in asked.site.markets), None)
        if gone:
            text = f"shows market {gone}, which {asked.site.basis} does not have{answer.age}"
            return Mismatch(Verdict.WITHDRAWN, answer.target, text)
        edited = [one for one in wanted if one in shown and shown[one] != wanted[one]]
        # One that came, went or moved explains the places of all others; each other text needs a change of its own.
        moved = {*wanted} ^ {*shown} or {*wanted}
        times = [asked.earlier.changed_since([one], _SHOWN_IN_FEEDS) for one in moved]
        newest = max((known for known in times if known), default=None)
        since = asked.earlier.changed_since(edited, _SHOWN_IN_FEEDS) if edited else newest
        if since:
            return stale(asked, answer, since)
        text = f"shows other markets, other texts of them, or another order than {asked.site.basis} has"
        return Mismatch(Verdict.WRONG, answer.target, text)


def _entries(feed: Feed) -> dict[str, object]:
    return {entry.market_id: entry.model_dump(include={*_OF_ENTRY}) for entry in feed.items}
