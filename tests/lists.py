"""The lists of a build, item by item; their objects in the layout `chunks`, and the pages that are cut out of these."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from generator import chunks, contract, cursor, keys, pages
from generator.pages import ItemList


def put(output: Path, lists: Iterable[ItemList]) -> dict[str, chunks.Generation]:
    """Write the objects of each list, the head last; returns the generations by their lists' names."""
    made = {one.name: chunks.Generation(one) for one in lists}
    for name, generation in made.items():
        for key, body in [*generation.bodies(), (keys.index(name, generation.name), generation.index)]:
            _write(output / key, body)
        _write(output / keys.head(name), generation.head())
    return made


def _write(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)


@cache
def of(output: Path) -> dict[str, ItemList]:
    """Every list of a build, in either layout."""
    names = json.loads((output / "manifest.json").read_text("utf-8"))["lists"]
    return {name: ItemList(name, tuple(_items(output, name))) for name in names}


def _items(output: Path, name: str) -> Iterator[bytes]:
    head = output / keys.head(name)
    if head.exists():
        generation = json.loads(head.read_bytes())["generation"]
        for chunk in json.loads((output / keys.index(name, generation)).read_bytes())["chunks"]:
            yield from chunks.items((output / keys.chunk(name, chunk)).read_bytes())
        return
    page = pages.read((output / keys.first_page(name, contract.LIMIT_MAX)).read_bytes())
    while page.next_cursor:
        yield from page.items
        place = cursor.read(name, page.next_cursor)
        key = keys.page(name, place.generation, contract.LIMIT_MAX, place.position)
        page = pages.read((output / key).read_bytes())
    yield from page.items


def page(source: ItemList, generation: str, position: int, limit: int) -> bytes:
    """The page that an edge must cut: exactly `limit` items while there are so many."""
    end = min(position + limit, len(source.items))
    following = cursor.mint(source.name, generation, end) if end < len(source.items) else None
    tail = b'],"nextCursor":' + contract.encode(following) + b"}"
    return b'{"items":[' + b",".join(source.items[position:end]) + tail
