"""Chunks as version 1 of their format cut them, for the walks and withdrawals that meet such generations. Pure.

index     {"count": n, "first": m, "chunks": […]}       `m` items in the first chunk, a hundred in each later one
"""

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from generator.api import cursors
from generator.tree.generation import ItemList

#: Items per chunk, but for the first or the last.
SIZE: Final = 100
_LETTER: Final = "c"
#: Sorts whose borders count from the end.
_GROWING: Final = frozenset(("new", "ended"))


def borders(list_name: str, count: int) -> list[int]:
    """The positions where the chunks of a list of `count` items begin, and the end of the list."""
    first = count % SIZE if list_name.rpartition("/")[2] in _GROWING else 0
    return [0] if count == 0 else [*range(0, first, SIZE), *range(first, count, SIZE), count]


def index(list_name: str, count: int, chunks: Sequence[str]) -> bytes:
    """The body of the index of a generation with `count` items in `chunks`."""
    first = borders(list_name, count)[1] if count else 0
    return json.dumps({"count": count, "first": first, "chunks": chunks}, separators=(",", ":")).encode()


def bodies(source: ItemList) -> list[bytes]:
    """The chunks of a list, in order."""
    found = borders(source.name, len(source.items))
    return [b"[\n" + b",\n".join(source.items[start:end]) + b"\n]" for start, end in pairwise(found)]


def name(source: ItemList) -> str:
    """The name of the generation with this content."""
    found = borders(source.name, len(source.items))
    digest = hashlib.sha256(f"1\nchunks\n{source.name}\n{found}\n".encode())
    digest.update(b"".join(hashlib.sha256(body).digest() for body in bodies(source)))
    return _LETTER + digest.hexdigest()[: cursors.GENERATION_LENGTH - 1]
