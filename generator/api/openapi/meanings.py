"""What each property of the schemas means, for authors of clients."""

from datetime import timedelta
from typing import Final

from generator.api.openapi.descriptions import span

#: What a property means, by its name, or by `Model.property` if the meaning depends on the model. `{step}` depends on
#: the settings.
MEANINGS: Final[dict[str, str]] = {
    "acceptingBets": "Whether the market is open, closes later than this data was read, and is not paused.",
    "amount": "Money that changed hands.",
    "OrderBookLevel.amount": "What the orders at this price come to.",
    "asks": "Offers to sell, lowest price first.",
    "asOf": "The instant whose data is published.",
    "Prices.asOf": "The instant of the build that last changed this object.",
    "atom": "The address of the feed as Atom.",
    "authors": "Who publishes the feed: this site.",
    "bids": "Offers to buy, highest price first.",
    "build": "The address of `build.json`.",
    "categories": "Names of the market's categories, the primary one first.",
    "BuildRecord.categories": "The categories that have lists, by name and slug.",
    "category": "Name of the market's primary category; absent if it has none.",
    "changelog": "The address of `changelog.json`.",
    "changes": "The address of the head of the change feed.",
    "closeTime": "When betting ends or ended.",
    "closingSoonMarkets": "Open markets whose `closeTime` is to come, soonest first.",
    "content_text": "How and when the market was resolved, if it was, and when it closes.",
    "count": "How many markets the dump has.",
    "createdAt": "When the market was created.",
    "creationSource": "Where the market was made; absent if that is not told.",
    "ArchivedDay.date": "The day, in UTC.",
    "DayEntry.date": "The day, in UTC.",
    "days": "The days that are over, oldest first.",
    "date": "The day of the change or, before it, of the announcement.",
    "date_modified": "When the market was created, resolved or, by the build that shows it, edited.",
    "date_published": "When the market was created.",
    "description": "The public text of the resolution rules; null if there is none.",
    "Feed.description": "What the feed shows.",
    "candlesDay": "The files with daily candles.",
    "candlesHour": "The files with hourly candles.",
    "closes": "The files with the prices of markets at their close, and before.",
    "details": "The parameters at fault, when the request was invalid; otherwise absent.",
    "direction": "Whether YES means at least (`gte`) or at most (`lte`) the threshold.",
    "dump": "The dump at this serial, to start from.",
    "dumps": "The address of the head of the dumps.",
    "effective": "The first day on which an announced change may take place; absent for all others.",
    "entries": "The changes, latest first.",
    "error": "What went wrong, for people; do not compare it.",
    "feed_url": "The address of the feed.",
    "feeds": "The addresses of the feeds.",
    "fills": "The files with trades, where the site publishes all of them.",
    "fills24h": "Trades within the 24 hours before this data was read{step}.",
    "filesUrl": "The address of every file, without its name: `markets/`, the first 32 digits of its `sha256`, and "
    "`.ndjson.gz` or `.parquet`.",
    "format": "How the file is written.",
    "freshMarkets": "Markets that accept bets, newest first.",
    "fxFamilyMember": "The market's place in a public FX family; null for all other markets.",
    "generator": "Version of the program that made the files.",
    "ChangelogEntry.generator": "Version of the program with which the entry came, as in `build.json`.",
    "history": "The files with the histories of probabilities.",
    "historyAsOf": "The instant whose histories and fills the files hold, and what is made of these; they are made "
    "once a day.",
    "home_page_url": "The address of the index of this site.",
    "id": "The market's UUID, in lower case.",
    "FeedEntry.id": "The same for a market in every feed.",
    "PublicRecentFill.id": "The trade's UUID, in lower case; no other resource refers to it.",
    "instrument": "The pair of currencies, or what else is priced.",
    "items": "The markets of this page.",
    "Feed.items": "The markets, latest first.",
    "jsonFeed": "The address of the feed as JSON Feed.",
    "kind": "What happened; `announced` is what will.",
    "lastActivityAt": "When something last happened on the market.",
    "layout": "How lists are stored; of no concern to readers.",
    "lists": "How many markets each list without category holds, by `status/sort`.",
    "llms": "The address of `llms.txt`.",
    "market": "The market itself.",
    "markets": "How many markets are public, members of FX families included.",
    "ArchivedDay.markets": "The files with all markets of the day, in one format each.",
    "DumpHead.markets": "The files with all markets, in one format each.",
    "Prices.markets": "The open markets, ascending by `id`; members of FX families are not among them.",
    "SiteIndex.markets": "The address of the list of markets.",
    "marketUrl": "Where the page of a market is, for people: a URI template (RFC 6570) with its `id` or `slug`; absent "
    "if the site has none that one could fill in.",
    "message": "What is wrong with it.",
    "Category.name": "The name, as it stands in `category` and `categories`.",
    "FeedAddresses.name": "Which markets it shows.",
    "FeedAuthor.name": "The host of this site.",
    "MarketsFile.name": "The name of the file within the dump.",
    "PeriodFile.name": "The name of the file within the dump.",
    "Step.name": "The name of the file: the first 32 hexadecimal digits of its SHA-256 digest, and an extension.",
    "ndjson": "The file with all markets as NDJSON.",
    "nextCursor": "Pass it as `cursor` for the next page; null on the last page, and only there.",
    "openapi": "The address of this document.",
    "orderBook": "Open public orders, summed per price, which is rounded to a millionth.",
    "parquet": "The same markets as Parquet; absent if the dump of the day had none.",
    "path": "The name of the parameter.",
    "period": "The month or the year (UTC) of its rows; several files may share a month.",
    "poolNo": "NO shares in the market maker's pool.",
    "poolYes": "YES shares in the market maker's pool.",
    "price": "Price of a YES share, as a probability.",
    "PublicRecentFill.price": "Price of a share, as a probability; null if none is known.",
    "prices": "The address of the prices of all open markets.",
    "prob": "Probability of YES.",
    "probHistory": "How the probability went, oldest first.",
    "question": "What the market asks.",
    "recentFills": "The latest trades, newest first.",
    "resolution": "How the market was resolved; always null while it is open or closed.",
    "resolvedAt": "When the market was resolved or cancelled; always null while it is open or closed.",
    "serial": "The number of this state in its session, from 1.",
    "session": "Names a run of serials; a takedown, for one, begins a new one.",
    "sha256": "The SHA-256 digest of the file, as it is sent.",
    "shares": "Shares that changed hands.",
    "size": "The size of the file as it is sent, in bytes.",
    "search": "The texts in which `q` finds words; absent if there is no search.",
    "slug": "Can stand for the id in a path; absent if the market has none that can.",
    "Category.slug": "Its slug; `category` takes it or the name.",
    "snapshot": "The address of the snapshot.",
    "snapshotSize": "How many markets each group of the snapshot has at most.",
    "source": "Where the price is read.",
    "sponsor": "Who sponsors the market; absent if nobody does.",
    "state": "The SHA-256 digest of the uncompressed NDJSON of all markets.",
    "status": "The state the market is in.",
    "steps": "The steps that are kept, oldest first: each leads from one serial to the next, the last one to `serial`.",
    "stepsUrl": "The address of every step, without its name, which follows.",
    "tags": "Names of the market's categories; absent if it has none.",
    "today": "The day that is not over: later builds may change it.",
    "textsAsOf": "The instant whose texts all earlier days have, since old texts were purged; absent if none were.",
    "thresholdValue": "The price that decides.",
    "timestamp": "When it was.",
    "title": "Name of the FX family.",
    "Feed.title": "What the feed shows, and of which site.",
    "FeedEntry.title": "The market's question, or its id if that is blank.",
    "traderCount": "How many people traded.",
    "tradingPauseReason": "Why trading is paused; null when it is not.",
    "text": "The change, in a sentence.",
    "url": "The address of the file.",
    "FeedEntry.url": "The address of the market's page or, without one, of its detail.",
    "variant": "The form of the API that is published.",
    "version": "The version of JSON Feed.",
    "volume": "Money traded so far.",
    "weekEnd": "Last day of the week in question.",
    "weekStart": "First day of the week in question.",
    "where": "Its places in this document or in that of the other variant, such as `Prices.markets` (a property of a "
    "schema), `listMarkets` (an operation), `listMarkets.limit` (its parameter) and `listMarkets.200.Link` (a header "
    "of its answer).",
}

#: Properties that show what somebody wrote, named like those of MEANINGS.
TEXTS: Final = frozenset(
    [
        *("question", "description", "tradingPauseReason", "category", "categories", "Category.name"),
        *("creationSource", "sponsor", "title", "instrument", "source", "FeedEntry.title", "tags"),
    ]
)
_NO_HTML: Final = " Plain text, not HTML."


def of_property(model: str, name: str, fills_step: timedelta) -> str:
    """The meaning of a model's property."""
    key = f"{model}.{name}" if f"{model}.{name}" in MEANINGS else name
    return MEANINGS[key].replace("{step}", _in_steps(fills_step)) + (_NO_HTML if key in TEXTS else "")


def _in_steps(step: timedelta) -> str:
    """How fills leave their window, unless each does when it is 24 hours old."""
    return f", and up to {span(step)} before: they leave the count in steps of {span(step)}" if step else ""
