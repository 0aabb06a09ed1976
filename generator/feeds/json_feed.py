"""Makes JSON Feeds of the items of lists.

An entry shows only what seldom changes of a market, no price and no volume. The only time of a build is that in which
its texts were edited, taken over from the published feed: a feed's bytes change only when its entries do.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_core import from_json

from generator.api import keys
from generator.api.feeds import MOST_ENTRIES, Feed, FeedAuthor, FeedEntry, FeedName, entry_id, home_page
from generator.api.links import NO_LINKS, Links
from generator.config.settings import Config
from generator.models import replaced

#: The list that each feed shows the beginning of.
SOURCES: Final[Mapping[FeedName, str]] = {
    "new": keys.list_name("all", "new"),
    "resolved": keys.list_name("resolved", "ended"),
}
_TITLES: Final[Mapping[FeedName, str]] = {"new": "New markets", "resolved": "Resolved markets"}
_DESCRIPTIONS: Final[Mapping[FeedName, str]] = {
    "new": "The markets created last, latest first.",
    "resolved": "The markets resolved last, latest first.",
}
_DATE: Final = len("2026-01-31")
_CLOCK: Final = slice(len("2026-01-31T"), len("2026-01-31T12:00"))


def make(name: FeedName, items: Iterable[bytes], config: Config, links: Links = NO_LINKS) -> Feed:
    """The feed of the first of these items of its list, encoded as in lists."""
    site = urlsplit(config.base_url).netloc
    return Feed(
        title=f"{_TITLES[name]} on {site}",
        home_page_url=home_page(config),
        feed_url=f"{config.base_url}/{keys.feed(name, 'json')}",
        description=_DESCRIPTIONS[name],
        authors=[FeedAuthor(name=site)],
        items=[_entry(from_json(item), config, links) for item in islice(items, MOST_ENTRIES)],
    )


def dated(feed: Feed, published: Feed | None, as_of: str) -> Feed:
    """The feed, in which entries whose texts are not those that were `published` were modified as of this build."""
    before = {entry.id: entry for entry in published.items} if published else {}
    return replaced(feed, items=[_dated(entry, before.get(entry.id), as_of) for entry in feed.items])


def _dated(entry: FeedEntry, before: FeedEntry | None, as_of: str) -> FeedEntry:
    if before is None or entry.date_modified > before.date_modified:
        return entry
    is_same = (entry.title, entry.content_text) == (before.title, before.content_text)
    return replaced(entry, date_modified=before.date_modified if is_same else as_of)


def _entry(item: Mapping[str, Any], config: Config, links: Links) -> FeedEntry:
    created, resolved = item["createdAt"], item["resolvedAt"]
    return FeedEntry(
        id=entry_id(item["id"]),
        # Readers need something to click on: without a page of its own, the market in the API.
        url=links.of(item["id"], item.get("slug")) or f"{config.base_url}/{keys.MARKETS}/{item['id']}",
        # A question may be blank.
        title=item["question"] if item["question"].strip() else item["id"],
        content_text=" ".join(_sentences(item)),
        date_published=created,
        date_modified=max(created, resolved or created),
        tags=item.get("categories", []),
    )


def _sentences(item: Mapping[str, Any]) -> Iterable[str]:
    at = f" on {_shown(item['resolvedAt'])}" if item["resolvedAt"] else ""
    if item["status"] == "resolved":
        outcome = f" {item['resolution']}" if item["resolution"] else ""
        yield f"Resolved{outcome}{at}."
    elif item["status"] == "cancelled":
        yield f"Cancelled{at}."
    yield f"Closing time: {_shown(item['closeTime'])}."


def _shown(time: str) -> str:
    return f"{time[:_DATE]} {time[_CLOCK]} UTC"
