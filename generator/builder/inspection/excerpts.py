"""The market data of the inspection page: list items, and excerpts of the most popular markets' details. Pure.

Both are bounded, so that the page opens quickly with any catalog; the rest is in the published files.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from generator.api import contract
from generator.api.downloads import DumpHead
from generator.downloads.periods import DAYS
from generator.markets.market import Market
from generator.site.catalog import Catalog

#: The most bytes of list items on the page, enough for about ten thousand markets.
ITEM_BYTES: Final = 5_000_000
#: The most excerpts on the page, at about a kilobyte each.
EXCERPTS: Final = 100
#: How much of each market an excerpt shows.
POINTS: Final = 48
LEVELS: Final = 5
#: The most questions on the page, and of how many markets of each.
QUESTIONS: Final = 100
MEMBERS: Final = 20
FILLS: Final = 5
DESCRIPTION: Final = 400
#: Of how many days an excerpt has candles, at most.
CANDLES: Final = 60
_DAY: Final = timedelta(days=1)
#: JSON values by name.
Json: TypeAlias = Mapping[str, Any]


class Excerpts:
    """The excerpts of one build; `market_url` is the setting."""

    def __init__(self, catalog: Catalog, market_url: str | None = None) -> None:
        self._markets = sorted(catalog.markets, key=_popularity)
        self._links = catalog.links(market_url)
        self._kept: dict[str, bytes] = {}
        self._most_traded = _most_traded(catalog)
        #: The details of questions that the page shows, as JSON values without what it does not show.
        self.questions: list[Json] = []

    def wanted(self) -> list[str]:
        """The ids of the most popular markets, whose details are to be excerpted."""
        return [market.id for market in self._markets[:EXCERPTS]]

    def wanted_questions(self) -> list[str]:
        """The ids of the questions of the most traders, whose details are to be kept."""
        return self._most_traded[:QUESTIONS]

    def keep_question(self, body: bytes) -> None:
        """Keep the detail of a question, which has this encoded body."""
        shown = from_json(body)
        self.questions.append({**shown, "markets": shown["markets"][:MEMBERS]})

    def keep(self, market_id: str, shown: bytes) -> None:
        """Keep the encoded excerpt of a market's detail."""
        self._kept[market_id] = shown

    def encoded(self) -> bytes:
        """The data for the page's scripts, as JSON with every `<` escaped, so that no text can end an element.

        `items` are in the order of `popular`, as the API encodes them, and so are `excerpts`; `fx` are the ids of
        markets in no list; `urls` are the addresses of the items' pages on the operator's site, by id.
        """
        shown, fx = self._shown(), [market.id for market in self._markets if market.fx]
        items, urls = [market.body for market, _ in shown], {market.id: url for market, url in shown if url}
        others = b'],"fx":', contract.encode(fx), b',"urls":', contract.encode(urls)
        kept = (self._kept[market_id] for market_id in self.wanted() if market_id in self._kept)
        parts = [b'{"items":[', b",".join(items), *others, b',"excerpts":[', b",".join(kept), b"]}"]
        return b"".join(parts).replace(b"<", b"\\u003c")

    def _shown(self) -> list[tuple[Market, str]]:
        """The markets whose items there is room for, each with the address of its page; empty if it has none."""
        kept, room = list[tuple[Market, str]](), ITEM_BYTES
        for market in self._markets:
            url = self._links.of(market.id, market.slug) or ""
            size = len(market.body) + len(url)
            if size < room:
                kept.append((market, url))
                room -= size
        return kept

    def first(self, count: int) -> list[tuple[contract.PublicMarketListItem, str | None]]:
        """The most popular markets, with the addresses of their pages."""
        return [(market.item, self._links.of(market.id, market.slug)) for market in self._markets[:count]]

    def fx(self) -> int:
        """The number of markets in no list: members of public FX families."""
        return sum(market.fx is not None for market in self._markets)

    def per_status(self) -> dict[str, int]:
        """The number of markets per status, members of FX families included."""
        statuses = [market.status for market in self._markets]
        return {status: statuses.count(status) for status in contract.MARKET_STATUSES}


def encoded(body: bytes, candles: Sequence[Any] = ()) -> bytes:
    """The excerpt of a detail with this encoded body, and with these short candles, encoded."""
    more = {"candles": candles} if candles else {}
    return contract.encode({**excerpt(from_json(body)), **more})


def candle_files(head: DumpHead) -> list[str]:
    """The keys of the files that have the newest daily candles."""
    return head.files_since(DAYS, datetime.fromisoformat(head.history_as_of or head.as_of) - CANDLES * _DAY)


def _most_traded(catalog: Catalog) -> list[str]:
    """The ids of all questions, those of the most traders first."""
    traders = {market.id: market.trader_count for market in catalog.markets}
    ranked = ((-sum(traders[one.market_id] for one in found.members), found.id) for found in catalog.questions or ())
    return [question_id for _, question_id in sorted(ranked)]


def _popularity(market: Market) -> tuple[float, float, str]:
    return -market.trader_count, -market.volume, market.id


def excerpt(shown: Json) -> Json:
    """The short form of a detail, in JSON values; templates/inspection/market.js unfolds it."""
    market, book = shown["market"], shown["orderBook"]
    description = market["description"] or ""
    return {
        "id": market["id"],
        "description": description[:DESCRIPTION],
        "isCut": len(description) > DESCRIPTION,
        "pools": [market["poolYes"], market["poolNo"]],
        "pause": market["tradingPauseReason"],
        "fx": market["fxFamilyMember"],
        "bids": _levels(book["bids"]),
        "asks": _levels(book["asks"]),
        "fills": _fills(shown["recentFills"]),
        "history": _history(shown["probHistory"]),
    }


def short_candles(rows: Sequence[Json]) -> list[Any]:
    """A market's newest daily candles, of all that there are, oldest first.

    The day of the first candle, then for each: days since it, open, high, low and close in ‰, volume and trades: null
    where trades are not published.
    """
    priced = [row for row in rows if row.get("open") is not None][-CANDLES:]
    days = [datetime.fromisoformat(row["start"]) for row in priced]
    flat = [
        number
        for row, day in zip(priced, days, strict=True)
        for number in (
            (day - days[0]).days,
            *(round(row[name] * 1000) for name in ("open", "high", "low", "close")),
            *((round(row["volume"], 2), row["trades"]) if "trades" in row else (None, None)),
        )
    ]
    return [f"{days[0]:%Y-%m-%d}", *flat] if days else []


def _levels(levels: Sequence[Json]) -> list[Any]:
    return [len(levels), *([level["price"], level["amount"]] for level in levels[:LEVELS])]


def _fills(fills: Sequence[Json]) -> list[Any]:
    shown = ([fill[name] for name in ("timestamp", "price", "amount", "shares")] for fill in fills[:FILLS])
    return [len(fills), *shown]


def _history(points: Sequence[Json]) -> list[Any]:
    """The number of points, the time of the first, then for some points seconds since it and probability in ‰."""
    if not points:
        return [0, None]
    last = len(points) - 1
    steps = min(last, POINTS - 1)
    chosen = [points[place * last // steps] for place in range(steps + 1)] if steps else points
    first = points[0]["timestamp"]
    start = datetime.fromisoformat(first)
    flat = [
        number
        for point in chosen
        for number in (
            round((datetime.fromisoformat(point["timestamp"]) - start).total_seconds()),
            round(point["prob"] * 1000),
        )
    ]
    return [len(points), first, *flat]
