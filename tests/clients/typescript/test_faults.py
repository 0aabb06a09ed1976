"""Through faults and while the site changes, no market is lost, repeated or wrong without an error that says so.

Clients of both languages walk one site, each through a proxy of its own, behind each edge.
CONTRIBUTING.md shows the full length.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import httpx
import pytest

from public_markets_client import Client, ClientError, Options
from tests.clients.encoding import encoded
from tests.clients.faulting_proxy import FAULTS, Fate, FaultingProxy
from tests.clients.faulting_proxy import running as proxied
from tests.clients.typescript.changing_site import BASE_URL, ChangingSite, changing_site, is_shown, newest_first
from tests.clients.typescript.programs import Program
from tests.support.campaigns import rounds
from tests.support.waiting import PATIENCE_S

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


class Walked(NamedTuple):
    """The items that came, what went wrong, and whether the walk begins again when it expires."""

    items: list[dict[str, Any]]
    failed: str | None
    is_restarted: bool


#: Walks all markets, which begins again when the walk expires, or fails then.
Reader: TypeAlias = Callable[[bool], Walked]


def of_node(run: Program, url: str, is_restarted: bool) -> Walked:  # noqa: FBT001 - a Reader
    return Walked(*run(_WALK, url=url, isRestarted=is_restarted))


def of_python(url: str, is_restarted: bool) -> Walked:  # noqa: FBT001 - a Reader
    found, on_expired = list[dict[str, Any]](), "restart" if is_restarted else "error"
    with httpx.Client(timeout=PATIENCE_S, verify=False) as http:  # noqa: S501 - no TLS on this machine
        walk: Any = Client(url, OPTIONS, http).markets
        try:
            found.extend(map(encoded, walk(status="all", sort="new", limit=5, on_expired=on_expired)))
        except ClientError as error:
            return Walked(found, str(error), is_restarted)
    return Walked(found, None, is_restarted)


@dataclass(eq=False)
class Campaign:
    """What a reader reads through a proxy while the site changes, and what was counted."""

    site: ChangingSite
    reader: Reader
    proxy: FaultingProxy
    counts: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)

    def walks(self, many: int) -> list[Walked]:
        """Walk all markets so often, one walk after the other."""
        return [self.reader(at % 2 == 0) for at in range(many)]

    def check_walk(self, walked: Walked) -> None:
        """Each market is one that was published, none comes twice, and all of one state come unless an error does."""
        ids = [item["id"] for item in walked.items]
        assert len({*ids}) == len(ids), "a market is repeated"
        states = self.site.states()
        if walked.failed is not None:
            assert any(is_shown(walked.items, state) for state in states) or walked.is_restarted
            self.counts["failed"] += 1
            return
        self.counts["whole"] += 1
        if not any(ids == newest_first(state) and is_shown(walked.items, state) for state in states):
            assert walked.is_restarted, "a market is lost or wrong"
            assert all(any(is_shown([item], state) for state in states) for item in walked.items), "a market is wrong"
            assert any(state.keys() <= {*ids} for state in states), "a market is lost"


def play(site: ChangingSite, played: Sequence[Campaign], build: int) -> None:
    """Walk with all readers at once while the site changes."""
    for one in played:
        one.proxy.fate = _fate(build)
    many = WALKS * (build + 1) // BUILDS - WALKS * build // BUILDS
    with ThreadPoolExecutor() as threads:
        reading = [threads.submit(one.walks, many) for one in played]
        site.change()
    for one, walks in zip(played, reading, strict=True):
        for walked in walks.result():
            one.check_walk(walked)
        one.injected += one.proxy.fate.injected


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("edge", ["serve", "nginx", "worker"])
def test_no_market_is_lost_repeated_or_wrong_without_an_error(edge: str, run: Program) -> None:
    seed = READERS + len(edge)
    with ExitStack() as stack:
        site = stack.enter_context(changing_site(edge, ("pages", "chunks")[seed % 2], seed))
        played = {}
        for language, reader in (("python", of_python), ("typescript", partial(of_node, run))):
            proxy = FaultingProxy(f"http://127.0.0.1:{site.edge.client.port}", _fate(0), base_url=BASE_URL)
            url = stack.enter_context(proxied(proxy)).url
            played[language] = Campaign(site, partial(reader, url), proxy)
        for build in range(BUILDS):
            play(site, [*played.values()], build)
    for language, one in played.items():
        print(language, edge, dict(one.counts), dict(one.injected))  # noqa: T201 - the figures
        assert one.counts.total() == WALKS < 2 * one.counts["whole"]
        assert one.injected.total() > rounds(0, WALKS)
        assert one.injected.keys() == {*INJECTED} or WALKS < 100


def _fate(build: int) -> Fate:
    """Every fifth build, more faults than a client puts up with."""
    is_hopeless = build % 5 == 4
    return Fate(INJECTED, seed=build, share=0.8 if is_hopeless else 0.2, in_a_row=99 if is_hopeless else 3)
