"""The words of a text, and which markets have each. Pure.

A word is a run of letters and digits of the folded text. In scripts without spaces (Han, Hiragana, Katakana) a run has
no words, so every two neighbors count as one, and its last letter: then a query of one letter finds all that contain
it, by the words that begin with it.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Final

from generator.search.folding import UNSPACED_LETTERS, spaced

#: Only the first letters of a word count; no query has longer words, except by folding.
WORD_LENGTH: Final = 100
#: Marks a category's slug among the words. No word begins with it.
OF_CATEGORY: Final = "."

_RUNS: Final = re.compile(f"([{UNSPACED_LETTERS}]+)")


def of_text(text: str) -> set[str]:
    """The words of a text. They may be longer than WORD_LENGTH; `Postings` cuts them."""
    found = spaced(text)
    return set(found.split()) if found.isascii() else set(_split(set(found.split())))


class Vocabulary:
    """Finds the words of many texts. Equal words are one object: there are millions."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of_texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        """The distinct words of several texts, in no order."""
        found = of_text(" ".join(texts))
        return tuple(map(self._known.setdefault, found, found))


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
        self._markets = defaultdict[str, list[int]](list)
        self._count = 0

    def add(self, words: Iterable[str], categories: Iterable[str] = ()) -> None:
        """Add the next market with its distinct words and its categories, as slugs."""
        named = (f"{OF_CATEGORY}{slug}" for slug in categories)
        for found in (words, named):
            # Without a loop of its own, which would take three times as long for millions of words.
            deque(map(list.append, map(self._markets.__getitem__, found), repeat(self._count)), maxlen=0)
        self._count += 1

    def mention(self, categories: Iterable[str]) -> None:
        """Add these categories, even if no market has them: what the index lacks has no lists."""
        for slug in categories:
            self._markets.setdefault(f"{OF_CATEGORY}{slug}", [])

    def in_order(self) -> Iterator[tuple[str, Sequence[int]]]:
        """The words in order, each with the ascending numbers of its markets."""
        markets = self._cut()
        return ((word, markets[word]) for word in sorted(markets))

    def _cut(self) -> Mapping[str, list[int]]:
        """The words, cut to WORD_LENGTH; categories are whole."""
        long = [word for word in self._markets if len(word) > WORD_LENGTH and not word.startswith(OF_CATEGORY)]
        for word in long:
            cut = word[:WORD_LENGTH]
            self._markets[cut] = sorted({*self._markets.pop(word), *self._markets.get(cut, [])})
        return self._markets
