"""Schemathesis fuzzes the running API with the published OpenAPI document and finds no violation."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from generator.api import keys
from generator.api.contract import Variant
from generator.demo.database import seed
from tests.support.edges.servers import folder_for_anybody, free_port, nginx
from tests.support.edges.serving import UNLIMITED, served
from tests.support.programs import require
from tests.support.sites.builds import AS_OF, NO_LIMITS, VARIANTS, build_now, make_config
from tests.support.waiting import PATIENCE_S

#: Only the server can tell whether a cursor of the right form was ever minted, so a schema-valid one may be refused.
CONFIGURATION = """
[[operations]]
include-operation-id = "listMarkets"
[operations.checks]
positive_data_acceptance.expected-statuses = ["2xx", "400"]
"""
#: How many examples a phase tries, of the whole document or of searches alone, and how many requests that makes at
#: least. No time is given, as a slow machine would make fewer.
EXAMPLES, OF_SEARCHES = 50, 120
REQUESTS = 200
#: How many searches are answered at least, and how many refused.
SEARCHES = 20


#: What is between the router and the fuzzer is the same in both variants, so one server is enough for `core`, in the
#: layout `chunks`, where there is more of it. Only `extended` has searches.
SERVED = (("serve", "core", "chunks"), ("nginx", "extended", "chunks"), ("serve", "extended", "pages"))


@pytest.fixture(scope="module", params=SERVED, ids="-".join)
def api(request: pytest.FixtureRequest) -> Iterator[tuple[str, Variant]]:
    """Where the API is served, without a noticeable rate limit, and its variant."""
    with ExitStack() as stack:
        folder = stack.enter_context(folder_for_anybody())
        seed(folder / "markets.db", as_of=AS_OF, markets=120)
        port = free_port()
        server, variant, layout = request.param
        url = f"http://127.0.0.1:{port}"
        settings = {"layout": layout, **VARIANTS[variant]}
        build_now(make_config(folder, base_url=url, **NO_LIMITS, **settings))
        if server == "nginx":
            stack.enter_context(nginx(folder / "output", port))
        else:
            port = stack.enter_context(served(folder, *UNLIMITED)).port
        yield f"http://127.0.0.1:{port}", variant


@pytest.mark.campaign(short=0)
def test_schemathesis_finds_nothing(api: tuple[str, Variant], tmp_path: Path) -> None:
    fuzz(f"{api[0]}/{keys.OPENAPI}", api[0], tmp_path)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("api", [one for one in SERVED if one[1] == "extended"], indirect=True, ids="-".join)
def test_schemathesis_finds_nothing_in_searches(api: tuple[str, Variant], tmp_path: Path) -> None:
    """Without the parameters whose made-up values are never those of a list, so that most searches are answered."""
    document = json.loads(urlopen(f"{api[0]}/{keys.OPENAPI}").read())  # noqa: S310 - on this machine
    (path,) = (path for path, item in document["paths"].items() if item["get"]["operationId"] == "listMarkets")
    operation = document["paths"][path]["get"]
    operation["parameters"] = [one for one in operation["parameters"] if one["name"] not in {"category", "cursor"}]
    for response in operation["responses"].values():
        response.pop("links", None)
    (tmp_path / "searches.json").write_text(json.dumps({**document, "paths": {path: {"get": operation}}}))
    report = ("--report", "har", "--report-har-path", "requests.har")
    fuzz(tmp_path / "searches.json", api[0], tmp_path, *report, examples=OF_SEARCHES)
    statuses = [
        entry["response"]["status"]
        for entry in json.loads((tmp_path / "requests.har").read_text("utf-8"))["log"]["entries"]
        if "q" in parse_qs(urlsplit(entry["request"]["url"]).query)
    ]
    assert min(statuses.count(status) for status in (HTTPStatus.OK, HTTPStatus.BAD_REQUEST)) >= SEARCHES


def fuzz(document: str | Path, address: str, folder: Path, *more: str, examples: int = EXAMPLES) -> None:
    """Ask as the document describes."""
    program = require("schemathesis", Path(sys.executable).parent, reason="the API is not fuzzed")
    options = ["--url", address, "--max-examples", str(examples), "--seed", "1", "--checks", "all"]
    options += ["--continue-on-failure", "--no-color", "--generation-database", "none", *more]
    configuration = folder / "schemathesis.toml"
    configuration.write_text(CONFIGURATION)
    result = subprocess.run(
        [program, "--config-file", configuration, "run", document, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * PATIENCE_S,
    )
    generated = re.search(r"([0-9,]+) generated", result.stdout)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    assert generated, result.stdout[-2000:]
    assert int(generated[1].replace(",", "")) >= REQUESTS
