"""The requests that the benchmark of serving makes."""

import json
import random
from pathlib import Path
from typing import Final

from generator.api.contract import SORTS, STATUS_FILTERS
from generator.api.keys import DETAILS, MARKETS
from tests.support.edges.engines import Request

FIRST, CURSOR, MARKET = KINDS = ("first pages", "cursor pages", "markets")
_LIMITS: Final = (5, 20, 50)


def requests(output: Path) -> dict[str, list[Request]]:
    """First pages, cursor pages of the layout `pages`, and details, each once, by kind."""
    path, asked = f"/{MARKETS}", {kind: list[Request]() for kind in KINDS}
    for status in STATUS_FILTERS:
        for sort in SORTS:
            for limit in _LIMITS:
                query = f"status={status}&sort={sort}&limit={limit}"
                asked[FIRST].append(("GET", path, query))
                page = json.loads(output.joinpath(f"{MARKETS}/lists/{status}/{sort}/first/{limit}.json").read_bytes())
                if cursor := page["nextCursor"]:
                    asked[CURSOR].append(("GET", path, f"{query}&cursor={cursor}"))
    details = sorted(file.stem for file in output.joinpath(DETAILS).rglob("*.json"))[: len(asked[FIRST])]
    asked[MARKET] = [("GET", f"{path}/{market_id}", "") for market_id in details]
    for chosen in asked.values():
        random.Random(1).shuffle(chosen)  # noqa: S311 - the same order every time
    return asked
