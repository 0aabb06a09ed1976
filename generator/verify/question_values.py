"""What the row of a question shows that follows from its markets: sums, states, times, categories, an order. Pure."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from generator.api import contract

_Values: TypeAlias = Mapping[str, Any]


def made(markets: Sequence[_Values], is_known: Callable[[Any], bool] = lambda _: True) -> dict[str, Any]:
    """The values that follow from these markets, as lists show them; only what follows from values that are known.

    Times are compared as they are given.
    """
    return {
        name: make(markets)
        for name, (needed, make) in _MADE.items()
        if all(is_known(market.get(one)) for market in markets for one in needed)
        and (needed != _OF_EXTENDED or all("categories" in market for market in markets))
    }


def misplaced(shown: Sequence[_Values]) -> Iterator[tuple[str, str]]:
    """The ids of two markets of a row, where the second must be shown before the first, whatever their positions."""
    for before, after in itertools.pairwise(shown):
        if rank(after) < rank(before):
            yield before["id"], after["id"]


def rank(market: _Values) -> tuple[int, float]:
    """What the order of the markets of a row compares first: open ones, then the one that came true, then the rest."""
    state = 0 if market["status"] == "open" else 1 if market["resolution"] == "YES" else 2
    return state, -market["prob"]


def _status(markets: Sequence[_Values]) -> Any:
    return min((one["status"] for one in markets), key=contract.MARKET_STATUSES.index, default=None)


def _closing(markets: Sequence[_Values]) -> Any:
    is_open = _status(markets) == "open"
    return max((one["closeTime"] for one in markets if not is_open or one["status"] == "open"), default=None)


def _resolved(markets: Sequence[_Values]) -> Any:
    if _status(markets) in contract.UNSETTLED:
        return None
    return max((one["resolvedAt"] for one in markets if one["resolvedAt"] is not None), default=None)


def _volume(markets: Sequence[_Values]) -> float:
    try:
        return math.fsum(one["volume"] for one in markets)
    except OverflowError:  # of a server that should not publish such a sum
        return math.inf


def _categories(markets: Sequence[_Values]) -> list[str]:
    counts = Counter(name for market in markets for name in market["categories"])
    return sorted(counts, key=lambda name: (-counts[name], name))


#: What markets of the core variant lack.
_OF_EXTENDED: Final = ("categories",)
#: Of which values of markets each follows, and how.
_MADE: Final[Mapping[str, tuple[Sequence[str], Callable[[Sequence[_Values]], Any]]]] = {
    "size": ((), len),
    "status": (("status",), _status),
    "volume": (("volume",), _volume),
    "traderCount": (("traderCount",), lambda markets: sum(one["traderCount"] for one in markets)),
    "fills24h": (("fills24h",), lambda markets: sum(one["fills24h"] for one in markets)),
    "acceptingBets": (("acceptingBets",), lambda markets: any(one["acceptingBets"] for one in markets)),
    "closeTime": (("status", "closeTime"), _closing),
    "resolvedAt": (("status", "resolvedAt"), _resolved),
    "lastActivityAt": (
        ("lastActivityAt",), lambda markets: max((one["lastActivityAt"] for one in markets), default=None),
    ),
    "categories": (_OF_EXTENDED, _categories),
    "category": (_OF_EXTENDED, lambda markets: next(iter(_categories(markets)), None)),
}  # fmt: skip
