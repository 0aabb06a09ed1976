"""The lists of a build, objects of generated lists, and the pages that edges must cut from these."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from generator.api import contract, cursors
from generator.tree import chunks, layouts
from generator.tree.generation import ItemList


def put(output: Path, lists: Iterable[ItemList]) -> Mapping[str, str]:
    """Write the objects of each list in the layout `chunks`; returns the generations by list name."""
    made = {items.name: chunks.ChunkedList(items) for items in lists}
    for generation in made.values():
        for key, body in (*generation.objects(), *generation.first_pages()):
            write(output / key, body)
    return {name: generation.name for name, generation in made.items()}


def write(path: Path, body: bytes) -> None:
    """Write a file atomically, as builds do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".aside")
    aside.write_bytes(body)
    aside.replace(path)


@cache
def source(output: Path, name: str) -> ItemList:
    """A list of a build, in either layout."""
    return ItemList(name, layouts.items(lambda key: read(output / key), name))


def read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def page(of: ItemList, generation: str, position: int, limit: int) -> bytes:
    """The page that an edge must cut: exactly `limit` items, or fewer at the end."""
    end = min(position + limit, len(of.items))
    following = cursors.mint(of.name, generation, end) if end < len(of.items) else None
    return b'{"items":[' + b",".join(of.items[position:end]) + b'],"nextCursor":' + contract.encode(following) + b"}"
