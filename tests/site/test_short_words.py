"""The words of an index without some markets are those of an index that never had them."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from generator.api import keys
from generator.search.generation import FORMAT, WordObjects
from generator.site import known_words
from generator.site.catalog import Catalog
from generator.site.short_words import WordsInPlace
from generator.tree import chunks, generations
from generator.tree.manifest import Current
from tests.support.campaigns import rounds
from tests.support.sites.builds import NOW
from tests.support.sites.rows import FX_MEMBER, public_market

VOCABULARY = tuple(f"{first}{rest}" for first in ("thing", "thin", "a", "x" * 101, "東", "é") for rest in range(300))
CATEGORIES = ("politics", "crypto", "art")


def catalog_of(dice: random.Random, count: int) -> Catalog:
    markets = [
        public_market(number, fx=FX_MEMBER if dice.random() < 0.1 else None)._replace(
            words=tuple({*dice.choices(VOCABULARY, k=9), *dice.choices(VOCABULARY[:8], k=2)}),
            categories=tuple(dice.sample(CATEGORIES, dice.randrange(3))),
            created_at=f"2026-01-{dice.randrange(1, 9):02}T00:00:00.000Z",
        )
        for number in range(count)
    ]
    return Catalog(markets, as_of=NOW, hidden=0)


def made_of(catalog: Catalog, offered: list[str]) -> WordObjects:
    return known_words.of_markets(dict[str, bytes]().get, catalog.oldest_first(), offered)[0]


@pytest.mark.campaign(short=3)
@pytest.mark.parametrize("seed", range(rounds(3, 100)))
def test_any_markets_may_go(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    before = catalog_of(dice, dice.choice((1, 30, 400)))
    after = before.without(set(dice.sample(sorted(before.ids()), dice.choice((1, 1, len(before.markets) // 3)))))
    found = made_of(before, ["politics", "crypto"])
    in_place = WordsInPlace(len(before.listed()), found.buckets, found.table)
    # A category may have ended with a market, and settings may name one that nobody has.
    for offered in (["politics", "crypto"], ["crypto"], ["art", "nobody"]):
        made, content = in_place.of_markets(before, after.oldest_first(), offered)
        assert (replace(made, count=0), content) == (replace(made_of(after, offered), count=0), None)


def test_what_is_missing_or_altered_is_not_taken() -> None:
    found = made_of(catalog_of(random.Random(1), 400), [])  # noqa: S311 - no secret
    names = [chunks.name(body) for body in (*found.buckets, found.table)]
    objects = dict(zip((keys.chunk(keys.SEARCH, name) for name in names), (*found.buckets, found.table), strict=True))
    root = {"format": FORMAT, "count": 400, "buckets": names[:-1], "table": names[-1]}
    current, whole = with_root(root, objects)
    assert WordsInPlace.found(current, whole.get, map) == WordsInPlace(400, found.buckets, found.table)
    for key, body in whole.items():
        for damaged in ({key: body + b" "}, {key: b""}):
            assert WordsInPlace.found(current, (whole | damaged).get, map) is None
        assert WordsInPlace.found(current, {other: whole[other] for other in whole.keys() - {key}}.get, map) is None
    for other in ({**root, "format": FORMAT + 1}, {**root, "table": None}, {"format": FORMAT, "count": 400}, {}):
        other_program, known = with_root(other, objects)
        assert WordsInPlace.found(other_program, known.get, map) is None


def with_root(root: dict[str, Any], objects: dict[str, bytes]) -> tuple[Current, dict[str, bytes]]:
    """A generation with this root, and all that is in place then."""
    index = json.dumps(root).encode()
    current = Current(generation=generations.name_of_index(keys.SEARCH_LETTER, index), count=400, bytes=0, chunks=())
    return current, {**objects, keys.index(keys.SEARCH, current.generation): index}
