"""The lists of a build, item by item, the objects of made-up ones, and the pages that edges must cut out of these."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from generator.api import contract, cursors
from generator.tree import chunks, list_reader
from generator.tree.generation import ItemList


def put(output: Path, lists: Iterable[ItemList]) -> Mapping[str, str]:
    """Write the objects of each list in the layout `chunks`; returns the generations by their lists' names."""
    made = {one.name: chunks.Generation(one) for one in lists}
    for generation in made.values():
        for key, body in (*generation.objects(), *generation.first_pages()):
            write(output / key, body)
    return {name: one.name for name, one in made.items()}


def write(path: Path, body: bytes) -> None:
    """Put a file into its place whole, as builds do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".aside")
    aside.write_bytes(body)
    aside.replace(path)


@cache
def source(output: Path, name: str) -> ItemList:
    """A list of a build, in whichever layout it is."""
    return ItemList(name, list_reader.items(lambda key: read(output / key), name))


def read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def page(of: ItemList, generation: str, position: int, limit: int) -> bytes:
    """The page that an edge must cut: exactly `limit` items while there are so many."""
    end = min(position + limit, len(of.items))
    following = cursors.mint(of.name, generation, end) if end < len(of.items) else None
    return b'{"items":[' + b",".join(of.items[position:end]) + b'],"nextCursor":' + contract.encode(following) + b"}"
