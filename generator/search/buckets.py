"""Buckets: the words of an index with their markets, cut into objects where the first three letters change. Pure.

    [
    "wa r!'",
    "war !#$ ner!P saw!!&"
    ]

A line holds all words with the same first letters, three of them unless the word is shorter, so the words that a
prefix of three letters or more begins are in one line. After these letters comes, for each word, a blank, the rest of
the word, `!` and the numbers of its markets as gaps (see `numbers`). After `!!` come the markets that lack the word,
where they are fewer. No word and no gap contains a blank, a quotation mark or `!`, so a router finds a word without
parsing.

Whether a line begins a bucket depends on its own first letters and size alone, not on other lines: so a word that is
new or gone changes one bucket. A line is the likelier to begin one, the longer it is, and lines of the target size or
more always do; so buckets have about the target size on average.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from generator.search import numbers
from generator.search.folding import is_unspaced

#: Letters that words of a line have in common. Shorter words of a query match whole words only, longer ones match what
#: begins with them: so a line has all there is to find.
KEY_LENGTH: Final = 3
#: The same in scripts without spaces, where a query of one letter means all words that begin with it.
UNSPACED_KEY_LENGTH: Final = 1
#: The mean size of a bucket, in bytes. It doubles as often as it takes to have at most so many times as much in all.
TARGET_SIZE: Final = 1 << 15
_MOST: Final = 192
_OPEN: Final = "[\n"
_BETWEEN: Final = ",\n"
_CLOSE: Final = "\n]"
_HASH_RANGE: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Bucket:
    """One object: its body, and the first letters with which its first line begins."""

    start: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _Line:
    key: str
    text: str


def make(words: Iterable[tuple[str, Sequence[int]]], count: int) -> list[Bucket]:
    """The buckets of words in order, with the ascending numbers of their markets, out of `count` markets."""
    lines = [_line(key, entries, count) for key, entries in groupby(words, key=_key)]
    target = _target(sum(len(line.text) for line in lines))
    buckets = list[list[_Line]]()
    is_cut = True
    for line in lines:
        if is_cut or _begins(line, target):
            buckets.append([])
        buckets[-1].append(line)
        # What follows a long line has a bucket of its own, too: it should not be read with it.
        is_cut = len(line.text) >= target
    return [Bucket(bucket[0].key, _body(bucket)) for bucket in buckets]


def read(body: bytes, count: int) -> Iterator[tuple[str, list[int]]]:
    """The words of a bucket in order, with the numbers of their markets."""
    for line in body.decode().split("\n")[1:-1]:
        key, *entries = line.removesuffix(",")[1:-1].split(" ")
        for entry in entries:
            rest, _, gaps = entry.partition("!")
            if not gaps.startswith("!"):
                yield key + rest, [*numbers.decode_gaps(gaps)]
            else:
                lacking = frozenset(numbers.decode_gaps(gaps[1:]))
                yield key + rest, [number for number in range(count) if number not in lacking]


def _key(entry: tuple[str, Sequence[int]]) -> str:
    word = entry[0]
    return word[: UNSPACED_KEY_LENGTH if is_unspaced(word[0]) else KEY_LENGTH]


def _line(key: str, entries: Iterable[tuple[str, Sequence[int]]], count: int) -> _Line:
    texts = [f"{word[len(key) :]}!{_postings(markets, count)}" for word, markets in entries]
    return _Line(key, f'"{key} {" ".join(texts)}"')


def _postings(markets: Sequence[int], count: int) -> str:
    if 2 * len(markets) <= count:
        return numbers.encode_gaps(markets)
    having = frozenset(markets)
    return "!" + numbers.encode_gaps([number for number in range(count) if number not in having])


def _target(size: int) -> int:
    target = TARGET_SIZE
    while size > _MOST * target:
        target *= 2
    return target


def _begins(line: _Line, target: int) -> bool:
    """Whether the line begins a bucket. Its size counts in powers of two, or most edits would move some border."""
    share = (1 << len(line.text).bit_length() - 1) / target
    digest = hashlib.sha256(line.key.encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * _HASH_RANGE


def _body(lines: Iterable[_Line]) -> bytes:
    return (_OPEN + _BETWEEN.join(line.text for line in lines) + _CLOSE).encode()
