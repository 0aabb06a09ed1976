"""Walks and followed builds through a proxy that injects faults, while the site changes.

    python -m tests.clients.typescript.fault_campaign CLIENT --edge nginx --walks 1000 --builds 100 --seed 7

CLIENT is the folder of the built client. Prints what it counted; fails at the first walk or copy that is wrong without
an error that says so.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final

from tests.clients.faulting_proxy import FAULTS, Fate, FaultingProxy
from tests.clients.faulting_proxy import running as proxied
from tests.clients.typescript.changing_site import BASE_URL, ChangingSite, changing_site, is_shown, newest_first
from tests.clients.typescript.programs import Program, running
from tests.support.edges.edge_sites import EDGES

#: All but the answer that never ends, which nobody notices but by a clock; test_answers.py has it.
INJECTED: Final = tuple(fault for fault in FAULTS if fault != "stall")
#: Walks at a time, during which the site changes once.
BATCH: Final = 20

_CLIENT: Final = """
const briefly = (milliseconds) => new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, 20)));
const site = new Client(given.url, { wait: briefly, retries: 8 });
"""
_WALKS: Final = f"""{_CLIENT}
async function walk(number) {{
  const onExpired = number % 2 === 0 ? "restart" : "throw";
  const items = [];
  const failed = await failure((async () => {{
    const query = {{ status: "all", sort: "new", limit: 5 }};
    for await (const market of site.markets(query, {{ onExpired }})) items.push(market);
  }})());
  return {{ onExpired, items, failed: failed.name === undefined ? null : failed }};
}}
return Promise.all(Array.from({{ length: given.count }}, (_, number) => walk(number)));
"""
_FOLLOW: Final = f"""{_CLIENT}
let changes = null;
const failed = await failure((async () => {{ changes = await all(site.follow(new FileStore(given.path))); }})());
return {{ changes, failed }};
"""


@dataclass
class Campaign:
    """What is read, and what was counted."""

    site: ChangingSite
    run: Program
    url: str
    copy: Path
    counts: Counter[str] = field(default_factory=Counter)

    def walk(self, count: int) -> None:
        """Walk all markets so often at the same time, while the site changes."""
        for walked in self._meanwhile(_WALKS, url=self.url, count=count):
            self._check_walk(walked["items"], walked["failed"], is_restarted=walked["onExpired"] == "restart")

    def follow(self, *, is_crossed: bool) -> None:
        """Let the site change, and bring the copy up to date after that or meanwhile."""
        before = self._copied()
        if is_crossed:
            done = self._meanwhile(_FOLLOW, url=self.url, path=str(self.copy))
        else:
            self.site.change()
            done = self.run(_FOLLOW, url=self.url, path=str(self.copy))
        if done["changes"] is None:
            assert done["failed"]["name"] == "ApiError", done["failed"]
            assert self._copied() == before
            self.counts["follows that said why they failed"] += 1
            return
        position = json.loads(self.copy.with_name(f"{self.copy.name}.position").read_text("utf-8"))
        assert self.copy.read_bytes() == self.site.dumps[position["session"], position["serial"]]
        after = self._copied()
        expected = [
            {"id": one, "before": before.get(one), "market": after.get(one)}
            for one in sorted({*before, *after})
            if before.get(one) != after.get(one)
        ]
        assert [{name: value for name, value in one.items() if name != "kind"} for one in done["changes"]] == expected
        self.counts["builds followed"] += 1

    def _meanwhile(self, script: str, **given: Any) -> Any:
        """The value of a script during which the site changes."""
        self.run.begin(script, **given)
        found: list[Any] = []
        reading = Thread(target=lambda: found.append(self.run.end()))
        reading.start()
        try:
            self.site.change()
        finally:
            reading.join()
        return found[0]

    def _check_walk(self, items: list[dict[str, Any]], failed: dict[str, Any] | None, *, is_restarted: bool) -> None:
        """Each market is one that was published, none comes twice, and all of one state come unless an error does."""
        ids = [item["id"] for item in items]
        assert len({*ids}) == len(ids), "a market is repeated"
        states = self.site.states()
        if failed is not None:
            assert failed["name"] == "ApiError", failed
            assert any(is_shown(items, state) for state in states) or is_restarted
            self.counts["walks that said why they failed"] += 1
        elif any(ids == newest_first(state) and is_shown(items, state) for state in states):
            self.counts["walks of one state"] += 1
        else:
            assert is_restarted, "a market is lost or wrong"
            assert all(any(is_shown([item], state) for state in states) for item in items), "a market is wrong"
            assert any(state.keys() <= {*ids} for state in states), "a market is lost"
            self.counts["walks that began again"] += 1

    def _copied(self) -> dict[str, Any]:
        text = self.copy.read_bytes() if self.copy.exists() else b""
        return {market["id"]: market for market in map(json.loads, text.split(b"\n")[:-1])}


@contextmanager
def campaign(client: Path, edge: str, seed: int, copy: Path) -> Iterator[Campaign]:
    """A campaign on an edge; at its end its faults were counted."""
    fate = Fate(INJECTED, seed=seed, share=0.2, in_a_row=3)
    with (
        changing_site(edge, ("pages", "chunks")[seed % 2], seed) as site,
        proxied(FaultingProxy(f"http://127.0.0.1:{site.edge.client.port}", fate, base_url=BASE_URL)) as proxy,
        running(client) as run,
    ):
        played = Campaign(site, run, proxy.url, copy)
        yield played
        played.counts.update({f"fault {name}": count for name, count in fate.injected.items()})
        played.counts["requests"] = fate.requests


def play(client: Path, edge: str, seed: int, *, walks: int, builds: int) -> Counter[str]:
    """Play a campaign; returns what was counted."""
    with TemporaryDirectory() as folder, campaign(client, edge, seed, Path(folder) / "markets.ndjson") as played:
        for begun in range(0, walks, BATCH):
            played.walk(min(BATCH, walks - begun))
        for number in range(builds):
            played.follow(is_crossed=number % 3 == 2)
    return played.counts


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("client", type=Path, help="the folder of the built client")
    parser.add_argument("--edge", choices=EDGES, default="serve")
    parser.add_argument("--walks", type=int, default=1_000)
    parser.add_argument("--builds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    counts = play(options.client.resolve(), options.edge, options.seed, walks=options.walks, builds=options.builds)
    print(json.dumps(counts, indent=1))  # noqa: T201 - what it is run for


if __name__ == "__main__":
    _main()
