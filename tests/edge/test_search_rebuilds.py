"""Readers walk with `q` over HTTP while real builds replace what the edge serves, and until a market is taken down."""

import json
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http import HTTPStatus
from itertools import count, cycle, product
from typing import Final, TypeAlias

import pytest

from generator.api import contract, keys
from generator.config.settings import Config
from generator.tree.layouts import LAYOUTS
from tests.support.commands import run
from tests.support.edges.edge_sites import EDGES, EdgeSite, edge_site
from tests.support.edges.servers import connected
from tests.support.edges.serving import MARKETS, in_order
from tests.support.readers import search
from tests.support.readers.search_walks import Query, Walk
from tests.support.sites.builds import AS_OF, build_now, files, make_config
from tests.support.sites.rows import create_database, insert_category, insert_market, market_id
from tests.support.waiting import wait_until

pytestmark = pytest.mark.campaign(short=0)

SETTINGS: Final = {"variant": "extended", "search": "title+description", "categories": "crypto"}
WORDS: Final = ("needle", "Needles", "hay", "war", "warner", "ÉLECTION", "選挙戦", "a", "the", "2026")
QUERIES: Final = tuple(
    replace(query, limit=limit)
    for query, limit in product(
        (
            Query("needle"),
            Query("war", "open", "new"),
            Query("the nee", "archive", "ended"),
            Query("elec", sort="volume", category="crypto"),
            Query("選挙", "open", "activity"),
            Query("a", "closed", category="crypto"),
        ),
        (1, 5, 20, 100),
    )
)
#: The ids that a walk finds, by what it asks for.
Answers: TypeAlias = Mapping[Query, Sequence[str]]
#: The folder of everything that a search may read.
READ: Final = f"{keys.LISTS}/all"
#: Seconds for which an edge may show what was replaced: nginx knows open files for up to two.
LAG: Final = 3.0
READERS: Final = 6
#: Builds, at least and at most, until so many walks have gone on while one was published.
BUILDS: Final = range(4, 40)
CROSSING: Final = 10
#: The market that is taken down, and the words that it alone has, in title and description.
CANARY: Final = 3
RARE: Final = ("qixyzzy", "zyzzyva")


@dataclass
class Rebuilt:
    """An edge, and the database from which its site is built."""

    edge: EdgeSite
    database: sqlite3.Connection
    dice: random.Random
    builds: Iterator[int] = field(default_factory=count)

    def config(self) -> Config:
        place = {"base_url": f"http://127.0.0.1:{self.edge.client.port}", "layout": self.edge.layout}
        return make_config(self.edge.output.parent, **place, **SETTINGS)

    def title(self) -> str:
        return " ".join(self.dice.choices(WORDS, k=4))

    def insert(self, number: int) -> None:
        minute = f"2026-01-{number % 28 + 1:02} 00:{number % 60:02}:00.000000"
        insert_market(self.database, number, question=self.title(), description=self.title(), created_at=minute)
        insert_category(self.database, self.dice.choice(["crypto", "other"]), market_id=market_id(number))

    def edit(self, number: int) -> None:
        """Change which words find a market, its places and its lists."""
        if number != CANARY:
            self.set(number, question=self.title(), description=self.title())
        status, amount = self.dice.choice(["open", "closed"]), self.dice.random() * 1000
        self.set(number, status=status, volume=amount, trader_count=int(amount))
        self.set(number, last_activity_at=f"2026-01-15 00:00:{self.dice.randrange(60):02}.000000")
        category = self.dice.choice(["crypto", "other"])
        self.database.execute(
            "UPDATE market_categories SET category = ? WHERE market_id = ?", [category, market_id(number)]
        )

    def set(self, number: int, **columns: object) -> None:
        for name, value in columns.items():
            self.database.execute(f"UPDATE markets SET {name} = ? WHERE id = ?", [value, market_id(number)])

    def build(self) -> None:
        as_of = AS_OF + timedelta(minutes=next(self.builds))
        self.publish(lambda: build_now(self.config(), as_of, shrink=True))

    def publish(self, change: Callable[[], object]) -> None:
        """Change the folder, and upload what a search may read of it, pointers last."""
        before = files(self.edge.output, READ)
        change()
        after = files(self.edge.output, READ)
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        put, gone = [key for key in changed if key in after], [key for key in changed if key not in after]
        pointers = [key for key in put if keys.is_first_page(key)]
        # What is uploaded together arrives in any order.
        for together in ([key for key in put if key not in pointers], pointers, gone):
            self.edge.upload(together)

    def expected(self) -> Answers:
        """What every walk finds in the database as it is, by a naive search."""
        found = self.database.execute("SELECT lower(id), question, description FROM markets")
        texts = {row[0]: row[1:] for row in found}
        pairs = self.database.execute("SELECT market_id, category FROM market_categories")
        crypto = {market for market, category in pairs if category == "crypto"}
        path = self.edge.output.parent / "markets.db"
        return {
            query: [
                market
                for market in in_order(path, query.status, query.sort)
                if search.is_match(query.q, texts[market]) and (query.category is None or market in crypto)
            ]
            for query in QUERIES
        }


