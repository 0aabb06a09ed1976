"""The market data of the inspection page: list items, and excerpts of the most popular markets' details. Pure.

Both are bounded, so that the page opens quickly with any catalog; the rest is in the published files. An excerpt says
of which detail it is, by its digest, so that the next page takes it over from this one and opens no detail that stayed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from generator.api import contract
from generator.api.downloads import DumpHead
from generator.builder.inspection.downloads import files_since
from generator.downloads.periods import DAYS
from generator.markets.market import Market
from generator.site.catalog import Catalog

#: The most bytes of list items on the page, enough for about ten thousand markets.
ITEM_BYTES: Final = 5_000_000
#: The most excerpts on the page, at about a kilobyte each.
EXCERPTS: Final = 1_000
#: How much of each market an excerpt shows.
POINTS: Final = 48
LEVELS: Final = 5
FILLS: Final = 5
DESCRIPTION: Final = 400
#: How many excerpts have candles, and of how many days at most.
CANDLED: Final = 200
CANDLES: Final = 60
_DAY: Final = timedelta(days=1)
#: What the excerpts follow in the data.
_BEGIN: Final = b',"excerpts":['
#: JSON values by name.
Json: TypeAlias = Mapping[str, Any]


class Excerpts:
    """The excerpts of one build; `program` says which program made them."""

    def __init__(self, catalog: Catalog, market_url: str | None = None, program: str = "") -> None:
        self._markets = sorted(catalog.markets, key=_popularity)
        self._links = catalog.links(market_url)
        self._program = program
        self._kept: dict[str, bytes] = {}

    def wanted(self) -> list[str]:
        """The ids of the most popular markets, whose details are to be excerpted."""
        return [market.id for market in self._markets[:EXCERPTS]]

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
        begin = _escaped(b"".join([b'{"items":[', b",".join(items), *others]))
        excerpts = _escaped(b",".join(kept))
        return b"".join([begin, _sealed(self._program, excerpts), excerpts, b"]}"])

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


def encoded(body: bytes, source: str, candles: Sequence[Any] = ()) -> bytes:
    """The excerpt of a detail with this encoded body, and with these short candles, encoded.

    `source` stands for the bytes that they are made of.
    """
    more = {"candles": candles} if candles else {}
    return contract.encode({**excerpt(from_json(body)), **more, "of": source})


def candle_files(head: DumpHead) -> list[str]:
    """The keys of the files that have the newest daily candles."""
    return files_since(head, DAYS, datetime.fromisoformat(head.history_as_of or head.as_of) - CANDLES * _DAY)


def on_page(page: bytes | None, program: str) -> dict[str, bytes]:
    """The encoded excerpts on a page of this program, by their sources; none if they were altered.

    Another program may make other excerpts of the same detail.
    """
    # No text of a market can hold these: its quotation marks and every `<` are escaped.
    before, _, rest = (page or b"").partition(_BEGIN)
    excerpts = rest.partition(b"<")[0].removesuffix(b"]}")
    if not before.endswith(_sealed(program, excerpts).removesuffix(_BEGIN)):
        return {}
    return {one["of"]: contract.encode(one) for one in from_json(b"[" + excerpts + b"]")}


def _escaped(data: bytes) -> bytes:
    return data.replace(b"<", b"\\u003c")


def _sealed(program: str, excerpts: bytes) -> bytes:
    """What comes before the excerpts in the data: who made them, and a digest, as pages can be altered."""
    seal = {"program": program, "seal": hashlib.sha256(excerpts).hexdigest()}
    return b"," + contract.encode(seal)[1:-1] + _BEGIN


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
