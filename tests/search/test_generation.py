"""What an index is made of: its objects, their size, and what a change of the markets changes."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from generator.api import contract, keys
from generator.search import buckets, generation, words
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


def of(markets: Sequence[Market], layout: str = "chunks") -> generation.Generation:
    return search.generation(markets, layout)[0]


def bodies(made: generation.Generation) -> dict[str, bytes]:
    return dict(made.objects())


def changed(before: Sequence[Market], after: Sequence[Market]) -> list[bytes]:
    """The objects of the second index that the first one lacks, but the root."""
    known = bodies(of(before))
    return [body for key, body in bodies(of(after)).items() if key not in known and not key.endswith(keys.INDEX)]


def test_equal_markets_make_equal_objects() -> None:
    assert bodies(of(MANY[:500])) == bodies(of(MANY[:500]))
    assert of(MANY[:500]).name != of(MANY[:499]).name


def test_the_head_is_the_root_with_its_name() -> None:
    made = of(MANY[:50])
    ((key, head),) = made.first_pages()
    assert key == keys.head(keys.SEARCH)
    content = json.loads(head)
    assert content.pop("generation") == made.name
    assert content == json.loads(made.root)
    assert made.name[0] == keys.SEARCH_LETTER


def test_buckets_have_about_the_target_size() -> None:
    made = of(MANY)
    sizes = [len(body) for key, body in bodies(made).items() if body.startswith(b"[\n")]
    assert len(sizes) > 3
    assert sum(sizes) / len(sizes) < 2 * buckets.SIZES.target


def test_a_changed_word_changes_three_buckets_at_most() -> None:
    for number in (0, 17, 3_000, 5_999):
        (text,) = MANY[number].texts
        edited = [*MANY]
        edited[number] = replace(MANY[number], texts=(text.replace(text.split()[0], "novelty"),))
        assert 1 <= len(changed(MANY, edited)) <= 3


def test_a_new_market_changes_the_buckets_of_its_words_and_the_vectors() -> None:
    objects = len(bodies(of(MANY)))
    fresh = changed(MANY, [*MANY, Market(("kaneing",), rank=5)])
    assert len(fresh) <= len(contract.SORTS) + 3 < objects


def test_another_place_in_a_sort_changes_its_vectors_alone() -> None:
    moved = [replace(MANY[0], rank=(MANY[0].rank + 4_000) % 7919), *MANY[1:]]
    assert len(changed(MANY, moved)) == len(contract.SORTS) - 1


def test_a_router_reads_a_bounded_text_for_each_word_of_a_query() -> None:
    count = len(MANY)
    made = buckets.make(postings_of(MANY).in_order(), count, search.small())
    lines = [line for bucket in made for line in bucket.body.decode().split("\n")[1:-1]]
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
        assert any(way in bucket.body.decode() for bucket in made), way
    assert [entry for bucket in made for entry in buckets.read(bucket.body)] == found


def test_long_words_count_by_their_first_hundred_letters() -> None:
    postings = Postings()
    for text in ("x" * 150, "x" * 99, "x" * 100 + "y"):
        postings.add(words.of_text(text))
    assert [*postings.in_order()] == [("x" * 99, [1]), ("x" * 100, [0, 2])]
