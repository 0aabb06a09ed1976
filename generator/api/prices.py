"""`v1/prices.json`: what price boards and bots ask for, all open markets in one object. Pure."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from generator.api import contract
from generator.api.contract import Closed
from generator.api.forms import NonNegative, Probability, Timestamp, Uuid

#: The largest object that is published, in bytes: 16,000 markets or more. Whoever needs more reads the dump.
MOST_BYTES: Final = 2_000_000
#: Fewer than any market takes there: if there are too many at that, none is looked into.
LEAST_BYTES: Final = 100


class MarketPrice(Closed):
    """An open market: its price, and what tells whether it is one to follow."""

    id: Uuid
    prob: Probability
    volume: NonNegative
    last_activity_at: Timestamp


class Prices(Closed):
    """All open listed markets, ascending by id."""

    as_of: Timestamp
    markets: list[MarketPrice]


def make(items: Iterable[bytes], as_of: str, published: bytes | None) -> bytes | None:
    """The object with these items of lists, which are encoded; None if it is larger than MOST_BYTES.

    `as_of` is that of this build. If the markets are those of the object that is `published`, so are all its bytes:
    an idle build puts nothing.
    """
    markets, size = list[MarketPrice](), 0
    held = [*islice(items, MOST_BYTES // LEAST_BYTES + 1)]
    if len(held) * LEAST_BYTES > MOST_BYTES:
        return None
    for item in held:
        markets.append(_price(from_json(item)))
        size += len(contract.encode(markets[-1])) + len(",")
        if size > MOST_BYTES:
            return None
    before = _found(published)
    is_same = before is not None and before.markets == markets
    body = contract.encode(Prices(as_of=before.as_of if before and is_same else as_of, markets=markets))
    return body if len(body) <= MOST_BYTES else None


def _price(item: dict[str, Any]) -> MarketPrice:
    return MarketPrice(id=item["id"], prob=item["prob"], volume=item["volume"], last_activity_at=item["lastActivityAt"])


def _found(body: bytes | None) -> Prices | None:
    """The published object; None if there is none, or none that this program can read."""
    try:
        return Prices.model_validate_json(body) if body else None
    except ValidationError:
        return None
