"""Writes a feed as Atom (RFC 4287), from its JSON Feed alone."""

import html
import re
from datetime import UTC, datetime
from io import StringIO
from typing import Any, Final

from generator.api import licensing
from generator.api.feeds import Feed, FeedEntry

#: Characters that XML 1.0 does not have, not even escaped.
_NOT_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REPLACEMENT: Final = "\ufffd"
#: When a feed without entries changed: Atom wants a time, and the feed must not change with every build.
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


def encode(feed: Feed) -> bytes:
    """The feed as Atom, in UTF-8. Characters that XML cannot hold are replaced by U+FFFD."""
    from feedgenerator import Atom1Feed  # noqa: PLC0415 - it loads a client of HTTP, and most commands write no feed

    url = feed.feed_url.removesuffix(".json") + ".atom"
    atom = Atom1Feed(
        title=in_xml(feed.title),
        link=feed.home_page_url,
        description=in_xml(feed.description),
        author_name=in_xml(feed.authors[0].name) if feed.authors else None,
        author_link=feed.authors[0].url if feed.authors else None,
        feed_copyright=in_xml(licensing.told(feed.rights.license)) if feed.rights else None,
        feed_url=url,
        feed_guid=url,
    )
    # The library takes the clock if there is no entry.
    atom.latest_post_date = lambda: max((entry["updateddate"] for entry in atom.items), default=_NEVER)
    for entry in feed.items:
        _add(atom, entry)
    written = StringIO(newline="")
    atom.write(written, "utf-8")
    return written.getvalue().encode()


def _add(atom: Any, entry: FeedEntry) -> None:
    atom.add_item(
        title=in_xml(entry.title),
        link=entry.url,
        # The library declares summaries to be HTML.
        description=html.escape(in_xml(entry.content_text)),
        unique_id=entry.id,
        pubdate=datetime.fromisoformat(entry.date_published),
        updateddate=datetime.fromisoformat(entry.date_modified),
        categories=[in_xml(tag) for tag in entry.tags],
    )


def in_xml(text: str) -> str:
    """The text as XML can hold it."""
    return _NOT_IN_XML.sub(_REPLACEMENT, text)
