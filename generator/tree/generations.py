"""What has generations, family by family: each list, the search index, the dump and the change feed. Pure.

A family is known by its name, which keys begin with. Its generations tell by the first letter of their names what they
consist of: a site that changes its layout keeps generations of both for as long as walks may be in them.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

from generator import filesystem
from generator.api import cursors, downloads, keys
from generator.tree import chunks, pages
from generator.tree.manifest import Current

#: Generations by family and name.
Generations: TypeAlias = Mapping[tuple[str, str], Current]


@dataclass(frozen=True)
class Composition:
    """What is known of the generations of a family: those that an index names consist of chunks, others of pages.

    `index` makes the name of a generation of that of its family and the body of its index.

    `has_large_files`: few of its objects fit into memory together.
    """

    index: Callable[[str, bytes], str] | None
    has_large_files: bool = False


def name_of_index(letter: str, index: bytes) -> str:
    """The name of the generation with this index, of a family that is no list."""
    return letter + hashlib.sha256(index).hexdigest()[: cursors.GENERATION_LENGTH - 1]


_FILES: Final = Composition(lambda _, head: name_of_index(keys.DOWNLOAD_LETTER, head), has_large_files=True)
#: Lists, by the first letter of the generation's name.
_LISTS: Final[Mapping[str, Composition]] = {
    pages.LETTER: Composition(None),
    chunks.LETTER: Composition(chunks.generation_name),
}
#: The others by name: each is made from all lists, and has chunks in either layout.
_OTHERS: Final[Mapping[str, Composition]] = {
    keys.SEARCH: Composition(lambda _, root: name_of_index(keys.SEARCH_LETTER, root)),
    keys.DUMPS: _FILES,
    keys.CHANGES: _FILES,
}


def of(name: str, generation: str) -> Composition:
    """What is known of the family with this name, and this generation."""
    return _OTHERS.get(name) or _LISTS.get(generation[:1], _LISTS[pages.LETTER])


def has_index(name: str, generation: str) -> bool:
    """Whether the generation consists of chunks, which its index names."""
    return of(name, generation).index is not None


def object_keys(name: str, generation: Current) -> Iterator[str]:
    """The keys of all immutable objects of a generation; it may share chunks with others of its family."""
    if has_index(name, generation.generation):
        return chunks.object_keys(name, generation.generation, generation.chunks)
    return pages.page_keys(name, generation.generation, generation.count)


def object_count(name: str, generation: Current) -> int:
    """The number of immutable objects of a generation."""
    if has_index(name, generation.generation):
        return len(generation.chunks) + 1
    return pages.page_count(generation.count)


def first_pages(name: str, generation: str, limits: Iterable[int] = pages.LIMITS) -> list[tuple[str, str]]:
    """A label and the key of each object that first pages with these limits are served from."""
    if has_index(name, generation):
        return [("head", keys.head(name))]
    return [(str(limit), keys.first_page(name, limit)) for limit in limits if limit in pages.LIMITS]


def chunk_keys(known: Generations) -> set[str]:
    """The keys of all chunks of these generations."""
    names: dict[str, set[str]] = {}  # each name once: a day's generations share most chunks
    for (family, _), generation in known.items():
        names.setdefault(family, set()).update(generation.chunks)
    return set(chain.from_iterable(map(partial(keys.chunk, family), found) for family, found in names.items()))


def total(known: Generations) -> int:
    """The number of immutable objects of these generations; shared ones count once."""
    own = sum(object_count(name, generation) - len(generation.chunks) for (name, _), generation in known.items())
    return own + len(chunk_keys(known))


def is_index(name: str, generation: str, body: bytes) -> bool:
    """Whether this is the body of the generation's index, or of a download's head, which says the same."""
    index = of(name, generation).index
    return index is not None and index(name, body) == generation


def is_intact(name: str, generation: Current, key: str, body: bytes) -> bool:
    """Whether an object of the generation can have this body; for a page the body alone does not tell."""
    if not has_index(name, generation.generation):
        return True
    if key == keys.index(name, generation.generation):
        return is_index(name, generation.generation, body)
    return downloads.is_named_by(key, body)


#: The path of an object, by its key.
PathOf: TypeAlias = Callable[[str], Path]


def damaged(
    path_of: PathOf, before: Generations, made: Collection[tuple[str, str]], mended: Collection[str]
) -> frozenset[tuple[str, str]]:
    """The generations of `before`, but those just `made`, of which a file is missing or damaged.

    Objects that are about to be `mended`, by their keys, count as whole.
    """
    others = [(pair, entry) for pair, entry in before.items() if pair not in made]
    return frozenset(pair for pair, entry in others if not _is_whole(path_of, pair[0], entry, mended))


def _is_whole(path_of: PathOf, name: str, entry: Current, mended: Collection[str]) -> bool:
    try:
        if not has_index(name, entry.generation):
            return _are_pages_whole(path_of, name, entry)
        index = filesystem.read(path_of(keys.index(name, entry.generation)))
        chunks = [key for chunk in entry.chunks if (key := keys.chunk(name, chunk)) not in mended]
        return is_index(name, entry.generation, index) and all(
            filesystem.digest(path_of(key)).startswith(key.rpartition("/")[2].partition(".")[0]) for key in chunks
        )
    except (OSError, ValueError):
        return False


def _are_pages_whole(path_of: PathOf, name: str, entry: Current) -> bool:
    """Whether pages agree with those of one item. Nothing tells what the first of these had."""
    singles = (keys.page(name, entry.generation, 1, place) for place in range(1, entry.count))
    items = [item for key in singles for item in pages.read(filesystem.read(path_of(key))).items]
    made = pages.remade(name, entry.generation, items)
    return len(items) == max(0, entry.count - 1) and all(filesystem.holding(path_of(key), body) for key, body in made)
