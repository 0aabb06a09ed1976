"""Buckets: the words of an index with their markets, cut into objects where the first three letters change. Pure.

    [
    "wa r!'",
    "war *!#$(( !!'( ner!P saw!!Gb"
    ]

A line holds all words with the same first letters, three of them unless the word is shorter, so the words that a
prefix of three letters or more begins are in one line. After these letters comes, for each word, a blank, the rest of
the word, and the numbers of its markets in the shorter of two ways (see `numbers`): after `!` their gaps, or after `!!`
bits. Neither words nor numbers contain a blank, a quotation mark or `!`, so a router finds a word without parsing.

Where words that begin alike have more numbers than bits would take, or not in gaps alone, what they have in common and
`*` stand before them, with the markets that have any of them. So a router decodes a bounded text for each word of a
query, however many words it begins: `most_text` characters at most.

Whether a line begins a bucket depends on its own first letters and size alone, not on other lines: so a word that is
new or gone changes one bucket. The longer a line, the likelier it begins one, and a line of the target size or more
always does; so buckets have about the target size on average.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from generator.search import numbers
from generator.search.folding import is_unspaced
from generator.search.words import OF_CATEGORY

#: The letters that all words of a line begin with. A shorter word of a query matches whole words only, any other what
#: begins with it: so one line holds everything that a word matches.
KEY_LENGTH: Final = 3
#: The same in scripts without spaces, where a query of one letter means all words that begin with it.
UNSPACED_KEY_LENGTH: Final = 1
#: Stands between a word and its markets.
MARK: Final = "!"
#: Stands for all words that begin with what precedes it.
ANY: Final = "*"
_OPEN: Final = "[\n"
_BETWEEN: Final = ",\n"
_CLOSE: Final = "\n]"
_HASH_RANGE: Final = 1 << 32


@dataclass(frozen=True)
class Sizes:
    """How much the objects of an index hold.

    `target` is the mean size of a bucket, in bytes; doubled until there are at most `most` buckets, as estimated from
    their total. Sums of words that take no more than `quick` characters are quick to make. A vector has the numbers of
    `span` markets: it stays below a megabyte, whatever the number of markets.
    """

    target: int = 1 << 15
    most: int = 192
    quick: int = 1 << 12
    span: int = 200_000


SIZES: Final = Sizes()


@dataclass(frozen=True, slots=True)
class _Line:
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class _Word:
    """What follows a line's first letters, the word's markets, and those as text."""

    rest: str
    markets: Sequence[int]
    text: str


def make(words: Iterable[tuple[str, Sequence[int]]], count: int, sizes: Sizes = SIZES) -> list[bytes]:
    """The buckets of words in order, with the ascending numbers of their markets, out of `count` markets."""
    most = most_text(count, sizes)
    lines = [_line(key, entries, most) for key, entries in groupby(words, key=_key)]
    target = _target(sum(len(line.text) for line in lines), sizes)
    buckets = list[list[_Line]]()
    is_cut = True
    for line in lines:
        if is_cut or _begins(line, target):
            buckets.append([])
        buckets[-1].append(line)
        # What follows a long line has a bucket of its own, too: it should not be read with it.
        is_cut = len(line.text) >= target
    return [_body(bucket) for bucket in buckets]


def start(body: bytes) -> str:
    """The first letters with which a bucket's first line begins."""
    return body[len(_OPEN) + 1 : body.index(b" ")].decode()


def read(body: bytes) -> Iterator[tuple[str, list[int]]]:
    """The words of a bucket in order, with the numbers of their markets."""
    for line in body.decode().split("\n")[1:-1]:
        key, *entries = line.removesuffix(",")[1:-1].split(" ")
        for entry in entries:
            rest, _, text = entry.partition(MARK)
            if not rest.endswith(ANY):
                yield key + rest, _markets(text)


def _markets(text: str) -> list[int]:
    """The numbers that an entry has, after its first `!`."""
    return numbers.decode_bits(text[1:]) if text.startswith(MARK) else [*numbers.decode_gaps(text)]


def _key(entry: tuple[str, Sequence[int]]) -> str:
    word = entry[0]
    return word[: UNSPACED_KEY_LENGTH if is_unspaced(word[0]) else KEY_LENGTH]


def most_text(count: int, sizes: Sizes = SIZES) -> int:
    """The characters that a router decodes at most for a word of a query, out of `count` markets."""
    return max(sizes.quick, -(-count // numbers.BITS))


def _line(key: str, entries: Iterable[tuple[str, Sequence[int]]], most: int) -> _Line:
    words = [_Word(word[len(key) :], markets, _text(markets)) for word, markets in entries]
    texts = (word.rest + word.text for word in words) if key.startswith(OF_CATEGORY) else _texts(words, most)
    return _Line(key, f'"{key} {" ".join(texts)}"')


def _texts(words: Sequence[_Word], most: int) -> Iterator[str]:
    """The entries of words that begin alike, each sum before its words."""
    if not _needs_sum(words, most):
        yield from (word.rest + word.text for word in words)
        return
    first, last = words[0].rest, words[-1].rest
    shared = next((at for at, letters in enumerate(zip(first, last, strict=False)) if len({*letters}) > 1), len(first))
    markets = sorted(set[int]().union(*(word.markets for word in words)))
    yield f"{first[:shared]}{ANY}{_text(markets)}"
    for _, group in groupby(words, key=lambda word: word.rest[shared : shared + 1]):
        yield from _texts([*group], most)


def _needs_sum(words: Sequence[_Word], most: int) -> bool:
    if len(words) == 1:
        return False
    size = sum(len(word.rest) + len(word.text) + 1 for word in words)
    return size > most or any(word.text.startswith(MARK + MARK) for word in words)


def _text(markets: Sequence[int]) -> str:
    """The shorter of the two ways, with its mark."""
    size = markets[-1] // numbers.BITS + 1 if markets else 0
    if len(markets) > size:
        return MARK + MARK + numbers.encode_bits(markets)
    gaps = numbers.encode_gaps(markets)
    return MARK + gaps if len(gaps) <= size else MARK + MARK + numbers.encode_bits(markets)


def _target(size: int, sizes: Sizes) -> int:
    target = sizes.target
    while size > sizes.most * target:
        target *= 2
    return target


def _begins(line: _Line, target: int) -> bool:
    """Whether the line begins a bucket. Its size counts in powers of two, or most edits would move some border."""
    share = (1 << len(line.text).bit_length() - 1) / target
    digest = hashlib.sha256(line.key.encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * _HASH_RANGE


def _body(lines: Iterable[_Line]) -> bytes:
    return (_OPEN + _BETWEEN.join(line.text for line in lines) + _CLOSE).encode()
