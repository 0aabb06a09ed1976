"""Hand-written examples of prices, feeds, dumps and change steps."""

from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from generator.api import downloads, feeds, keys, prices, site_index
from generator.api.openapi.examples import MARKET_ID
from generator.config.settings import Config

#: The first digits of the digest of a file.
DIGEST: Final = "9f86d081884c7d659a2feaa0c55ad015"
_REST: Final = "a3bf4f1b2b0b822cd15d6c15b0f00a08"
_STEP: Final = "60303ae22b998861bce3b28f33eec1be"
_OTHER_ID: Final = "b81d4f07-92ae-4e15-8c3d-0f6a7e5b9d21"
_STATE: Final = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
_SESSION: Final = "fcde2b2edba56bf408601fb721fe9b5c"
_AS_OF: Final = "2026-01-31T12:00:00.000Z"
_BEFORE: Final = "2026-01-31T11:00:00.000Z"


class _Content(NamedTuple):
    sha256: str
    size: int = 48_210


def of(summary: str, model: BaseModel) -> dict[str, Any]:
    """A model as an example."""
    return {"summary": summary, "value": model.model_dump(mode="json", by_alias=True)}


def dump_head(config: Config) -> downloads.DumpHead:
    """A dump of NDJSON."""
    return downloads.DumpHead(as_of=_AS_OF, count=4, state=_STATE, markets=[_ndjson(config)])


def changes_head(config: Config) -> downloads.ChangesHead:
    """A change feed with two steps."""
    steps = [downloads.Step.of(_Content(digest, 812), at) for digest, at in ((DIGEST, _BEFORE), (_STEP, _AS_OF))]
    return downloads.ChangesHead(
        session=_SESSION, serial=7, as_of=_AS_OF, count=4, state=_STATE, dump=_ndjson(config),
        steps_url=downloads.url(config.files_url, keys.CHANGES, ""), steps=steps,
    )  # fmt: skip


def _ndjson(config: Config) -> downloads.MarketsFile:
    return downloads.MarketsFile.of(_Content(DIGEST + _REST), config.files_url)


def prices_file() -> prices.Prices:
    """Prices of two markets."""
    found = [(MARKET_ID, 0.62, 1840.5, _AS_OF), (_OTHER_ID, 0.08, 12.0, _BEFORE)]
    names = list(prices.MarketPrice.model_fields)
    markets = [prices.MarketPrice.model_validate(dict(zip(names, row, strict=True))) for row in sorted(found)]
    return prices.Prices(as_of=_AS_OF, markets=markets)


def json_feeds(config: Config) -> dict[str, Any]:
    """A JSON Feed by name."""
    entry = feeds.FeedEntry(
        id=feeds.entry_id(MARKET_ID),
        url=f"{config.base_url}/{keys.MARKETS}/{MARKET_ID}",
        title="Will the harbour bridge reopen before July?",
        content_text="Closing time: 2026-06-30 22:00 UTC.",
        date_published="2025-12-04T09:15:00.000Z",
        date_modified="2025-12-04T09:15:00.000Z",
        tags=["transport"] if config.variant == "extended" else [],
    )
    feed = feeds.Feed(
        title="New markets on api.example.org",
        home_page_url=site_index.address(config),
        feed_url=f"{config.base_url}/{keys.feed('new', 'json')}",
        description="The markets created last, latest first.",
        authors=[feeds.FeedAuthor(name="api.example.org")],
        items=[entry],
    )
    return {"new": of("One new market", feed)}


def atom_feeds(config: Config) -> dict[str, Any]:
    """The beginning of an Atom feed, without entries, by name."""
    url = f"{config.base_url}/{keys.feed('resolved', 'atom')}"
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<title>Resolved markets on api.example.org</title><id>{url}</id><updated>1970-01-01T00:00:00+00:00</updated>"
        "</feed>"
    )
    return {"empty": {"summary": "No market is resolved yet", "value": text}}
