"""What an index is made of: its objects, their size, and what a change of the markets changes."""

import random
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from generator.api import contract
from generator.search import buckets, words
from generator.search.words import Postings
from tests.support.readers import search
from tests.support.readers.search import Market

#: As many different words as there are in real questions, and as often.
VOCABULARY: Final = [
    first + second + third
    for first in ("ka", "ro", "mi", "te", "so", "ve", "da", "bri", "lo", "qua", "pe", "u")
    for second in ("ne", "shi", "tar", "gol", "wes", "in", "ard", "ley", "x", "mon", "po", "sta")
    for third in ("", "s", "ing", "ed", "er", "um", "ax", "ic", "on", "t")
]


def made_up(count: int, words: int = 9) -> list[Market]:
    dice = random.Random(count)  # noqa: S311 - no secret
    weights = [1 / (rank + 3) for rank in range(len(VOCABULARY))]
    return [
        Market(
            (" ".join([*dice.choices(VOCABULARY, weights, k=words), f"n{dice.randrange(10 * count)}"]),),
            dice.choice(contract.MARKET_STATUSES),
            (dice.choice(["crypto", "politics"]),),
            dice.randrange(7919),
        )
        for _ in range(count)
    ]


MANY: Final = made_up(6_000)


def test_a_router_reads_a_bounded_text_for_each_word_of_a_query() -> None:
    count = len(MANY)
    made = buckets.make(postings_of(MANY).in_order(), count, search.small())
    lines = [line for bucket in made for line in bucket.decode().split("\n")[1:-1]]
    most = buckets.most_text(count, search.small())
    assert most == count // 6 == 1000
    assert max(map(len, lines)) > 3 * most, "several words share a line"
    for line in lines:
        key, *entries = line.removesuffix(",")[1:-1].split(" ")
        for length in range(max(len(entry.partition("!")[0]) for entry in entries) + 1):
            for prefix, group in groupby(entries, key=lambda entry: entry.partition("!")[0].rstrip("*")[:length]):
                begun = [entry for entry in group if len(entry.partition("!")[0].rstrip("*")) >= length]
                read = begun[:1] if begun and begun[0].partition("!")[0].endswith("*") else begun
                assert sum(len(entry) + 1 for entry in read) <= most + 16, (key, prefix)
                assert len(read) <= 1 or not any("!!" in entry for entry in read)


def postings_of(markets: Sequence[Market]) -> Postings:
    postings, vocabulary = Postings(), words.Vocabulary()
    for market in markets:
        postings.add(vocabulary.of_texts(market.texts), market.categories)
    return postings


def test_words_are_read_back_from_their_buckets() -> None:
    found = [*postings_of(MANY[:300]).in_order()]
    made = buckets.make(found, 300)
    for way in ("!#", "!!", "*!"):
        assert any(way in bucket.decode() for bucket in made), way
    assert [entry for bucket in made for entry in buckets.read(bucket)] == found


def test_long_words_count_by_their_first_hundred_letters() -> None:
    postings = Postings()
    for text in ("x" * 150, "x" * 99, "x" * 100 + "y"):
        postings.add(words.of_text(text))
    assert [*postings.in_order()] == [("x" * 99, [1]), ("x" * 100, [0, 2])]
