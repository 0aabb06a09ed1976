"""Every edge answers as `verify` expects, and as the contract asks, in both layouts and variants."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final

import pytest

from generator.api import keys
from generator.config.settings import Config
from generator.progress import SILENT
from generator.verify.contract.run import MOST_REQUESTS, verify_contract
from generator.verify.reader import SiteReader
from generator.verify.run import verify
from tests.bench import databases
from tests.conftest import Shared
from tests.support import commands
from tests.support.edges.cases import Case
from tests.support.edges.cloudfront import distribution
from tests.support.edges.edge_sites import EDGES, edge_site
from tests.support.edges.servers import Answer, QuietHandler, serving
from tests.support.readers import lists
from tests.support.sites.builds import AS_OF, EXTENDED, build_now, files, make_config
from tests.support.stores.s3.server import S3Server
from tests.verify.altering import at_port, proxied
from tests.verify.rows import instant

#: What is verified: a layout, other settings, and the edges.
SITES: Final[Mapping[str, tuple[str, dict[str, Any], tuple[str, ...]]]] = {
    "chunks, extended": ("chunks", {**EXTENDED, "search": "title", "feeds__enabled": "true"}, EDGES),
    "chunks, core": ("chunks", {"dumps__parquet": "true"}, ("nginx", "worker")),
    "pages, extended": ("pages", {**EXTENDED}, ("nginx",)),
    "pages, core": ("pages", {}, ("nginx", "serve")),
}
CASES: Final = tuple((kind, name) for kind, (_, _, edges) in SITES.items() for name in edges)
_MARKETS: Final = 40


def require_nothing_wrong(url: str, budget: int = 200) -> None:
    """Verify the site with its dump, and hold it to the contract."""
    said = list[str]()
    assert verify(SiteReader(url, 1e6, said.append), budget, 1, SILENT, patience_s=0).mismatches == []
    found = verify_contract(SiteReader(url, 1e6, said.append, MOST_REQUESTS), (), SILENT)
    assert (found.mismatches, found.left_out) == ([], [])
    assert all("closeTime, unless the page is older" in one.text for one in found.notes), found.notes
    assert found.checks > 80
    assert said == [], "no answer asked to wait"


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_nothing_is_wrong_with_a_site_on_an_edge(demo_folder: Path, shared: Shared, name: str, kind: str) -> None:
    layout, settings, _ = SITES[kind]

    def fill(folder: Path) -> None:
        databases.copy_first(demo_folder / "markets.db", _MARKETS, folder / "markets.db")
        build_now(make_config(folder, layout=layout, **settings))

    made = files(shared(f"verified on edges, {kind}", fill) / "output")
    with edge_site(name, layout, **settings) as edge:
        for key, body in made.items():
            lists.write(edge.output / key, body)
        edge.upload(made)
        require_nothing_wrong(f"http://127.0.0.1:{edge.client.port}")


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(("variant", "layout"), [("core", "chunks"), ("extended", "pages")])
def test_nothing_is_wrong_with_a_site_behind_cloudfront(
    demo_folder: Path, tmp_path: Path, variant: str, layout: str
) -> None:
    databases.copy_first(demo_folder / "markets.db", _MARKETS, tmp_path / "markets.db")
    config = make_config(tmp_path, layout=layout, variant=variant, publish__target="s3://markets-example")
    build_now(config)
    with cloudfront_site(config, tmp_path) as url:
        require_nothing_wrong(url, budget=60)


#: What is done to a site beneath a verification: after how many requests, and at which target.
_EVENTS: Final = ((30, "", "build"), (60, "", "takedown"), (90, "", "build"), (91, "/dumps/fills/", "build"))
#: Fills that no market had before.
_NEW_FILLS: Final = (
    "INSERT INTO fills (id, market_id, amount, shares, price, created_at) "
    "SELECT substr(market_id, 1, 24) || ?, market_id, 1, 2, 0.5, ? FROM fills GROUP BY market_id"
)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(("name", "kind"), [("worker", "chunks, extended"), ("serve", "pages, core")])
def test_a_site_that_is_built_and_taken_from_while_it_is_verified_is_not_accused(
    demo_folder: Path, tmp_path: Path, name: str, kind: str
) -> None:
    layout, given, _ = SITES[kind]
    settings: dict[str, Any] = {**given, "dumps__parquet": "true", "dumps__fills": "true"}
    databases.copy_first(demo_folder / "markets.db", _MARKETS, tmp_path / "markets.db")
    config = make_config(tmp_path, layout=layout, **settings)
    build_now(config, AS_OF)
    published = dict[str, bytes]()

    def publish() -> None:
        """Bring the edge's store to what the folder holds: new objects, then heads, then what goes."""
        made = files(tmp_path / "output")
        changed = [key for key, body in made.items() if published.get(key) != body]
        for key in changed:
            lists.write(edge.output / key, made[key])
        edge.upload(sorted(changed, key=keys.is_first_page))
        gone = published.keys() - made.keys()
        for key in gone:
            (edge.output / key).unlink()
        edge.upload(gone)
        published.clear()
        published.update(made)

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
            taken = min(market["id"] for market in json.loads(published[keys.PRICES])["markets"])
            environ = {"PUBLIC_MARKETS_LAYOUT": layout, "PUBLIC_MARKETS_VARIANT": config.variant}
            done = commands.run("takedown", taken, "--yes", cwd=tmp_path, **environ)
            assert done.returncode == 0, done.stderr
        publish()
        return answer

    with edge_site(name, layout, **settings) as edge, proxied(at_port(edge.client.port)) as proxy:
        publish()
        proxy.alter = alter
        found = verify(SiteReader(proxy.url, 1e6, print), 200, 1, SILENT, patience_s=0)
        assert found.mismatches == []
        assert to_come == []


# ── CloudFront ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def cloudfront_site(config: Config, folder: Path) -> Iterator[str]:
    """Serve the built site of the configuration through its rendered functions; yields the address."""
    lock = Lock()

    class Handler(QuietHandler):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            case = Case(self.command, path, query, 0, None, (), frozenset(), core_only=False)
            with lock:  # its scripts are files of one name
                (answer,) = edge.answers([case], "node", "raw")
            etag, asked = answer.headers.get("etag"), self.headers.get("If-None-Match", "")
            # CloudFront itself confirms copies.
            is_known = etag and etag in {one.strip().removeprefix("W/") for one in asked.split(",")}
            self.reply(replace(answer, status=304) if is_known else answer)

    with ExitStack() as stack:
        store = stack.enter_context(S3Server()) if config.layout == "chunks" else None
        edge = distribution(config, config.output, folder, store)
        port = stack.enter_context(serving(Handler))
        yield f"http://127.0.0.1:{port}"
