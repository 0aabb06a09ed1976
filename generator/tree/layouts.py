"""Both layouts behind one interface: the first letter of a generation's name tells its layout. Pure.

A site that changes its layout keeps generations of both for as long as walks may be in them.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeAlias, TypeVar

from generator.api import cursors, downloads, keys
from generator.tree import chunks, pages
from generator.tree.generation import SEARCH_LETTER, ItemList, Weight
from generator.tree.manifest import Current

SomeGeneration = TypeVar("SomeGeneration", bound=Current)
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


def weight(layout: str, list_name: str, count: int, size: int, new_chunks: int | None = None) -> Weight:
    """Estimate what a list of `count` items with `size` bytes in total becomes.

    If `new_chunks` is given, other chunks are left out in a layout whose generations share them.
    """
    if is_cut(layout):
        return chunks.weight(count, size, new_chunks)
    return pages.weight(list_name, count, size)


def folder_count(layout: str, count: int) -> int:
    """The least number of folders that a new generation of `count` items needs."""
    return 1 if is_cut(layout) else pages.folder_count(count)


def reads_per_page(layout: str) -> int:
    """The most objects an edge reads to answer a request for a page."""
    return _CHUNK_READS if is_cut(layout) else 1


def object_keys(list_name: str, generation: Current) -> Iterator[str]:
    """The keys of all immutable objects of a generation; it may share chunks with others of its list."""
    if _is_chunked(generation.generation):
        return chunks.object_keys(list_name, generation.generation, generation.chunks)
    return pages.page_keys(list_name, generation.generation, generation.count)


def object_count(generation: Current) -> int:
    """The number of immutable objects of a generation."""
    if _is_chunked(generation.generation):
        return len(generation.chunks) + 1
    return pages.page_count(generation.count)


def first_page_count(generation: Current) -> int:
    """The number of mutable objects that lead into a current generation."""
    return 1 if _is_chunked(generation.generation) else len(pages.LIMITS)


def first_page(layout: str, list_name: str, limit: int) -> str:
    """The key of the object that the first page of the list with `limit` is served from."""
    return keys.head(list_name) if is_cut(layout) else keys.first_page(list_name, limit)


def first_pages(list_name: str, generation: str, limits: Iterable[int]) -> list[tuple[str, str]]:
    """A label and the key of each object that the first pages with these limits are served from."""
    if _is_chunked(generation):
        return [("head", keys.head(list_name))]
    return [(str(limit), keys.first_page(list_name, limit)) for limit in limits if limit in pages.LIMITS]


def chunk_keys(known: Known) -> set[str]:
    """The keys of all chunks of these generations."""
    names: dict[str, set[str]] = {}  # each name once: a day's generations share most chunks
    for (list_name, _), generation in known.items():
        names.setdefault(list_name, set()).update(generation.chunks)
    return set(chain.from_iterable(_chunk_keys(list_name, found) for list_name, found in names.items()))


def has_chunks(generation: Current) -> bool:
    """Whether the generation consists of chunks, which its index names."""
    return _is_chunked(generation.generation)


def without_chunks(list_name: str, generation: SomeGeneration, gone: Collection[str]) -> SomeGeneration:
    """The generation without the chunks with these keys."""
    chunks_ = tuple(name for name in generation.chunks if keys.chunk(list_name, name) not in gone)
    return generation.model_copy(update={"chunks": chunks_})


def new_chunks(generation: Generation, existing: Collection[str]) -> int | None:
    """How many chunks of a generation are not among the `existing` keys; None in a layout without chunks."""
    if isinstance(generation, pages.Generation):
        return None
    return sum(key not in existing for key in _chunk_keys(generation.list_name, generation.chunks))


def total(known: Known) -> int:
    """The number of immutable objects of these generations; shared ones count once."""
    own = sum(object_count(generation) - len(generation.chunks) for generation in known.values())
    return own + len(chunk_keys(known))


def is_intact(list_name: str, generation: Current, key: str, body: bytes) -> bool:
    """Whether an object of the generation can have this body; for a page the body alone does not tell."""
    if not _is_chunked(generation.generation):
        return True
    if key == keys.index(list_name, generation.generation):
        if generation.generation.startswith((SEARCH_LETTER, keys.DOWNLOAD_LETTER)):
            return generation.generation == name_of_index(body, generation.generation[0])
        return generation.generation == chunks.generation_name(list_name, body)
    if list_name in keys.DOWNLOADS:
        return downloads.is_named_by(key, body)
    return key == keys.chunk(list_name, chunks.name(body))


def _chunk_keys(list_name: str, names: Iterable[str]) -> Iterator[str]:
    return (keys.chunk(list_name, name) for name in names)


def name_of_index(root: bytes, letter: str = SEARCH_LETTER) -> str:
    """The name of the generation of the search index, or of a download, with this root."""
    return letter + hashlib.sha256(root).hexdigest()[: cursors.GENERATION_LENGTH - 1]


def _is_chunked(generation: str) -> bool:
    return generation.startswith((chunks.LETTER, SEARCH_LETTER, keys.DOWNLOAD_LETTER))