@dataclass(frozen=True)
class Seen:
    """A finished walk: the ids it found, and when it began, had its first page and ended."""

    query: Query
    ids: Sequence[str]
    began: float
    first: float
    ended: float


@pytest.fixture(params=zip(EDGES, cycle(LAYOUTS), strict=False), ids="-".join)
def rebuilt(request: pytest.FixtureRequest) -> Iterator[Rebuilt]:
    """The edge with a first build, each edge in one layout: test_layout_change.py has both of all."""
    with (
        edge_site(*request.param, **SETTINGS) as edge,
        closing(create_database(edge.output.parent / "markets.db")) as database,
    ):
        shutil.rmtree(edge.output / contract.API_VERSION)
        made = Rebuilt(edge, database, random.Random(16))  # noqa: S311 - no secret
        for number in range(1, 41):
            made.insert(number)
        made.set(CANARY, question=f"the war of the needle {RARE[0]}", description=f"a {RARE[1]}", status="open")
        made.build()
        yield made


def read_on(port: int, number: int, stop: threading.Event, seen: list[Seen]) -> None:
    """Walk again and again, a little slower than builds are made."""
    dice = random.Random(number)  # noqa: S311 - no secret
    with connected(port) as client:
        while not stop.is_set():
            walk, began = Walk(dice.choice(QUERIES)), time.monotonic()
            walk.read(client)
            first = time.monotonic()
            while not walk.is_over():
                time.sleep(dice.random() / 4)
                walk.read(client)
            seen.append(Seen(walk.query, walk.ids(), began, first, time.monotonic()))


@dataclass(frozen=True)
class State:
    """What walks find in one build, which was published between these times."""

    answers: Answers
    began: float
    ended: float


def crossing(seen: Sequence[Seen], states: Sequence[State]) -> list[Seen]:
    """The walks that went on while a build was published."""
    return [one for one in seen if any(one.first < state.ended < one.ended for state in states)]


def test_every_walk_is_that_of_the_build_in_which_it_began(rebuilt: Rebuilt) -> None:
    stop, states, seen = threading.Event(), [State(rebuilt.expected(), 0.0, 0.0)], list[Seen]()
    with ThreadPoolExecutor(READERS) as readers:
        walks = [readers.submit(read_on, rebuilt.edge.client.port, number, stop, seen) for number in range(READERS)]
        try:
            for number in range(BUILDS.stop):
                for market in rebuilt.dice.sample(range(1, 41 + number), 15):
                    rebuilt.edit(market)
                rebuilt.insert(41 + number)
                time.sleep(0.5)
                began = time.monotonic()
                rebuilt.build()
                states.append(State(rebuilt.expected(), began, time.monotonic()))
                if number >= BUILDS.start and len(crossing([*seen], states)) > CROSSING:
                    break
        finally:
            stop.set()
        for walk in walks:
            walk.result()
    superseded = [state.ended for state in states[1:]] + [float("inf")]
    for one in seen:
        possible = [
            state.answers[one.query]
            for state, until in zip(states, superseded, strict=True)
            if state.began <= one.first and one.began <= until + LAG
        ]
        assert one.ids in possible, one
    assert len(crossing(seen, states)) > CROSSING, "hardly any walk went on while a build was published"
    assert len({tuple(one.ids) for one in seen}) > CROSSING, "hardly any build was read"


def test_what_is_taken_down_is_in_no_answer_and_walks_with_it_end(rebuilt: Rebuilt) -> None:
    for market in (5, 6):
        rebuilt.edit(market)
    client = rebuilt.edge.client
    begun = [Walk(Query(q, limit=1)) for q in ("needle", "war the")]
    for walk in begun:
        walk.read(client)
    rebuilt.build()
    for q in RARE:
        wait_until(lambda q=q: Walk(Query(q)).finish(client).ids() == [market_id(CANARY)])  # type: ignore[misc]
    output = rebuilt.edge.output
    given = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    place = ["--set", f"output={output}", "--set", f"layout={rebuilt.edge.layout}"]

    def take_down() -> None:
        done = run("takedown", market_id(CANARY), *given, *place, cwd=output.parent)
        assert done.returncode == 0, done.stderr

    rebuilt.publish(take_down)
    for q in (*RARE, *(word[:4] for word in RARE)):
        wait_until(lambda q=q: Walk(Query(q)).finish(client).ids() == [])  # type: ignore[misc]
    for walk in begun:
        answer = client.send("GET", f"{MARKETS}?{walk.target()}")
        assert answer.status == HTTPStatus.BAD_REQUEST
        assert [detail["path"] for detail in json.loads(answer.body)["details"]] == [["cursor"]]
    rebuilt.set(CANARY, approval="rejected")
    for query, found in rebuilt.expected().items():
        walk = Walk(query).finish(client)
        assert walk.ids() == found, query
        assert not any(word.encode() in body for word in RARE for body in walk.bodies)
