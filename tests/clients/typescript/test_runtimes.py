"""The TypeScript client in Node, Deno, a browser and a Worker: each reads all that a site has, behind any edge."""

import json
import shutil
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.typescript.changing_site import ChangingSite, changing_site, newest_first
from tests.clients.typescript.programs import NAME, Program, deno
from tests.support.edges import cloudflare
from tests.support.edges.servers import serving
from tests.support.readers.browser import chromium

#: Reads a site in every way; `Client` and `MemoryStore` are in its scope, and `base` is the address.
TOUR: Final = """
const site = new Client(base);
const walked = [];
for await (const market of site.markets({ status: "all", sort: "new", limit: 5 })) walked.push(market.id);
const dumped = [];
for await (const market of site.dump()) dumped.push(market);
const store = new MemoryStore();
const kinds = [];
for await (const change of site.follow(store)) kinds.push(change.kind);
for await (const change of site.follow(store)) kinds.push(change.kind);
const [build, prices, snapshot] = [await site.build(), await site.prices(), await site.snapshot()];
const detail = await site.market(walked[0].toUpperCase());
const again = await site.build();
const missing = await site.market("00000000-0000-4000-8000-000000000000").catch((error) => [error.name, error.status]);
const told = { walked, dumped, kinds, missing, fresh: snapshot.freshMarkets.length, prices: prices.markets.length };
const isSame = build.asOf === again.asOf;
const TOLD = { ...told, market: detail.market, isSame, lines: [...store.copy.lines.values()] };
"""


@pytest.fixture(scope="module", params=["serve", "nginx", "worker"])
def site(request: pytest.FixtureRequest) -> Iterator[ChangingSite]:
    with changing_site(request.param, "chunks", 5) as running:
        yield running


def check(told: dict[str, Any], site: ChangingSite) -> None:
    """What a tour must tell."""
    (state,), (text,) = site.states(), site.dumps.values()
    assert len(state) == 23
    assert told == {
        "walked": newest_first(state), "dumped": [*state.values()], "kinds": ["added"] * 23,
        "missing": ["ApiError", 404], "fresh": 6, "prices": 23, "market": state[told["walked"][0]], "isSame": True,
        "lines": text.decode().split("\n")[:-1],
    }  # fmt: skip


@pytest.mark.campaign(short=1)
def test_node_reads_all_of_it(run: Program, site: ChangingSite, url: str) -> None:
    check(run(f"const base = given.url; {TOUR} return TOLD;", url=url), site)


@pytest.mark.campaign(short=1)
def test_deno_reads_all_of_it(client: Path, site: ChangingSite, url: str, tmp_path: Path) -> None:
    imports = f"import {{ Client, MemoryStore }} from {NAME};"
    told = deno(f"{imports}\nconst base = Deno.args[0];{TOUR}console.log(JSON.stringify(TOLD));", client, tmp_path, url)
    check(json.loads(told), site)


@pytest.mark.campaign(short=0)
def test_a_page_of_another_origin_reads_all_of_it(client: Path, site: ChangingSite, url: str) -> None:
    class Files(SimpleHTTPRequestHandler):
        extensions_map = {".js": "text/javascript", "": "text/html"}  # noqa: RUF012 - as in the library

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(client / "dist"))

        def log_message(self, *_: object) -> None: ...

    script = f"const {{ Client, MemoryStore }} = await import('/index.js'); {TOUR} return TOLD;"
    with serving(Files) as port, chromium() as browser:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        check(page.evaluate(f"async (base) => {{ {script} }}", url), site)


@pytest.mark.campaign(short=1)
def test_a_worker_reads_all_of_it(client: Path, site: ChangingSite, url: str, tmp_path: Path) -> None:
    shutil.copytree(client / "dist", tmp_path / "client")
    (tmp_path / "worker.js").write_text(
        'import { Client, MemoryStore } from "./client/index.js";\n'
        f"async function tour(base) {{ {TOUR} return Response.json(TOLD); }}\n"
        "export default { fetch: (request) => tour(new URL(request.url).searchParams.get('base')) };\n",
        "utf-8",
    )
    configuration = tmp_path / "wrangler.jsonc"
    rules = [{"type": "ESModule", "globs": ["**/*.js"]}]
    settings = {"name": "tour", "main": "worker.js", "compatibility_date": "2026-01-01", "rules": rules}
    configuration.write_text(json.dumps(settings), "utf-8")
    with cloudflare.serving(configuration, tmp_path) as worker:
        answer = worker.ask(f"/?base={url}")
    assert answer.status == 200, answer.body
    check(json.loads(answer.body), site)
