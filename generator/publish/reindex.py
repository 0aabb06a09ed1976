"""Derives the search index without some markets from the published one: no text is needed, and no database. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from pydantic import TypeAdapter

from generator.api import keys
from generator.search import published
from generator.search.generation import FORMAT, LISTS, NUMBERED_BY, Generation, Order
from generator.search.published import Root
from generator.tree import chunks, layouts
from generator.tree.generation import ItemList

_JSON: Final[TypeAdapter[Any]] = TypeAdapter(Any)

#: Reads objects by their keys, several at a time.
ReadAll = Callable[[Iterable[str]], Iterable[bytes | None]]


@dataclass(frozen=True)
class Published:
    """What the next index is made of.

    `roots` are the names of the generations that may be published, the likeliest first. `before` has the items of every
    `all/<sort>` as published, and `after` the generations that have those that remain.
    """

    layout: str
    roots: Sequence[str]
    before: Mapping[str, Sequence[bytes]]
    after: Mapping[str, str]


def without(ids: Collection[str], state: Published, read_all: ReadAll) -> Generation | None:
    """The index without these markets; None if no readable index belongs to the lists.

    No index does where a killed run replaced only some of the lists and did more than withdraw markets.
    """
    shown = {item: _JSON.validate_json(item) for item in dict.fromkeys(chain.from_iterable(state.before.values()))}
    kept = {item: market for item, market in shown.items() if market["id"] not in ids}
    found = _root_and_markets(state, kept, read_all)
    if found is None or not _are_of_one_state(state.before.values(), kept):
        return None
    root, newest = found
    bodies = dict(zip(root.bucket_keys(), read_all(root.bucket_keys()), strict=True))
    if not all(body and keys.chunk(keys.SEARCH, chunks.name(body)) == key for key, body in bodies.items()):
        return None
    # Market n is the n-th item from the end.
    oldest_first = newest[::-1]
    gone = frozenset(number for number, item in enumerate(oldest_first) if item not in kept)
    numbers = dict(zip(oldest_first, published.renumbered(root.count, gone), strict=True))
    states = [kept[item]["status"] for item in oldest_first if item in kept]
    orders = {sort: _order(name, state, numbers) for sort, name in LISTS.items()}
    words = published.words_without(root, gone, lambda key: bodies[key] or b"")
    return Generation(words, states, orders)


def _are_of_one_state(lists: Iterable[Sequence[bytes]], kept: Collection[bytes]) -> bool:
    return len({frozenset(item for item in items if item in kept) for items in lists}) == 1


def _root_and_markets(
    state: Published, kept: Collection[bytes], read_all: ReadAll
) -> tuple[Root, Sequence[bytes]] | None:
    """The first root that belongs to the list as it is, or as it will be, and that list's items, the newest first."""
    found = state.before[LISTS[NUMBERED_BY]]
    lists = (found, [item for item in found if item in kept])
    by_name = {layouts.make(state.layout, ItemList(LISTS[NUMBERED_BY], items)).name: items for items in lists}
    for name in state.roots:
        (body,) = read_all([keys.index(keys.SEARCH, name)])
        root = _root(body, name)
        if root and root.lists[NUMBERED_BY] in by_name:
            return root, by_name[root.lists[NUMBERED_BY]]
    return None


def _root(body: bytes | None, name: str) -> Root | None:
    """The root, unless it is missing, damaged, or of another version of this program."""
    if body is None or layouts.name_of_index(body) != name:
        return None
    root = Root.model_validate_json(body)
    return root if root.format == FORMAT else None


def _order(list_name: str, state: Published, numbers: Mapping[bytes, int]) -> Order:
    kept = [item for item in state.before[list_name] if numbers.get(item, -1) >= 0]
    first_item = kept[0] if kept else b""
    return Order.of(state.layout, state.after[list_name], [numbers[item] for item in kept], first_item)
