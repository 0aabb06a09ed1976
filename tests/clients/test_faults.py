"""Walks and followers through a proxy that injects faults, while the site is built, taken from and moved.

No market is lost, repeated or wrong without an error that says so. The full length, 1,000 walks and 100 builds that are
followed, takes some minutes:

    CLIENT_WALKS=1000 CLIENT_BUILDS=100 TEST_ALL=1 .venv/bin/python -m pytest -s tests/clients/test_faults.py
"""

import asyncio
import gzip
import hashlib
import itertools
import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, get_args

import httpx
import pytest

from generator.api import keys
from public_markets_client import (
    AsyncClient,
    Client,
    ClientError,
    DuckDbStore,
    Market,
    NdjsonStore,
    Options,
    SqliteStore,
    Store,
)
from public_markets_client.models import Sort
from tests.clients.encoding import encoded
from tests.clients.faulting_proxy import FAULTS, Fate, FaultingProxy, running
from tests.downloads import states
from tests.support import limits
from tests.support.campaigns import rounds
from tests.support.commands import run
from tests.support.edges.edge_sites import EdgeSite, edge_site
from tests.support.sites.builds import AS_OF, NO_LIMITS, build_now, files, make_config
from tests.support.sites.rows import create_database, insert_market, market_id
from tests.support.waiting import PATIENCE_S, wait_until

