"""Both layouts of lists behind one interface. Pure."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from generator.api import keys
from generator.tree import chunks, pages
from generator.tree.generation import ItemList, Weight

Generation: TypeAlias = pages.Generation | chunks.Generation

_MAKERS: Final[Mapping[str, type[Generation]]] = {
    pages.LAYOUT: pages.Generation,
    chunks.LAYOUT: chunks.Generation,
}
LAYOUTS: Final = tuple(_MAKERS)
#: The first letters of generation names, one for each layout.
LETTERS: Final = pages.LETTER + chunks.LETTER
#: The layout with the fewest files.
COMPACT: Final = chunks.LAYOUT
#: The index and two chunks, from which an edge cuts a page.
_CHUNK_READS: Final = 3


def is_cut(layout: str) -> bool:
    """Whether an edge must cut pages out of larger objects."""
    return layout == chunks.LAYOUT


def make(layout: str, source: ItemList) -> Generation:
    """The generation of a list in a layout."""
    return _MAKERS[layout](source)


def weight(layout: str, count: int, size: int, new_chunks: int | None = None) -> Weight:
    """Estimate what a list of `count` items with `size` bytes in total becomes.

    If `new_chunks` is given, other chunks are left out in a layout whose generations share them.
    """
    if is_cut(layout):
        return chunks.weight(count, size, new_chunks)
    return pages.weight(count, size)


def reads_per_page(layout: str) -> int:
    """The most objects an edge reads to answer a request for a page."""
    return _CHUNK_READS if is_cut(layout) else 1


def first_page(layout: str, list_name: str, limit: int) -> str:
    """The key of the object that the first page of the list with `limit` is served from."""
    return keys.head(list_name) if is_cut(layout) else keys.first_page(list_name, limit)
