"""The lists of a build, objects of generated lists, and the pages that edges must cut from these."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from generator.api import contract, cursors, keys
from generator.tree import chunks, former_chunks, list_reader
from generator.tree.generation import ItemList


class FormerGeneration(chunks.Generation):
    """A generation in the former format of chunks."""

    def __init__(self, source: ItemList) -> None:
        super().__init__(source)
        self.name, bodies = former_chunks.name(source), former_chunks.bodies(source)
        self.chunks = tuple(map(chunks.name, bodies))
        self._former = [(keys.chunk(source.name, name), body) for name, body in zip(self.chunks, bodies, strict=True)]
        index = former_chunks.index(source.name, self.count, self.chunks)
        self._former.append((keys.index(source.name, self.name), index))

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of every chunk, in order, then of the index."""
        yield from self._former


def put(output: Path, lists: Iterable[ItemList]) -> Mapping[str, str]:
    """Write the objects of each list in the layout `chunks`; returns the generations by list name."""
    made = {items.name: chunks.Generation(items) for items in lists}
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
    return ItemList(name, list_reader.items(lambda key: read(output / key), name))


def read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def page(of: ItemList, generation: str, position: int, limit: int) -> bytes:
    """The page that an edge must cut: exactly `limit` items, or fewer at the end."""
    end = min(position + limit, len(of.items))
    following = cursors.mint(of.name, generation, end) if end < len(of.items) else None
    return b'{"items":[' + b",".join(of.items[position:end]) + b'],"nextCursor":' + contract.encode(following) + b"}"