#: Of each of the three edges.
WALKS: Final = -(-int(os.environ.get("CLIENT_WALKS", rounds(12, 60))) // 3)
BUILDS: Final = -(-int(os.environ.get("CLIENT_BUILDS", rounds(6, 15))) // 3)
#: A stalled answer costs the timeout of a client; test_clients.py has one.
INJECTED: Final = tuple(fault for fault in FAULTS if fault != "stall")
#: Pages have this many markets at most; a list has several.
PAGE: Final = 10
STORES: Final[dict[str, Callable[[Path], Store]]] = {
    "serve": SqliteStore, "nginx": NdjsonStore, "worker": DuckDbStore,
}  # fmt: skip
BASE_URL: Final = "http://public-markets.example"


@dataclass
class ChangingSite:
    """A site that is built anew, and all that it has published: the items of each list, and the text of each dump."""

    edge: EdgeSite
    database: sqlite3.Connection
    draw: random.Random
    now: datetime = AS_OF
    layout: str = "chunks"
    known: int = 0
    versions: set[str] = field(default_factory=set)
    listed: list[set[str]] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)

    def add(self, many: int) -> None:
        for _ in range(many):
            self.known += 1
            insert_market(self.database, self.known, volume=self.draw.random(), trader_count=self.draw.randint(0, 9))

    def change(self) -> None:
        """Something happens to the site, and it is built again."""
        events = (self.add_or_edit, self.hide, self.take_down, self.move, self.wait)
        self.draw.choices(events, [6, 2, 1, 1, 1])[0]()
        self.publish()

    def add_or_edit(self) -> None:
        self.add(self.draw.randint(0, 4))
        for number in self.draw.sample(range(1, self.known), 9):
            self.database.execute(
                "UPDATE markets SET volume = ?, trader_count = ? WHERE id = ?",
                [self.draw.random(), self.draw.randint(0, 9), market_id(number)],
            )

    def hide(self) -> None:
        self.database.execute(
            "UPDATE markets SET approval = 'pending' WHERE id = ?", [market_id(self.draw.randint(1, self.known))]
        )

    def take_down(self) -> None:
        number = self.draw.choice([json.loads(line)["id"] for line in self.texts[-1].splitlines()])
        given = [f"{name.replace('__', '.')}={value}" for name, value in self._settings().items()]
        overrides = [part for one in given for part in ("--set", one)]
        with self._uploading():
            done = run("takedown", number, *overrides, cwd=self.edge.output.parent)
        assert done.returncode == 0, done.stderr
        self._remember()

    def move(self) -> None:
        self.layout = "pages" if self.layout == "chunks" else "chunks"

    def wait(self) -> None:
        """Until lists that are replaced are gone."""
        self.now += timedelta(hours=7)

    def publish(self) -> None:
        self.now += timedelta(minutes=1)
        with self._uploading(), limits.only((PAGE, 100)):
            build_now(make_config(self.edge.output.parent, **self._settings()), self.now, shrink=True)
        self._remember()

    def _settings(self) -> dict[str, Any]:
        place = {"source__url": f"sqlite:///{self.edge.output.parent / 'markets.db'}", "output": self.edge.output}
        return {**place, "base_url": BASE_URL, "layout": self.layout, **NO_LIMITS}

    @contextmanager
    def _uploading(self) -> Iterator[None]:
        """Copy what changes meanwhile to a store that is not the folder, if the edge has one: what leads in, last."""
        before = files(self.edge.output)
        yield
        after = files(self.edge.output)
        changed = [key for key, body in after.items() if before.get(key) != body]
        leads = ("head.json", f"/{PAGE}.json", "/100.json")
        self.edge.upload(sorted(changed, key=lambda key: (key.endswith(leads), key.endswith("head.json"))))
        self.edge.upload(sorted(before.keys() - after.keys()))

    def _remember(self) -> None:
        head = json.loads((self.edge.output / keys.head(keys.CHANGES)).read_bytes())
        text = gzip.decompress((self.edge.output / keys.chunk(keys.DUMPS, head["dump"]["name"])).read_bytes())
        assert hashlib.sha256(text).hexdigest() == head["state"]
        items = [json.loads(line) for line in text.splitlines()]
        self.versions |= {_version(item) for item in items}
        self.listed.append({item["id"] for item in items})
        self.texts.append(text)


def _version(item: dict[str, Any]) -> str:
    """What lists show of a market, as far as it changes here."""
    return json.dumps([item[name] for name in ("id", "question", "prob", "volume", "traderCount", "status")])


def _says_so(error: ClientError) -> bool:
    """Whether an error is none: never."""
    assert error.url.startswith("http://")
    assert error.message
    return False


class Walk:
    """A reader of one list, and what it must find."""

    def __init__(self, site: ChangingSite, client: Any) -> None:
        self.site, self.begun, self.found = site, len(site.listed) - 1, list[Market]()
        self._rest = client.markets(status="all", sort=site.draw.choice(get_args(Sort)), page_size=PAGE)

    def read(self, most: int | None = None) -> bool:
        """Read so many markets, or all that are left, and look at them; whether it went without an error."""
        try:
            self.found += itertools.islice(self._rest, most)
        except ClientError as error:
            return _says_so(error)
        ids = [market.id for market in self.found]
        assert len(ids) == len({*ids}), "a market is repeated"
        assert {_version(encoded(market)) for market in self.found} <= self.site.versions, "a market is wrong"
        # An edge may show for a second what it showed before.
        throughout = set.intersection(*self.site.listed[max(0, self.begun - 1) :])
        assert most or throughout <= {*ids}, "a market is lost"
        return True


class Follower:
    """A copy that follows the site, and what it must be."""

    def __init__(self, site: ChangingSite, store: Store, client: Any) -> None:
        self.site, self.store, self.client = site, store, client
        self.lines = dict[str, bytes]()

    def follow(self) -> bool:
        """Whether it went without an error; if not, the copy is as it was, or as one that was published."""
        begun, told = len(self.site.texts) - 1, list[Any]()
        try:
            told += self.client.follow(self.store)
        except ClientError as error:
            assert (told, self._text()) == ([], states.text(self.lines)), "it changed, and says that it did not"
            return _says_so(error)
        for change in told:
            assert change.line_before == (self.lines[change.id] + b"\n" if change.id in self.lines else None)
            self.lines.pop(change.id, None)
            if change.line:
                self.lines[change.id] = change.line[:-1]
        self.lines = dict(sorted(self.lines.items()))
        text = self._text()
        assert text == states.text(self.lines), "what was told is not what changed"
        assert text in self.site.texts[max(0, begun - 1) :], "the copy is not what is published"
        return True

    def _text(self) -> bytes:
        return b"".join(self.store.lines()) if self.lines else b""


class InLoop:
    """An asynchronous client, a step at a time."""

    def __init__(self, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client, self._loop = client, loop

    def markets(self, **asked: Any) -> Iterator[Market]:
        return self._steps(self._client.markets(**asked))

    def follow(self, store: Store) -> Iterator[Any]:
        return self._steps(self._client.follow(store))

    def _steps(self, found: AsyncIterator[Any]) -> Iterator[Any]:
        while (step := self._loop.run_until_complete(anext(found, None))) is not None:
            yield step


@contextmanager
def reader(name: str, url: str) -> Iterator[Any]:
    """A client for the proxy; of the Worker, the asynchronous one."""
    options = Options(requests=10**9, pause=0)
    if name != "worker":
        with httpx.Client(timeout=PATIENCE_S, verify=False) as http:  # noqa: S501 - no TLS on this machine
            yield Client(url, options, http)
        return
    with asyncio.Runner() as runner:
        waiting = httpx.AsyncClient(timeout=PATIENCE_S, verify=False)  # noqa: S501 - as above
        yield InLoop(AsyncClient(url, options, waiting), runner.get_loop())
        runner.run(waiting.aclose())


@contextmanager
def changing(edge: EdgeSite, seed: int) -> Iterator[ChangingSite]:
    shutil.rmtree(edge.output / "v1")  # nothing was built there
    with closing(create_database(edge.output.parent / "markets.db")) as database:
        site = ChangingSite(edge, database, random.Random(seed))  # noqa: S311 - equal seeds, equal sites
        site.add(6 * PAGE)
        site.publish()
        yield site


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("name", STORES)
def test_nothing_is_lost_repeated_or_wrong_without_an_error(name: str, tmp_path: Path) -> None:
    counts, injected = Counter[str](), Counter[str]()
    with (
        edge_site(name, "chunks") as edge,
        changing(edge, seed=7) as site,
        running(FaultingProxy(f"http://127.0.0.1:{edge.client.port}", _fate(0), base_url=BASE_URL)) as proxy,
        reader(name, proxy.url) as client,
    ):
        follower = Follower(site, STORES[name](tmp_path / "copy"), client)
        for build in range(BUILDS):
            proxy.fate = _fate(build)
            walks = [Walk(site, client) for _ in range(WALKS * (build + 1) // BUILDS - WALKS * build // BUILDS)]
            begun = [walk for walk in walks if walk.read(site.draw.randint(1, 4 * PAGE))]
            site.change()
            whole = sum(walk.read() for walk in begun)
            counts += Counter(walks=len(walks), whole=whole, failed=len(walks) - whole)
            counts["followed" if follower.follow() else "not followed"] += 1
            injected += proxy.fate.injected
        proxy.fate = Fate((), seed=0, share=0, in_a_row=0)
        wait_until(lambda: follower.follow() and states.text(follower.lines) == site.texts[-1])
    print(name, dict(counts), dict(injected))  # noqa: T201 - the figures
    assert counts["walks"] == WALKS
    assert counts["followed"] + counts["not followed"] == BUILDS
    assert counts["whole"] > WALKS / 2
    assert counts["followed"] > BUILDS / 2
    assert sum(injected.values()) > WALKS
    assert injected.keys() == {*INJECTED} or WALKS < 100


def _fate(build: int) -> Fate:
    """Every fifth build, more faults than a client puts up with."""
    is_hopeless = build % 5 == 4
    return Fate(INJECTED, seed=build, share=0.8 if is_hopeless else 0.2, in_a_row=99 if is_hopeless else 3)
