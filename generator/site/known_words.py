"""The words of the search index, taken from the last one if no text changed: trades change none of them.

Beside `v1/` lies which objects hold them, and a seal: a digest of all that they were made of, the program included. So
they are never wrong: whatever happened to the folder since, they are taken only if they are what would be made.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from generator import program
from generator.api import contract, keys
from generator.markets.market import Market
from generator.search.generation import WordObjects
from generator.search.words import Postings
from generator.tree import chunks, files
from generator.tree.generation import Read
from generator.tree.stored import StoredModel

#: What an index has of a market: its words and the slugs of its categories that are offered.
_Entry: TypeAlias = tuple[Sequence[str], Sequence[str]]


class KnownWords(StoredModel):
    """The names of the objects, the table last, and how many words they have; the `seal` is also of these."""

    count: int
    objects: tuple[str, ...]
    seal: str

    @classmethod
    def of(cls, made: WordObjects, source: str) -> "KnownWords":
        """What to keep of objects that were made of a source, which is given as a digest."""
        names = tuple(map(chunks.name, (*made.buckets, made.table)))
        return cls(count=made.count, objects=names, seal=_seal(source, made.count, names))

    def objects_of(self, source: str, read: Read) -> WordObjects | None:
        """The objects, if they were made of this source and are all in place."""
        if self.seal != _seal(source, self.count, self.objects):
            return None
        *buckets, table = bodies = [read(keys.chunk(keys.SEARCH, name)) or b"" for name in self.objects]
        is_whole = tuple(map(chunks.name, bodies)) == self.objects
        return WordObjects(self.count, buckets, table) if is_whole else None


def of_markets(read: Read, oldest_first: Sequence[Market], offered: Collection[str]) -> tuple[WordObjects, bytes]:
    """The objects of the markets' words, and the file to save beside `v1/`; `read` reads what is in place."""
    source = source_of(oldest_first, offered)
    made = _found(source, read) or _made(_entries(oldest_first, offered), offered, len(oldest_first))
    return made, contract.encode(KnownWords.of(made, source)) + b"\n"


def source_of(oldest_first: Sequence[Market], offered: Collection[str]) -> str:
    """A digest of all that the objects are made of, and of the program that makes them."""
    found = hashlib.sha256(contract.encode([program.maker(), sorted(offered)]))
    for words, categories in _entries(oldest_first, offered):
        found.update(contract.encode([sorted(words), categories]))
    return found.hexdigest()


def _entries(oldest_first: Sequence[Market], offered: Collection[str]) -> Iterator[_Entry]:
    return ((market.words, [slug for slug in market.categories if slug in offered]) for market in oldest_first)


def _seal(source: str, count: int, names: Sequence[str]) -> str:
    return hashlib.sha256(contract.encode([source, count, names])).hexdigest()


def _found(source: str, read: Read) -> WordObjects | None:
    try:
        return KnownWords.model_validate_json(read(files.WORDS) or b"").objects_of(source, read)
    except ValueError:  # it is of another version, or was altered
        return None


def _made(entries: Iterator[_Entry], offered: Collection[str], count: int) -> WordObjects:
    postings = Postings()
    for words, categories in entries:
        postings.add(words, categories)
    postings.mention(offered)
    return WordObjects.of(postings.in_order(), count)
