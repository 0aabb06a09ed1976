"""The words of the last index are taken if they are what would be made, whatever became of them; else they are made."""

import json
import random
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.api import keys
from generator.markets.market import Market
from generator.search.generation import WordObjects
from generator.site import documents, known_words
from generator.site.known_words import KnownWords
from generator.site.published import PublishedState
from generator.tree import chunks, files
from generator.tree.folder import locked
from tests.builder.test_part_staging import VersionedSite
from tests.support.campaigns import rounds
from tests.support.sites.builds import manifest_in
from tests.support.sites.rows import public_market

VOCABULARY = ("thing", "things", "thin", "a", "ab", "x" * 150, "東京", "京", "été")
CATEGORIES = ("politics", "crypto", "art")
NOTHING = dict[str, bytes]().get


class Site:
    """Markets whose texts, order and categories change at random, and a folder that is damaged at random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - no secret
        self.markets = [self.market(number) for number in range(6)]
        self.offered = ["politics"]
        self.folder, self.former = dict[str, bytes](), list[bytes]()

    def market(self, number: int) -> Market:
        words = tuple({*self.chance.choices(VOCABULARY, k=4)})
        categories = tuple(self.chance.sample(CATEGORIES, self.chance.randrange(3)))
        return public_market(number)._replace(words=words, categories=categories)

    def place(self) -> int:
        return self.chance.randrange(len(self.markets))

    def trade(self) -> None:
        """What no word is made of, and their order within a market."""
        market = self.markets[self.place()]
        self.markets[self.markets.index(market)] = market._replace(
            body=b"{}", status="closed", words=market.words[::-1]
        )

    def add(self) -> None:
        self.markets.append(self.market(len(self.markets)))

    def remove(self) -> None:
        if len(self.markets) > 1:
            del self.markets[self.place()]

    def edit(self) -> None:
        self.markets[self.place()] = self.market(0)

    def swap(self) -> None:
        self.markets.insert(self.place(), self.markets.pop(self.place()))

    def offer(self) -> None:
        self.offered = self.chance.sample((*CATEGORIES, "nobody"), self.chance.randrange(4))

    def alter(self) -> None:
        """Another byte, or another order, in any file; or none of it."""
        name = self.chance.choice(sorted(self.folder))
        body = bytearray(self.folder.pop(name))
        body[self.chance.randrange(len(body))] ^= self.chance.choice((1, 2, 16))
        self.folder |= {name: bytes(body)} if self.chance.random() < 0.7 else {}

    def permute(self) -> None:
        known = json.loads(self.former[-1])
        self.chance.shuffle(known["objects"])
        self.folder[files.WORDS] = json.dumps(known).encode()

    def restore(self) -> None:
        """The file of any earlier build."""
        self.folder[files.WORDS] = self.chance.choice(self.former)

    def build(self) -> tuple[WordObjects, bool]:
        """What is made, and whether it was taken as it was."""
        made, content = known_words.of_markets(self.folder.get, self.markets, self.offered)
        place = [keys.chunk(keys.SEARCH, chunks.name(body)) for body in (*made.buckets, made.table)]
        is_taken = self.folder.get(place[0]) is made.buckets[0]
        self.folder |= {files.WORDS: content, **dict(zip(place, (*made.buckets, made.table), strict=True))}
        self.former.append(content)
        return made, is_taken


@pytest.mark.campaign(short=3)
@pytest.mark.parametrize("seed", range(rounds(3, 40)))
def test_any_chain_of_changes_has_the_words_of_a_build_from_nothing(seed: int) -> None:
    site = Site(seed)
    acts = (
        *(site.trade, site.trade, site.trade, site.add, site.remove, site.edit, site.swap, site.offer),
        *(site.alter, site.permute, site.restore),
    )
    taken = set[tuple[str, bool]]()
    site.build()
    for _ in range(60):
        done = site.chance.choices(acts, k=site.chance.randrange(3))
        for act in done:
            act()
        made, is_taken = site.build()
        assert made == known_words.of_markets(NOTHING, site.markets, site.offered)[0]
        taken |= {("trades" if {*done} <= {site.trade} else "others", is_taken)}
    assert taken == {("trades", True), ("others", True), ("others", False)}


def test_a_build_takes_them_unless_it_is_full(database: sqlite3.Connection, tmp_path: Path) -> None:
    site = VersionedSite(database, tmp_path)
    settings: dict[str, Any] = {"variant": "extended", "search": "title"}
    site.build(**settings)
    with locked(site.output) as folder:
        state = PublishedState(manifest_in(site.output), folder)
        catalog, config = state.catalog(), state.settings()
        oldest_first = catalog.oldest_first()
        offered = documents.offered(catalog, config)
        made, content = known_words.of_markets(folder.read, oldest_first, offered)
        assert content == folder.read(files.WORDS)
        told = replace(made, count=made.count + 1)
        folder.save(
            files.WORDS, KnownWords.of(told, known_words.source_of(oldest_first, offered)).model_dump_json().encode()
        )
    site.trade(0)
    found = [site.build(full=full, **settings).search for full in (False, True)]
    assert [counts and counts.words for counts in found] == [made.count + 1, made.count]
    site.build(**{**settings, "search": "off"})
    assert not (site.output / files.WORDS).exists()
