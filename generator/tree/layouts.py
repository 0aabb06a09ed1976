"""Generations of either layout: the first letter of a generation's name tells which one made it. Pure.

A site that moves from one layout to the other keeps generations of both for as long as walks may be in them.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final, TypeAlias

from generator.api import keys
from generator.tree import chunks, pages
from generator.tree.manifest import Current
from generator.tree.pages import ItemList

Generation: TypeAlias = pages.Generation | chunks.Generation
#: Generations by list and name.
Known: TypeAlias = Mapping[tuple[str, str], Current]

_MAKERS: Final[Mapping[str, type[Generation]]] = {
    pages.LAYOUT: pages.Generation,
    chunks.LAYOUT: chunks.Generation,
}
LAYOUTS: Final = tuple(_MAKERS)
#: The first letters of generation names, one for each layout.
LETTERS: Final = pages.LETTER + chunks.LETTER


def is_cut(layout: str) -> bool:
    """Whether an edge must cut pages out of larger objects."""
    return layout == chunks.LAYOUT


def make(layout: str, source: ItemList) -> Generation:
    """The content of a list in a layout."""
    return _MAKERS[layout](source)


def object_keys(list_name: str, one: Current) -> Iterator[str]:
    """The keys of all immutable objects of a generation; of chunks it may share some with others of its list."""
    if _is_chunked(one):
        return chunks.object_keys(list_name, one.generation, one.chunks)
    return pages.page_keys(list_name, one.generation, one.count)


def object_count(one: Current) -> int:
    """How many immutable objects a generation has."""
    return len(one.chunks) + 1 if _is_chunked(one) else pages.page_count(one.count)


def first_page_count(one: Current) -> int:
    """How many mutable objects lead into a generation that is current."""
    return 1 if _is_chunked(one) else len(pages.LIMITS)


def entrance(layout: str, list_name: str, limit: int) -> str:
    """The key of the object with which walks of the list by `limit` begin."""
    return keys.head(list_name) if is_cut(layout) else keys.first_page(list_name, limit)


def chunk_keys(known: Known) -> set[str]:
    """The keys of all chunks that these generations are made of."""
    return set(chain.from_iterable(_chunks(list_name, one) for (list_name, _), one in known.items()))


def new_chunks(one: Generation, there: Collection[str]) -> int | None:
    """How many chunks of a generation are not among those `there`, by their keys; None where it has no chunks."""
    if isinstance(one, pages.Generation):
        return None
    return sum(keys.chunk(one.list_name, name) not in there for name in one.chunks)


def total(known: Known) -> int:
    """How many immutable objects these generations have together."""
    own = sum(object_count(one) - len(one.chunks) for one in known.values())
    return own + len(chunk_keys(known))


def is_intact(list_name: str, one: Current, key: str, body: bytes) -> bool:
    """Whether these can be the bytes of an object of the generation; a page's bytes alone do not tell."""
    if not _is_chunked(one):
        return True
    if key == keys.index(list_name, one.generation):
        return body == chunks.index(list_name, one.count, one.chunks)
    return key == keys.chunk(list_name, chunks.name(body))


def _chunks(list_name: str, one: Current) -> Iterator[str]:
    return (keys.chunk(list_name, name) for name in one.chunks)


def _is_chunked(one: Current) -> bool:
    return one.generation.startswith(chunks.LETTER)
