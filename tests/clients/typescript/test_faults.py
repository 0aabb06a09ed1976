"""Through faults and while the site changes, no market is lost, repeated or wrong without an error that says so.

Clients of both languages walk and follow one site, each through a proxy of its own, behind each edge.
CONTRIBUTING.md shows the full length.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import pytest

from public_markets_client import (
    AsyncClient,
    Client,
    ClientError,
    DuckDbStore,
    NdjsonStore,
    Options,
    SqliteStore,
    Store,
)
from tests.clients.encoding import encoded
from tests.clients.faulting_proxy import FAULTS, Fate, FaultingProxy
from tests.clients.faulting_proxy import running as proxied
from tests.clients.typescript.changing_site import BASE_URL, ChangingSite, changing_site, is_shown, newest_first
from tests.clients.typescript.programs import Program
from tests.support.campaigns import rounds
from tests.support.waiting import PATIENCE_S, wait_until

#: Of all readers together.
READERS: Final = 6
WALKS: Final = -(-int(os.environ.get("CLIENT_WALKS", rounds(24, 180))) // READERS)
BUILDS: Final = -(-int(os.environ.get("CLIENT_BUILDS", rounds(12, 36))) // READERS)
#: A stalled answer costs the timeout of a client; test_clients.py and test_answers.py have one.
INJECTED: Final = tuple(fault for fault in FAULTS if fault != "stall")
OPTIONS: Final = Options(requests=10**9, pause=0)

_NODE: Final = """
const briefly = (milliseconds) => new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, 20)));
const site = new Client(given.url, { wait: briefly, retries: 8 });
const said = async (reading) => {
  const { name, message } = await failure(reading);
  if (name !== undefined && name !== "ApiError") throw new Error(`${name}: ${message}`);
  return name === undefined ? null : message;
};
"""
_WALK: Final = f"""{_NODE}
const items = [];
const failed = await said((async () => {{
  const query = {{ status: "all", sort: "new", limit: 5 }};
  const onExpired = given.isRestarted ? "restart" : "error";
  for await (const market of site.markets(query, {{ onExpired }})) items.push(market);
}})());
return [items, failed, given.isRestarted];
"""
_FOLLOW: Final = f"""{_NODE}
let changes = [];
const failed = await said((async () => {{ changes = await all(site.follow(new FileStore(given.path))); }})());
return [changes, failed];
"""


class Walked(NamedTuple):
    """The items that came, what went wrong, and whether the walk begins again when it expires."""

    items: list[dict[str, Any]]
    failed: str | None
    is_restarted: bool


class OfNode:
    """The client of TypeScript."""

    def __init__(self, run: Program, url: str, path: Path) -> None:
        self._run, self._url, self._path = run, url, path

    def walk(self, *, is_restarted: bool) -> Walked:
        return Walked(*self._run(_WALK, url=self._url, isRestarted=is_restarted))

    def follow(self) -> tuple[list[dict[str, Any]], str | None]:
        """What changed, each with the market before and now, and what went wrong."""
        changes, failed = self._run(_FOLLOW, url=self._url, path=str(self._path))
        return [{name: value for name, value in one.items() if name != "kind"} for one in changes], failed

    def copy(self) -> bytes:
        return self._path.read_bytes() if self._path.exists() else b""

    def position(self) -> tuple[str, int]:
        found = json.loads(self._path.with_name(f"{self._path.name}.position").read_text("utf-8"))
        return found["session"], found["serial"]


class OfPython:
    """The client of Python, at once or in an event loop."""

    def __init__(self, url: str, store: Store, *, is_at_once: bool) -> None:
        self._url, self._store, self._read = url, store, self._at_once if is_at_once else self._in_loop
        self._is_begun = False

    def walk(self, *, is_restarted: bool) -> Walked:
        on_expired = "restart" if is_restarted else "error"
        found, failed = self._read("markets", status="all", sort="new", limit=5, on_expired=on_expired)
        return Walked([*map(encoded, found)], failed, is_restarted)

    def follow(self) -> tuple[list[dict[str, Any]], str | None]:
        found, failed = self._read("follow", self._store)
        self._is_begun |= failed is None
        lines = [{"id": one.id, "before": one.line_before, "market": one.line} for one in found]
        return [
            {name: json.loads(value) if isinstance(value, bytes) else value for name, value in one.items()}
            for one in lines
        ], failed

    def copy(self) -> bytes:
        return b"".join(self._store.lines()) if self._is_begun else b""

    def position(self) -> tuple[str, int]:
        found = self._store.position()
        return found.session, found.serial

    def _at_once(self, name: str, *arguments: Any, **named: Any) -> tuple[list[Any], str | None]:
        found = list[Any]()
        with httpx.Client(timeout=PATIENCE_S, verify=False) as http:  # noqa: S501 - no TLS on this machine
            try:
                found.extend(getattr(Client(self._url, OPTIONS, http), name)(*arguments, **named))
            except ClientError as error:
                return found, str(error)
        return found, None

    def _in_loop(self, name: str, *arguments: Any, **named: Any) -> tuple[list[Any], str | None]:
        async def read() -> str | None:
            async with httpx.AsyncClient(timeout=PATIENCE_S, verify=False) as http:  # noqa: S501 - as above
                try:
                    async for one in getattr(AsyncClient(self._url, OPTIONS, http), name)(*arguments, **named):
                        found.append(one)
                except ClientError as error:
                    return str(error)
            return None

        found = list[Any]()
        return found, asyncio.run(read())


@dataclass(eq=False)
class Campaign:
    """What a reader reads through a proxy while the site changes, and what was counted."""

    site: ChangingSite
    reader: OfNode | OfPython
    proxy: FaultingProxy
    counts: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)

    def walks(self, many: int) -> list[Walked]:
        """Walk all markets so often, one walk after the other."""
        return [self.reader.walk(is_restarted=at % 2 == 0) for at in range(many)]

    def check_walk(self, walked: Walked) -> None:
        """Each market is one that was published, none comes twice, and all of one state come unless an error does."""
        ids = [item["id"] for item in walked.items]
        assert len({*ids}) == len(ids), "a market is repeated"
        states = self.site.states()
        if walked.failed is not None:
            assert any(is_shown(walked.items, state) for state in states) or walked.is_restarted
            self.counts["walks failed"] += 1
        elif any(ids == newest_first(state) and is_shown(walked.items, state) for state in states):
            self.counts["walks whole"] += 1
        else:
            assert walked.is_restarted, "a market is lost or wrong"
            assert all(any(is_shown([item], state) for state in states) for item in walked.items), "a market is wrong"
            assert any(state.keys() <= {*ids} for state in states), "a market is lost"
            self.counts["walks whole"] += 1

    def catch_up(self) -> bool:
        """Whether the copy is what the site published last."""
        self.check_copy(self.copied(), *self.reader.follow())
        return self.reader.copy() == [*self.site.dumps.values()][-1]

    def check_copy(self, before: dict[str, Any], changes: list[dict[str, Any]], failed: str | None) -> bool:
        after = self.copied()
        if failed is not None:
            assert (changes, after) == ([], before), "it changed, and says that it did not"
            return False
        assert self.reader.copy() == self.site.dumps[self.reader.position()]
        gone_or_new = sorted(one for one in {*before, *after} if before.get(one) != after.get(one))
        assert changes == [{"id": one, "before": before.get(one), "market": after.get(one)} for one in gone_or_new]
        return True

    def copied(self) -> dict[str, Any]:
        return {market["id"]: market for market in map(json.loads, self.reader.copy().split(b"\n")[:-1])}


STORES: Final[dict[str, Callable[[Path], Store]]] = {
    "serve": SqliteStore, "nginx": NdjsonStore, "worker": DuckDbStore,
}  # fmt: skip


def play(site: ChangingSite, played: Sequence[Campaign], build: int) -> None:
    """Walk, then follow, with all readers at once, while the site changes; two times of three it changes before."""
    for one in played:
        one.proxy.fate = _fate(build)
    many = WALKS * (build + 1) // BUILDS - WALKS * build // BUILDS
    for one, walks in zip(played, meanwhile(site.change, [partial(one.walks, many) for one in played]), strict=True):
        for walked in walks:
            one.check_walk(walked)
    before = [one.copied() for one in played]
    is_crossed = build % 3 == 2
    if not is_crossed:
        site.change()
    followed = meanwhile(site.change if is_crossed else None, [one.reader.follow for one in played])
    for one, old, (changes, failed) in zip(played, before, followed, strict=True):
        one.counts["followed" if one.check_copy(old, changes, failed) else "not followed"] += 1
        one.injected += one.proxy.fate.injected


def meanwhile(change: Callable[[], None] | None, reads: Sequence[Callable[[], Any]]) -> list[Any]:
    """What is read, all at once, while the site changes."""
    with ThreadPoolExecutor() as threads:
        reading = [threads.submit(read) for read in reads]
        if change:
            change()
        return [one.result() for one in reading]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("edge", STORES)
def test_no_market_is_lost_repeated_or_wrong_without_an_error(edge: str, run: Program, tmp_path: Path) -> None:
    seed = READERS + len(edge)
    with ExitStack() as stack:
        site = stack.enter_context(changing_site(edge, ("pages", "chunks")[seed % 2], seed))
        played = {}
        for language in ("python", "typescript"):
            proxy = FaultingProxy(f"http://127.0.0.1:{site.edge.client.port}", _fate(0), base_url=BASE_URL)
            url, path = stack.enter_context(proxied(proxy)).url, tmp_path / language
            python = partial(OfPython, url, is_at_once=edge != "worker")
            reader = python(store=STORES[edge](path)) if language == "python" else OfNode(run, url, path)
            played[language] = Campaign(site, reader, proxy)
        for build in range(BUILDS):
            play(site, [*played.values()], build)
        for one in played.values():
            one.proxy.fate = Fate((), seed=0, share=0, in_a_row=0)
            wait_until(one.catch_up)
    for language, one in played.items():
        counts = one.counts
        print(language, edge, dict(counts), dict(one.injected))  # noqa: T201 - the figures
        assert counts["walks whole"] + counts["walks failed"] == WALKS < 2 * counts["walks whole"]
        assert counts["followed"] + counts["not followed"] == BUILDS < 2 * counts["followed"]
        assert one.injected.total() > rounds(0, WALKS)
        assert one.injected.keys() == {*INJECTED} or WALKS < 100


def _fate(build: int) -> Fate:
    """Every fifth build, more faults than a client puts up with."""
    is_hopeless = build % 5 == 4
    return Fate(INJECTED, seed=build, share=0.8 if is_hopeless else 0.2, in_a_row=99 if is_hopeless else 3)
