"""A site on a real edge that is rebuilt, taken from and moved between layouts, and what it has published."""

import gzip
import json
import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from click.testing import CliRunner

from generator.api import contract, keys
from generator.cli.main import main
from tests.support import limits
from tests.support.edges.edge_sites import EdgeSite, edge_site
from tests.support.sites.builds import NO_LIMITS, files
from tests.support.sites.rows import create_database, insert_market, market_id

#: In what the site publishes; a proxy puts its own address in its place.
BASE_URL: Final = "https://api.example.org"
#: The sizes of pages that are built.
LIMITS: Final = (5, 100)
MARKETS: Final = 23

#: A market of a dump.
Market = dict[str, Any]


@dataclass
class ChangingSite:
    """The site; `dumps` has all that it has published, by session and serial."""

    edge: EdgeSite
    database: sqlite3.Connection
    draw: random.Random
    layout: str
    now: datetime = datetime(2026, 1, 31, tzinfo=UTC)
    #: The numbers of the markets that are public, and how many there ever were.
    numbers: set[int] = field(default_factory=set)
    inserted: int = 0
    dumps: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def change(self) -> None:
        """Let something happen: the next build, sometimes in the other layout, and sometimes a takedown after it.

        Then a walk that began before expires, and what it goes on in is of another state.
        """
        self.edit()
        if self.draw.random() < 0.2:
            self.layout = "pages" if self.layout == "chunks" else "chunks"
        self.build()
        if self.draw.random() < 0.3:
            self.take_down()

    def edit(self) -> None:
        """Change some markets, and bring a new one."""
        for number in self.draw.sample(sorted(self.numbers), 4):
            self.database.execute(
                "UPDATE markets SET prob = ?, trader_count = trader_count + 1 WHERE id = ?",
                [0.4 + 0.2 * self.draw.random(), market_id(number)],
            )
        self.insert()

    def insert(self) -> None:
        self.inserted += 1
        self.numbers.add(self.inserted)
        created = f"2026-01-{1 + self.draw.randrange(28):02} 00:00:00.000000"
        text = "“Line\u2028separators” stay."
        insert_market(self.database, self.inserted, created_at=created, description=text)

    def build(self) -> None:
        self.now += timedelta(minutes=1)
        self._run("build", "--as-of", self.now.isoformat(), "--accept=shrink")

    def take_down(self) -> None:
        """Withdraw a market, and with it the lists that show it: walks in them expire."""
        number = self.draw.choice(sorted(self.numbers))
        self.numbers.remove(number)
        self._run("takedown", market_id(number), "--yes")

    def _run(self, *arguments: str) -> None:
        folder = self.edge.output.parent
        settings = {
            "source.url": f"sqlite:///{folder / 'markets.db'}", "output": self.edge.output, "base_url": BASE_URL,
            "layout": self.layout, **{name.replace("__", "."): value for name, value in NO_LIMITS.items()},
        }  # fmt: skip
        given = [text for name, value in settings.items() for text in ("--set", f"{name}={value}")]
        before = files(self.edge.output) if self.edge.edge == "worker" else {}
        with limits.only(LIMITS), limits.on_one_processor():
            done = CliRunner().invoke(main, [*arguments, "--config", str(folder / "config.yaml"), *given])
        assert done.exit_code == 0, done.output
        if self.edge.edge == "worker":
            after = files(self.edge.output)
            changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
            self.edge.upload(sorted(changed, key=keys.is_first_page))
        self._note()

    def _note(self) -> None:
        head = json.loads((self.edge.output / keys.head(keys.CHANGES)).read_text("utf-8"))
        file = self.edge.output / keys.chunk(keys.DUMPS, head["dump"]["name"])
        text = gzip.decompress(file.read_bytes())
        assert self.dumps.setdefault((head["session"], head["serial"]), text) == text, "a serial has one state"

    # what readers may find

    def states(self) -> list[dict[str, Market]]:
        """The markets of each state by id, newest first."""
        texts = dict.fromkeys(reversed(self.dumps.values()))
        return [{market["id"]: market for market in map(json.loads, text.split(b"\n")[:-1])} for text in texts]


def newest_first(state: dict[str, Market]) -> list[str]:
    """The ids of a state in the order of the sort `new`."""
    by_id = sorted(state)
    return sorted(by_id, key=lambda one: str(state[one]["createdAt"]), reverse=True)


def is_shown(items: Sequence[Market], state: dict[str, Market]) -> bool:
    """Whether a state has these markets, as lists show them."""
    return all(
        item["id"] in state and all(state[item["id"]][name] == value for name, value in item.items()) for item in items
    )


@contextmanager
def changing_site(edge: str, layout: str, seed: int) -> Iterator[ChangingSite]:
    """Such a site on an edge, built once."""
    with edge_site(edge, layout) as running, closing(create_database(running.output.parent / "markets.db")) as database:
        site = ChangingSite(running, database, random.Random(seed), layout)  # noqa: S311 - nothing here is secret
        for _ in range(MARKETS):
            site.insert()
        shutil.rmtree(running.output / contract.API_VERSION)  # a build takes over no folder that it did not make
        site.build()
        yield site
