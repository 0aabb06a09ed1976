"""What a search must find in a build: the naive search over the markets that were published."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

from generator.api import contract, cursors, keys
from tests.support.readers import lists, search


def words(q: str) -> str:
    """The distinct words of a query, folded, as a cursor is bound to them."""
    found = list[str]()
    for run, is_unspaced in search.runs(q):
        pairs = [one + other for one, other in pairwise(run)]
        found += (pairs or [run]) if is_unspaced else [run[:100]]
    return " ".join(dict.fromkeys(found))


def cursor(name: str, folded: str, generation: str, position: int) -> str:
    """A cursor of a search; `position` is a place in `all/<sort>`."""
    digest = hashlib.sha256(f"{name}?{folded}/{generation}/{position}".encode()).hexdigest()
    return f"{digest[: cursors.CHECK_LENGTH]}{generation}{position}"


def page(output: Path, generation: str, name: str, q: str, position: int, limit: int) -> bytes:  # noqa: PLR0917
    """The page of the list's items that match and lie at this place in `all/<sort>` or later."""
    everything = lists.source(output, f"all/{name.partition('/')[2]}").items
    listed = frozenset(lists.source(output, name).items)
    found = [
        place
        for place in range(position, len(everything))
        if everything[place] in listed and search.is_match(q, _texts(output)[_id(everything[place])])
    ]
    following = cursor(name, words(q), generation, found[limit]) if len(found) > limit else None
    items = b",".join(everything[place] for place in found[:limit])
    return b'{"items":[' + items + b'],"nextCursor":' + contract.encode(following) + b"}"


def _id(item: bytes) -> str:
    return str(json.loads(item)["id"])


@cache
def _texts(output: Path) -> Mapping[str, tuple[str, str]]:
    """Title and description of the listed markets, by id."""
    markets = [
        json.loads((output / keys.detail(_id(item))).read_bytes())["market"]
        for item in lists.source(output, "all/new").items
    ]
    return {market["id"]: (market["question"], market["description"] or "") for market in markets}
