"""Every edge answers as `verify` expects, and as the contract asks, in both layouts and variants."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.progress import SILENT
from generator.verify.contract.run import MOST_REQUESTS, verify_contract
from generator.verify.reader import SiteReader
from generator.verify.run import verify
from tests.bench import databases
from tests.conftest import Shared
from tests.questions import random_sites
from tests.support import commands
from tests.support.edges.edge_sites import EDGES, edge_site
from tests.support.edges.servers import Answer
from tests.support.readers import lists
from tests.support.sites.builds import AS_OF, EXTENDED, NO_LIMITS, build_now, files, make_config
from tests.verify.altering import in_process, proxied
from tests.verify.rows import instant

#: What is verified: a layout, other settings, and the edges.
SITES: Final[Mapping[str, tuple[str, dict[str, Any], tuple[str, ...]]]] = {
    "chunks, extended": ("chunks", {**EXTENDED, "search": "title", "feeds__enabled": "true"}, EDGES),
    "chunks, core": ("chunks", {"dumps__parquet": "true"}, ("nginx", "worker")),
    "pages, extended": ("pages", {**EXTENDED}, ("nginx",)),
    "pages, core": ("pages", {}, ("nginx", "serve")),
    "questions": ("chunks", {"variant": "extended", "categories": "a,weather", "questions__enabled": "true"}, EDGES),
}
CASES: Final = tuple((kind, name) for kind, (_, _, edges) in SITES.items() for name in edges)
_MARKETS: Final = 40


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_nothing_is_wrong_with_a_site_on_an_edge(demo_folder: Path, shared: Shared, name: str, kind: str) -> None:
    layout, settings, _ = SITES[kind]

    def fill(folder: Path) -> None:
        if kind == "questions":
            random_sites.random_site(folder / "markets.db", seed=0)
        else:
            databases.copy_first(demo_folder / "markets.db", _MARKETS, folder / "markets.db")
        build_now(make_config(folder, layout=layout, **settings))

    made = files(shared(f"verified on edges, {kind}", fill) / "output")
    with edge_site(name, layout, **settings) as edge:
        for key, body in made.items():
            lists.write(edge.output / key, body)
        edge.upload(made)
        url, said = f"http://127.0.0.1:{edge.client.port}", list[str]()
        assert verify(SiteReader(url, 1e6, said.append), 200, 1, SILENT, patience_s=0).mismatches == []
        found = verify_contract(SiteReader(url, 1e6, said.append, MOST_REQUESTS), (), SILENT)
    assert (found.mismatches, found.left_out) == ([], [])
    assert all("closeTime, unless the page is older" in one.text for one in found.notes), found.notes
    assert found.checks > 80
    assert said == [], "no answer asked to wait"


#: What is done to a site beneath a verification: after how many requests, and at which target.
_EVENTS: Final = ((30, "", "build"), (60, "", "takedown"), (90, "", "build"), (91, "/dumps/fills/", "build"))
#: Fills that no market had before.
_NEW_FILLS: Final = (
    "INSERT INTO fills (id, market_id, amount, shares, price, created_at) "
    "SELECT substr(market_id, 1, 24) || ?, market_id, 1, 2, 0.5, ? FROM fills GROUP BY market_id"
)


@pytest.mark.campaign(short=0)
def test_a_site_that_is_built_and_taken_from_while_it_is_verified_is_not_accused(
    demo_folder: Path, tmp_path: Path
) -> None:
    databases.copy_first(demo_folder / "markets.db", _MARKETS, tmp_path / "markets.db")
    config = make_config(tmp_path, dumps__parquet="true", dumps__fills="true", **NO_LIMITS)
    build_now(config, AS_OF)
    to_come = [*_EVENTS]

    def alter(target: str, answer: Answer) -> Answer:
        number, part, event = to_come[0] if to_come else (0, "", "")
        if not event or len(proxy.asked) < number or part not in target:
            return answer
        to_come.pop(0)
        if event == "build":
            moment = AS_OF + timedelta(minutes=number)
            with closing(sqlite3.connect(tmp_path / "markets.db")) as connection:
                connection.execute("UPDATE markets SET trader_count = trader_count + ?", (number,))
                connection.execute(_NEW_FILLS, (f"{number:012}", instant(moment - timedelta(seconds=1))))
                connection.commit()
            build_now(config, moment)
        else:
            prices = json.loads((config.output / keys.PRICES).read_bytes())
            taken = min(market["id"] for market in prices["markets"])
            done = commands.run("takedown", taken, "--yes", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        return answer

    with proxied(in_process(config)) as proxy:
        proxy.alter = alter
        found = verify(SiteReader(proxy.url, 1e6, print), 200, 1, SILENT, patience_s=0)
    assert found.mismatches == []
    assert to_come == []
