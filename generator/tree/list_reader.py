"""A list as a reader finds it, walked from its first page or head to the end, in either layout. Pure.

It follows the objects, not a manifest, so it finds what readers find, even between two states.
"""

import json
from collections.abc import Callable
from typing import TypeAlias

from generator.api import contract, cursors, keys
from generator.errors import OutputError
from generator.tree import chunks, pages

#: Reads an object by its key; None when there is none.
Read: TypeAlias = Callable[[str], bytes | None]

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
