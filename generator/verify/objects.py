"""What is published of markets beside lists and feeds: details, counts, the snapshot and the change feed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from pydantic_core import from_json

from generator.api import contract, keys, slugs
from generator.api.changes import ChangesHead
from generator.api.contract import PublicMarketDetail
from generator.verify.expected import ExpectedSite
from generator.verify.inquiry import Inquiry, in_order, of_items, stale, unlike
from generator.verify.mismatches import Mismatch, Verdict, parsed
from generator.verify.reader import SiteAnswer


@dataclass(frozen=True)
class DetailCheck:
    """The detail of a market `by` its id, by its slug if it has one, or by both."""

    market_id: str
    by: Literal["id", "slug", "both"] = "both"

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare the market, and what its book, fills and history promise."""
        wanted = asked.site.markets.get(self.market_id)
        if wanted is None:
            return
        slug = wanted.get("slug")
        names = {"id": self.market_id, **({"slug": slug} if slug and slugs.can_be_reference(slug) else {})}
        for reference in names.values() if self.by == "both" else [names.get(self.by, self.market_id)]:
            yield from detail_of(asked, reference, wanted)[1]


def detail_of(
    asked: Inquiry, reference: str, wanted: Mapping[str, Any]
) -> tuple[PublicMarketDetail | None, list[Mismatch]]:
    """The detail by an id or a slug, and how it is not that of the market that is wanted."""
    answer = asked.reader.get(f"{keys.MARKETS}/{reference}")
    detail, broken = parsed(answer, PublicMarketDetail)
    return detail, broken if detail is None else [*broken, *_unlike(asked, answer, detail, wanted)]


def _unlike(
    asked: Inquiry, answer: SiteAnswer, detail: PublicMarketDetail, wanted: Mapping[str, Any]
) -> Iterator[Mismatch]:
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
    yield from (Mismatch(Verdict.WRONG, target, text + doubt) for text in _unlike_questions(site))
    told = site.build.questions if site.questions else None
    of_questions = {keys.OF_QUESTIONS + name: count for name, count in ((told and told.lists) or {}).items()}
    named = {**site.build.lists, **of_questions}
    # An earlier version names those of categories, too.
    of_all = {name for name in site.lists if keys.CATEGORY_SEPARATOR not in name}
    if told is None:
        of_all = {name for name in of_all if not name.startswith(keys.OF_QUESTIONS)}
    for name in of_all - named.keys():
        yield Mismatch(Verdict.WRONG, target, f"does not name the list {name}")
    for name, count in named.items():
        holds = len(site.lists.get(name, ()))
        if count != holds:
            text = f"says {count} for the list {name}; by {site.basis} it has {holds}{doubt}"
            yield Mismatch(Verdict.WRONG, target, text)
    known = site.catalog.categories()
    for category in site.build.categories or ():
        is_known = known.get(category.slug, category.name) == category.name
        if not is_known or slugs.of_category(category.name) != category.slug:
            yield Mismatch(Verdict.WRONG, target, f"names the category {category.slug} {category.name!a}")


def _unlike_questions(site: ExpectedSite) -> Iterator[str]:
    """How many questions build.json tells of, and whether it must tell that."""
    told, held = site.build.questions, len(site.questions.present) if site.questions else None
    if site.dump and (told is None) != (site.dump.questions is None):
        yield f"tells of {'no ' if told is None else ''}questions, unlike the head of the dump"
    elif told and held is not None and told.count != held:
        yield f"says {told.count} questions; by {site.basis} there are {held}"


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
