"""`v1/changelog.json`: what changed in the API, and when. The entries have their home here. Pure."""

from datetime import timedelta
from typing import Annotated, Final, Literal

from generator.api.contract import Closed, IfPresent
from generator.api.forms import Day

ChangeKind = Literal["added", "changed", "removed", "announced"]
#: How long before it takes place a change is announced that could break a program.
NOTICE: Final = timedelta(days=90)
#: How the entry of such a change begins that could not wait.
WITHOUT_NOTICE: Final = "Without notice: "


class ChangelogEntry(Closed):
    """A change of the API."""

    date: Day
    generator: str
    kind: ChangeKind
    where: list[str]
    text: str
    effective: Annotated[Day | None, IfPresent] = None


class Changelog(Closed):
    """What changed in the API, latest first."""

    entries: list[ChangelogEntry]


#: Newest first. An entry that was published stays as it is.
CHANGELOG: Final = Changelog(
    entries=[
        ChangelogEntry(
            date="2026-11-28",
            generator="0.1.0",
            kind="changed",
            where=["PublicMarketListItem.fills24h", "PublicMarketDetailMarket.fills24h", "PublicMarketSignal.fills24h"],
            text="Where a site's layout is `pages`, too, trades leave the count on the hour, unless its settings name "
            "another step.",
        ),
        ChangelogEntry(
            date="2026-11-26",
            generator="0.1.0",
            kind="added",
            where=["DumpHead.candlesDay", "DumpHead.candlesHour", "DumpHead.closes", "getCandlesParquet"],
            text="A site that publishes every point has daily and hourly candles, too, and the "
            "prices of markets at their close, a day and a week before.",
        ),
        ChangelogEntry(
            date="2026-11-26",
            generator="0.1.0",
            kind="added",
            where=["getArchive", "getArchivedDay"],
            text="`v1/dumps/archive/index.json` names the last dump of each day, where a site keeps them.",
        ),
        ChangelogEntry(
            date="2026-11-26",
            generator="0.1.0",
            kind="added",
            where=["PeriodFile", "PeriodFile.period", "getTableParquet.period"],
            text="A site may publish every point and every trade in Parquet: `history` and `fills` of the dump's head "
            "then name files by the month or year of their rows, with a `period` in place of `state`.",
        ),
        ChangelogEntry(
            date="2026-11-26",
            generator="0.1.0",
            kind="added",
            where=["getChangelog", "SiteIndex.changelog"],
            text="`v1/changelog.json` tells what changed in the API, and when; `/v1/` and `llms.txt` have its address.",
        ),
        ChangelogEntry(
            date="2026-11-25",
            generator="0.1.0",
            kind="added",
            where=["BuildRecord.snapshotSize", "BuildRecord.search"],
            text="`build.json` names settings that shape answers: how many markets a group of the snapshot has at "
            "most, and in which texts `q` finds words.",
        ),
        ChangelogEntry(
            date="2026-11-24",
            generator="0.1.0",
            kind="changed",
            where=["PublicMarketListItem.fills24h", "PublicMarketDetailMarket.fills24h", "PublicMarketSignal.fills24h"],
            text="Where a site's layout is `chunks`, trades leave the count on the hour, unless its settings name "
            "another step: it includes those of up to an hour before the last 24 hours.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="added",
            where=["getPrices", "SiteIndex.prices"],
            text="`v1/prices.json` has probability and volume of all open markets in one object.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="added",
            where=["SiteIndex.marketUrl"],
            text="`/v1/` tells where the page of a market is, for people.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="changed",
            where=["listMarkets.429"],
            text="Requests with `q` have a rate limit of their own, beside that of all requests.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="changed",
            where=[
                "PublicMarketListItem.question",
                "PublicMarketListItem.category",
                "PublicMarketListItem.categories",
                "PublicMarketListItem.slug",
                "PublicMarketDetailMarket.question",
                "PublicMarketDetailMarket.description",
                "PublicMarketDetailMarket.tradingPauseReason",
                "PublicMarketDetailMarket.category",
                "PublicMarketDetailMarket.categories",
                "PublicMarketDetailMarket.slug",
                "PublicMarketDetailMarket.creationSource",
                "PublicMarketDetailMarket.sponsor",
                "PublicMarketSignal.question",
                "FxFamilyMember.title",
                "FxFamilyMember.instrument",
                "FxFamilyMember.source",
            ],
            text="Texts have greatest lengths, which the OpenAPI document names, and no control characters but tabs "
            "and line breaks.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="changed",
            where=["listMarkets.400", "getMarket.400"],
            text="A path and query of more than 4,000 characters together, as sent, is answered 400.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="added",
            where=["getIndex", "getLlmsText"],
            text="`/v1/` answers with the addresses of everything, instead of 404, and `v1/llms.txt` is the API on "
            "one screen.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="added",
            where=["getJsonFeed", "getAtomFeed", "SiteIndex.feeds"],
            text="There are feeds of new and of resolved markets, as JSON Feed and as Atom.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="added",
            where=["getChanges", "getChangeStep", "SiteIndex.changes"],
            text="`v1/changes/head.json` names files with what changed of markets from one build to the next.",
        ),
        ChangelogEntry(
            date="2026-11-23",
            generator="0.1.0",
            kind="added",
            where=["getDump", "getMarketsNdjson", "getMarketsParquet", "getTableParquet", "SiteIndex.dumps"],
            text="`v1/dumps/head.json` names files that hold all listed markets.",
        ),
        ChangelogEntry(
            date="2026-11-22",
            generator="0.1.0",
            kind="added",
            where=["listMarkets.q"],
            text="In the extended variant `q` lists only the markets whose texts have these words, instead of being "
            "answered 400.",
        ),
        ChangelogEntry(
            date="2026-11-22",
            generator="0.1.0",
            kind="added",
            where=[
                "listMarkets.200.X-As-Of",
                "getSnapshot.200.X-As-Of",
                "getMarket.200.X-As-Of",
                "listMarkets.200.Last-Modified",
                "getSnapshot.200.Last-Modified",
                "getMarket.200.Last-Modified",
                "getBuild.200.Last-Modified",
                "listMarkets.200.Link",
            ],
            text="Headers tell as of when an answer is, when it last changed, and which page is next, where the edge "
            "can tell.",
        ),
        ChangelogEntry(
            date="2026-11-22",
            generator="0.1.0",
            kind="changed",
            where=["listMarkets.cursor"],
            text="Three messages, which will not change, tell malformed cursors, cursors of other lists and expired "
            "ones apart.",
        ),
        ChangelogEntry(
            date="2026-11-22",
            generator="0.1.0",
            kind="changed",
            where=["listMarkets.category"],
            text="`category` takes the name of a category as markets show it, beside its slug.",
        ),
        ChangelogEntry(
            date="2026-11-22",
            generator="0.1.0",
            kind="added",
            where=["listMarkets.503", "getSnapshot.503", "getMarket.503", "getBuild.503"],
            text="What cannot be read for now is answered 503, as JSON and with `Retry-After`, and never 400 or 404.",
        ),
        ChangelogEntry(
            date="2026-11-22",
            generator="0.1.0",
            kind="changed",
            where=[
                "PublicMarketListItem.resolution",
                "PublicMarketListItem.resolvedAt",
                "PublicMarketDetailMarket.resolution",
                "PublicMarketDetailMarket.resolvedAt",
            ],
            text="Outcome and its time are null while a market is open or closed, whatever the site's data says.",
        ),
        ChangelogEntry(
            date="2026-11-22",
            generator="0.1.0",
            kind="changed",
            where=["OrderBookLevel.price"],
            text="Prices of the order book are rounded to a millionth, and levels that this makes equal are one.",
        ),
        ChangelogEntry(
            date="2026-11-20",
            generator="0.1.0",
            kind="added",
            where=[
                "getMarket.marketRef",
                "listMarkets.category",
                "PublicMarketListItem.slug",
                "PublicMarketListItem.category",
                "PublicMarketListItem.categories",
                "PublicMarketDetailMarket.slug",
                "PublicMarketDetailMarket.category",
                "PublicMarketDetailMarket.categories",
                "PublicMarketDetailMarket.creationSource",
                "PublicMarketDetailMarket.sponsor",
            ],
            text="The extended variant has categories, slugs and their lists, and says where a market comes from.",
        ),
        ChangelogEntry(
            date="2026-11-20",
            generator="0.1.0",
            kind="added",
            where=["listMarkets", "getSnapshot", "getMarket", "getBuild"],
            text="The API begins with lists, the snapshot, the details of markets, `build.json` and `openapi.json`.",
        ),
    ]
)
