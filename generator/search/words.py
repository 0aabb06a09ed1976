"""The words of a text, and which markets have each. Pure.

A word is a run of letters and digits of the folded text. In scripts without spaces (Han, Hiragana, Katakana) a run has
no words, so every two neighbors count as one, and its last letter: then a query of one letter finds all that contain
it, by the words that begin with it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from generator.search.folding import UNSPACED_LETTERS, fold

#: Only the first letters of a word count; no query has longer words, except by folding.
WORD_LENGTH: Final = 100
#: Marks a category's slug among the words. No word begins with it.
OF_CATEGORY: Final = "."

_ASCII_WORDS: Final = re.compile("[a-z0-9]+")
_WORDS: Final = re.compile(r"[^\W_]+")
_RUNS: Final = re.compile(f"([{UNSPACED_LETTERS}]+)")


def of_text(text: str) -> set[str]:
    """The words of a text. They may be longer than WORD_LENGTH; `Postings` cuts them."""
    folded = fold(text)
    if folded.isascii():
        return set(_ASCII_WORDS.findall(folded))
    return set(_split(_WORDS.findall(folded)))


def of_texts(texts: Iterable[str]) -> set[str]:
    """The words of several texts."""
    return set[str]().union(*map(of_text, texts))


def _split(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word.isascii():
            yield word
            continue
        # Every second part is a run of a script without spaces.
        for number, part in enumerate(_RUNS.split(word)):
            if number % 2:
                yield from (first + second for first, second in pairwise(part))
                yield part[-1]
            elif part:
                yield part


class Postings:
    """The markets that have each word. Markets have numbers in the order in which they are added."""

    def __init__(self) -> None:
        # Most words are rare: a number for one market, and a list only for several.
        self._markets: dict[str, int | list[int]] = {}
        self._count = 0

    def add(self, words: Iterable[str], categories: Iterable[str] = ()) -> None:
        """Add the next market with its distinct words and its categories, as slugs."""
        number, markets = self._count, self._markets
        self._count += 1
        for word in (*words, *(f"{OF_CATEGORY}{slug}" for slug in categories)):
            known = markets.get(word)
            if known is None:
                markets[word] = number
            elif isinstance(known, int):
                markets[word] = [known, number]
            else:
                known.append(number)

    def mention(self, categories: Iterable[str]) -> None:
        """Add these categories, even if no market has them: what the index lacks has no lists."""
        for slug in categories:
            self._markets.setdefault(f"{OF_CATEGORY}{slug}", [])

    def in_order(self) -> Iterator[tuple[str, Sequence[int]]]:
        """The words in order, each with the ascending numbers of its markets."""
        markets = self._cut()
        return ((word, _numbers(markets[word])) for word in sorted(markets))

    def _cut(self) -> Mapping[str, int | list[int]]:
        """The words, cut to WORD_LENGTH; categories are whole."""
        long = [word for word in self._markets if len(word) > WORD_LENGTH and not word.startswith(OF_CATEGORY)]
        for word in long:
            cut = word[:WORD_LENGTH]
            self._markets[cut] = sorted({*_numbers(self._markets.pop(word)), *_numbers(self._markets.get(cut, []))})
        return self._markets


def _numbers(markets: int | list[int]) -> list[int]:
    return [markets] if isinstance(markets, int) else markets
