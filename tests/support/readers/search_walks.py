"""Readers that walk with `q` while a site is republished: what they ask for, and what they have seen."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from generator.api import contract, keys
from generator.api.contract import Sort, StatusFilter
from tests.support.edges.servers import Client
from tests.support.edges.serving import MARKETS
from tests.support.readers import search
from tests.support.readers.search import Market

#: More pages than any of the walks has.
MOST_PAGES: Final = 100


@dataclass(frozen=True)
class Query:
    """What a walk asks for."""

    q: str
    status: StatusFilter = "all"
    sort: Sort = "popular"
    category: str | None = None
    limit: int = 20

    def target(self, cursor: str | None = None) -> str:
        asked = f"q={quote(self.q)}&status={self.status}&sort={self.sort}&limit={self.limit}"
        category = "" if self.category is None else f"&category={self.category}"
        return f"{asked}{category}" if cursor is None else f"{asked}{category}&cursor={cursor}"

    def items(self, markets: Sequence[Market]) -> list[bytes]:
        """The items of the list that match, by a naive search."""
        return search.scan(markets, self.status, self.sort, self.q, self.category)


@dataclass
class Walk:
    """A reader in the middle of a search: the bodies of its pages, and the cursor of the next one."""

    query: Query
    bodies: list[bytes] = field(default_factory=list)
    cursor: str | None = None

    def is_over(self) -> bool:
        return bool(self.bodies) and self.cursor is None

    def target(self) -> str:
        """The query of the next request."""
        return self.query.target(self.cursor)

    def take(self, status: int, body: bytes) -> None:
        """Go on with the answer to that request, which must be a page."""
        assert status == HTTPStatus.OK, (self.target(), status, body)
        content = json.loads(body)
        shown = len(content["items"])
        assert shown <= self.query.limit
        assert shown > 0 or content["nextCursor"] is None, "a page without items leads on"
        self.bodies.append(body)
        self.cursor = content["nextCursor"]

    def read(self, client: Client) -> None:
        """Read the next page, if there is one."""
        if not self.is_over():
            answer = client.send("GET", f"{MARKETS}?{self.target()}")
            self.take(answer.status, answer.body)

    def finish(self, client: Client) -> "Walk":
        """Read all pages that are left."""
        while not self.is_over():
            assert len(self.bodies) < MOST_PAGES, "the walk goes round"
            self.read(client)
        return self

    def items(self) -> list[bytes]:
        return search.items_of([{"body": body.decode()} for body in self.bodies])

    def ids(self) -> list[str]:
        return [json.loads(item)["id"] for item in self.items()]


#: A state of a site, in which some markets match, and two that follow: titles come to match and cease to, markets
#: change their place, status and categories, and new ones appear.
BEFORE: Final = [
    Market(
        (f"{'needle' if number % 3 else 'hay'} {number}", "Élections"),
        contract.MARKET_STATUSES[number * number % 4],
        ("crypto",) if number % 2 else ("cry",),
        number * 37 % 101,
    )
    for number in range(24)
]
AFTER: Final = [
    *(
        replace(
            market,
            texts=(f"{'hay' if number % 4 else 'needles'} {number}",),
            status=contract.MARKET_STATUSES[number % 3],
            categories=("cry",),
            rank=101 - market.rank,
        )
        for number, market in enumerate(BEFORE)
    ),
    *(Market((f"needle {number}",), "open", ("crypto",), number) for number in range(24, 28)),
]
LATER: Final = [replace(market, rank=market.rank * 7 % 101) for market in AFTER]
QUERIES: Final = (
    Query("NEEDLE élect", limit=5),
    Query("nee", "open", category="crypto", limit=5),
    Query("needle", "archive", "new", "cry", limit=1),
    Query("ele", sort="new", limit=20),
    Query("needle", limit=100),
    Query("hay 9", limit=5),
)


def objects(markets: Sequence[Market], layout: str) -> Mapping[str, str]:
    """The objects that the queries may read."""
    lists = {keys.SEARCH, *(f"all/{query.sort}" for query in QUERIES)}
    prefixes = tuple(f"{keys.list_prefix(name)}/" for name in lists)
    return {key: body for key, body in search.objects(markets, layout).items() if key.startswith(prefixes)}
