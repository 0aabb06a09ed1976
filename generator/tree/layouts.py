"""Both layouts of lists behind one interface: a list is made, estimated, and read as readers find it. Pure."""

import json
from collections.abc import Mapping
from typing import Final

from generator.api import contract, cursors, keys
from generator.errors import OutputError
from generator.tree import chunks, pages
from generator.tree.generation import ItemList, Read, Weight

_MAKERS: Final[Mapping[str, type[pages.PagedList | chunks.ChunkedList]]] = {
    pages.LAYOUT: pages.PagedList,
    chunks.LAYOUT: chunks.ChunkedList,
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


def make(layout: str, source: ItemList) -> pages.PagedList | chunks.ChunkedList:
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


_REMEDY = "so its list cannot be read; `public-markets rebuild --verify` repairs it"


def items(read: Read, list_name: str) -> list[bytes]:
    """The encoded items of a list; raise OutputError when an object of it is missing or damaged."""
    first = keys.first_page(list_name, contract.LIMIT_MAX)
    body = read(first)
    if body is not None:
        return _of_pages(read, list_name, first, body)
    head = keys.head(list_name)
    body = read(head)
    if body is None:
        place, name = keys.list_prefix(list_name), first.removeprefix(f"{keys.list_prefix(list_name)}/")
        raise OutputError(f"{place}: neither {name} nor {keys.HEAD} exists, {_REMEDY}")
    return _of_chunks(read, list_name, head, body)


def _of_pages(read: Read, list_name: str, key: str, body: bytes | None) -> list[bytes]:
    found: list[bytes] = []
    while True:
        try:
            page = pages.read(_present(key, body))
            found += page.items
            if page.next_cursor is None:
                return found
            place = cursors.read(list_name, page.next_cursor)
        except ValueError as error:
            raise _damaged(key) from error
        size = pages.size_at(place.position, contract.LIMIT_MAX)
        key = keys.page(list_name, place.generation, size, place.position)
        body = read(key)


def _of_chunks(read: Read, list_name: str, head_key: str, head: bytes) -> list[bytes]:
    """Read the index and the chunks, unless the head holds all items."""
    try:
        lead = json.loads(head)
        generation, count, found = lead["generation"], lead["count"], chunks.items(head)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(head_key) from error
    if count == len(found):
        return found
    index = keys.index(list_name, generation)
    try:
        names = chunks.names(_present(index, read(index)))
    except ValueError as error:
        raise _damaged(index) from error
    found = [item for name in names for item in _of_chunk(read, keys.chunk(list_name, name))]
    if len(found) != count:
        raise _damaged(index)
    return found


def _of_chunk(read: Read, key: str) -> list[bytes]:
    try:
        return chunks.items(_present(key, read(key)))
    except ValueError as error:
        raise _damaged(key) from error


def _present(key: str, body: bytes | None) -> bytes:
    if body is None:
        raise OutputError(f"{key}: missing, {_REMEDY}")
    return body


def _damaged(key: str) -> OutputError:
    return OutputError(f"{key}: damaged, {_REMEDY}")
