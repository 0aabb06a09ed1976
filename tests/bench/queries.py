"""Queries of the search benchmark: what readers ask, and what somebody asks who wants a search to be slow. Pure.

The latter are made of the index itself: the words that most markets have, the prefixes that begin the most words, words
that rule each other out, and cursors near the end.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Final
from urllib.parse import quote

from generator.api import cursors, keys
from generator.api.contract import SORTS
from generator.search import buckets
from generator.search.words import OF_CATEGORY

#: The longest `q`, in characters.
_LONGEST: Final = 100
_MOST_PLACES: Final = 400


@dataclass(frozen=True)
class Index:
    """What the queries are made of: the markets of every word, and the current generation."""

    words: dict[str, list[int]]
    count: int
    generation: str


def index_of(output: Path) -> Index:
    """Read the index below an output folder."""
    head = json.loads((output / keys.head(keys.SEARCH)).read_bytes())
    words = dict[str, list[int]]()
    for name in head["buckets"]:
        words |= dict(buckets.read((output / keys.chunk(keys.SEARCH, name)).read_bytes()))
    return Index(words, head["count"], head["generation"])


def of_readers(output: Path, number: int) -> list[str]:
    """One to three words of questions, some of them cut, of any status or of open markets, in any order."""
    dice = random.Random(1)  # noqa: S311 - the same queries every time
    questions = [
        json.loads(line.rstrip(",\n"))["question"]
        for chunk in sorted((output / keys.list_prefix("all/new") / keys.CHUNKS).rglob("*.json"))[:200]
        for line in chunk.read_text("utf-8").split("\n")[1:-1]
    ]
    asked = list[str]()
    while len(asked) < number:
        if words := re.findall(r"\w+", dice.choice(questions)):
            chosen = dice.sample(words, dice.randint(1, min(3, len(words))))
            q = " ".join(word[: dice.randint(3, 9)] for word in chosen)
            asked.append(_query(q, dice.choice(("all", "open")), dice.choice(SORTS)))
    return asked


def of_abusers(index: Index) -> Iterator[str]:
    """Queries made to be expensive, each of them once."""
    words = {word: len(markets) for word, markets in index.words.items() if not word.startswith(OF_CATEGORY)}
    categories = [word.removeprefix(OF_CATEGORY) for word in index.words if word.startswith(OF_CATEGORY)]
    dense = _most(words)
    for q in (*dense[:6], *_joined(dense), *_joined(_most(_prefixes(words, 1))), *_joined(_most(_prefixes(words, 0)))):
        for status, limit in product(("all", "open", "cancelled"), (1, 100)):
            yield _query(q, status, "popular", limit)
    for length in (1, 2):
        yield from (_query(q) for q in _joined(_most({word: n for word, n in words.items() if len(word) == length})))
    yield from (_query(q) for kind in (0, 1) for q in _most(_prefixes(words, kind))[:20])
    yield from (_query(f"{first} {second}") for first, second in _exclusive(index, dense))
    for q, category, sort in product([*dense[:2], *_joined(dense)], categories, SORTS):
        yield f"{_query(q, 'all', sort)}&category={category}"
    yield from (_late(index, q, sort, share) for q, sort, share in product(dense[:4], SORTS, (0.5, 0.9, 0.999)))


def _query(q: str, status: str = "all", sort: str = "popular", limit: int = 20) -> str:
    return f"q={quote(q)}&status={status}&sort={sort}&limit={limit}"


def _most(counts: dict[str, int]) -> list[str]:
    return sorted(counts, key=lambda word: (-counts[word], word))[:_MOST_PLACES]


def _prefixes(words: dict[str, int], kind: int) -> dict[str, int]:
    """The first three letters of words, with the number of these words, or of the markets that each of them has."""
    found = Counter[str]()
    for word, count in words.items():
        if len(word) > buckets.KEY_LENGTH:
            found[word[: buckets.KEY_LENGTH]] += (1, count)[kind]
    return found


def _joined(words: Sequence[str]) -> Iterator[str]:
    """As many of the words as a query may have, from the first on: all that fit, and few enough for any site."""
    q = words[0] if words else ""
    for word in words[1:]:
        if len(q) + 1 + len(word) > _LONGEST:
            break
        q += f" {word}"
    found = q.split()
    yield from (" ".join(found[:number]) for number in (4, 9, 17, len(found)) if number <= len(found))


def _exclusive(index: Index, dense: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Pairs of frequent words that no market has both of, but all of both must be read."""
    found = {word: frozenset(index.words[word]) for word in dense[:60]}
    pairs = ((one, other) for one, other in combinations(found, 2) if not found[one] & found[other])
    return [pair for pair, _ in zip(pairs, range(6), strict=False)]


def _late(index: Index, q: str, sort: str, share: float) -> str:
    """A page of a walk that is nearly over."""
    cursor = cursors.mint(f"all/{sort}?{q}", index.generation, max(1, int(index.count * share)))
    return f"{_query(q, 'all', sort, 100)}&cursor={cursor}"
