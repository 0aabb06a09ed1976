"""Derives the search index without some markets from the published one: no text is needed, and no database. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

from generator.api import keys
from generator.api.contract import SORTS, MarketStatus, Sort
from generator.search import published
from generator.search.generation import Generation, Order
from generator.search.published import Root
from generator.tree import chunks, layouts
from generator.tree.generation import ItemList
from generator.tree.list_reader import Read

_JSON: Final[TypeAdapter[Any]] = TypeAdapter(Any)
#: The list by whose order markets are numbered.
_NUMBERED_BY: Final = keys.list_name("all", "new")

#: Reads objects by their keys, several at a time.
ReadAll = Callable[[Iterable[str]], Iterable[bytes | None]]


@dataclass(frozen=True)
class Published:
    """What the next index is made of.

    `root` is the name of the published one's generation. `before` has the items of every `all/<sort>` as published, and
    `after` the generations that have those that remain.
    """

    layout: str
    root: str
    before: Mapping[str, Sequence[bytes]]
    after: Mapping[str, str]


def without(ids: Collection[str], state: Published, read: Read, read_all: ReadAll) -> Generation | None:
    """The index without these markets; None if the published one cannot be read or belongs to other lists."""
    root = _root(read(keys.index(keys.SEARCH, state.root)), state.root)
    newest = state.before[_NUMBERED_BY]
    if root is None or layouts.make(state.layout, ItemList(_NUMBERED_BY, newest)).name != root.lists["new"]:
        return None
    bodies = dict(zip(root.bucket_keys(), read_all(root.bucket_keys()), strict=True))
    if not all(body and keys.chunk(keys.SEARCH, chunks.name(body)) == key for key, body in bodies.items()):
        return None
    # Market n is the n-th item from the end.
    shown = [_JSON.validate_json(item) for item in reversed(newest)]
    gone = frozenset(number for number, item in enumerate(shown) if item["id"] in ids)
    numbers = dict(zip(reversed(newest), published.renumbered(root.count, gone), strict=True))
    states: list[MarketStatus] = [item["status"] for number, item in enumerate(shown) if number not in gone]
    orders = {sort: _order(sort, state, numbers) for sort in SORTS}
    words = published.words_without(root, gone, lambda key: bodies[key] or b"")
    return Generation(words, states, orders)


def _root(body: bytes | None, name: str) -> Root | None:
    if body is None or layouts.name_of_index(body) != name:
        return None
    return Root.model_validate_json(body)


def _order(sort: Sort, state: Published, numbers: Mapping[bytes, int]) -> Order:
    name = keys.list_name("all", sort)
    kept = [item for item in state.before[name] if numbers[item] >= 0]
    first = b"" if layouts.is_cut(state.layout) or not kept else kept[0]
    return Order(state.after[name], [numbers[item] for item in kept], first)
