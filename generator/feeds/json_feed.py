"""Makes JSON Feeds of the items of lists.

An entry shows only what seldom changes of a market, no price and no volume. The only time of a build is that in which
its texts were edited, taken over from the published feed: a feed's bytes change only when its entries do.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_core import from_json

from generator.api import keys
from generator.api.feeds import MOST_ENTRIES, Feed, FeedAuthor, FeedEntry, FeedName, FeedRights, entry_id, home_page
from generator.api.links import NO_LINKS, Links
from generator.api.questions import SINGLE
from generator.config.settings import Config
from generator.models import replaced

_TITLES: Final[Mapping[FeedName, str]] = {"new": "New markets", "resolved": "Resolved markets"}
_DESCRIPTIONS: Final[Mapping[FeedName, str]] = {
    "new": "The markets created last, latest first.",
    "resolved": "The markets resolved last, latest first.",
}
_CLOSES: Final = "Closing time: "
_DATE: Final = len("2026-01-31")
_CLOCK: Final = slice(len("2026-01-31T"), len("2026-01-31T12:00"))


def source(name: FeedName, config: Config) -> str:
    """The list that the feed shows the beginning of: what is new are questions, where they have lists."""
    if name == "resolved":
        return keys.list_name("resolved", "ended")
    return keys.question_list_name("all", "new") if config.has_question_lists else keys.list_name("all", "new")


def make(
    name: FeedName, items: Iterable[bytes], config: Config, links: Links = NO_LINKS, question_links: Links = NO_LINKS
) -> Feed:
    """The feed of the first of these items of its list, encoded as in lists: of markets, or rows of questions."""
    site = urlsplit(config.base_url).netloc
    return Feed(
        title=f"{_TITLES[name]} on {site}",
        home_page_url=home_page(config),
        feed_url=f"{config.base_url}/{keys.feed(name, 'json')}",
        description=_DESCRIPTIONS[name],
        authors=[FeedAuthor(name=config.publisher.shown_name or site, url=config.publisher.url)],
        rights=FeedRights(license=config.license) if config.license else None,
        items=[_entry_of(from_json(item), config, links, question_links) for item in islice(items, MOST_ENTRIES)],
    )


def dated(feed: Feed, published: Feed | None, as_of: str, questions: Collection[str] = ()) -> Feed:
    """The feed, in which entries whose texts are not those that were `published` were modified as of this build.

    Of the `questions` (ids), only title and closing time count: their markets end one by one.
    """
    before = {entry.id: entry for entry in published.items} if published else {}
    of_questions = {*map(entry_id, questions)}

    def texts(entry: FeedEntry) -> tuple[str, str]:
        text = entry.content_text
        return entry.title, text.rpartition(_CLOSES)[2] if entry.id in of_questions else text

    def modified(entry: FeedEntry) -> FeedEntry:
        last = before.get(entry.id)
        if last is None or entry.date_modified > last.date_modified:
            return entry
        return replaced(entry, date_modified=last.date_modified if texts(entry) == texts(last) else as_of)

    return replaced(feed, items=[*map(modified, feed.items)])


def _entry_of(item: Mapping[str, Any], config: Config, links: Links, question_links: Links) -> FeedEntry:
    """The entry of a market, of a row that is a market by itself, which has the same, or of a question."""
    if item.get("kind", SINGLE) != SINGLE:
        url = _url(item, f"{config.base_url}/{keys.QUESTIONS}", question_links)
        return _entry({**item, "resolvedAt": None}, item["title"], None, url)
    market = item if "question" in item else {"question": item["title"], **item["markets"][0]}
    url = _url(item, f"{config.base_url}/{keys.MARKETS}", links)
    return _entry(item, market["question"], market["resolution"], url)


def _url(item: Mapping[str, Any], resource: str, links: Links) -> str:
    """What readers click on: without a page of its own, the object in the API."""
    return links.of(item["id"], item.get("slug")) or f"{resource}/{item['id']}"


def _entry(item: Mapping[str, Any], title: str, resolution: str | None, url: str) -> FeedEntry:
    created, resolved = item["createdAt"], item["resolvedAt"]
    return FeedEntry(
        id=entry_id(item["id"]),
        url=url,
        # A title may be blank.
        title=title if title.strip() else item["id"],
        content_text=" ".join(_sentences(item, resolution)),
        date_published=created,
        date_modified=max(created, resolved or created),
        tags=item.get("categories", []),
    )


def _sentences(item: Mapping[str, Any], resolution: str | None) -> Iterable[str]:
    at = f" on {_shown(item['resolvedAt'])}" if item["resolvedAt"] else ""
    if item["status"] == "resolved":
        outcome = f" {resolution}" if resolution else ""
        yield f"Resolved{outcome}{at}."
    elif item["status"] == "cancelled":
        yield f"Cancelled{at}."
    yield f"{_CLOSES}{_shown(item['closeTime'])}."


def _shown(time: str) -> str:
    return f"{time[:_DATE]} {time[_CLOCK]} UTC"
