"""Writes a feed as Atom (RFC 4287), from its JSON Feed alone."""

import html
import re
from datetime import UTC, datetime
from io import StringIO
from typing import Final

from feedgenerator import Atom1Feed

from generator.api.feeds import Feed, FeedEntry

#: Characters that XML 1.0 does not have, not even escaped.
_NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT: Final = "\ufffd"
#: When a feed without entries changed: Atom wants a time, and the feed must not change with every build.
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Atom(Atom1Feed):  # type: ignore[misc] # has no types
    def latest_post_date(self) -> datetime:
        """When the latest of the entries changed; the library takes the clock if there is none."""
        return max((entry["updateddate"] for entry in self.items), default=_NEVER)


def encode(feed: Feed) -> bytes:
    """The feed as Atom, in UTF-8. Characters that XML cannot hold are replaced by U+FFFD."""
    url = feed.feed_url.removesuffix(".json") + ".atom"
    atom = _Atom(
        title=_text(feed.title),
        link=feed.home_page_url,
        description=_text(feed.description),
        author_name=_text(feed.authors[0].name) if feed.authors else None,
        feed_url=url,
        feed_guid=url,
    )
    for entry in feed.items:
        _add(atom, entry)
    written = StringIO(newline="")
    atom.write(written, "utf-8")
    return written.getvalue().encode()


def _add(atom: _Atom, entry: FeedEntry) -> None:
    atom.add_item(
        title=_text(entry.title),
        link=entry.url,
        # The library declares summaries to be HTML.
        description=html.escape(_text(entry.content_text)),
        unique_id=entry.id,
        pubdate=datetime.fromisoformat(entry.date_published),
        updateddate=datetime.fromisoformat(entry.date_modified),
        categories=[_text(tag) for tag in entry.tags],
    )


def _text(text: str) -> str:
    return _NOT_IN_XML.sub(_REPLACEMENT, text)
