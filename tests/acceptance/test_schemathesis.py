"""Schemathesis fuzzes the running API with the published OpenAPI document and finds no violation."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from generator.api import keys
from tests.support import limits
from tests.support.builds import VARIANTS, build_now, make_config
from tests.support.programs import require
from tests.support.servers import folder_for_anybody, free_port, nginx
from tests.support.serving import UNLIMITED, served

#: Only the server can tell whether a cursor of the right form was ever minted, so a schema-valid one may be refused.
CONFIGURATION = """
[[operations]]
include-operation-id = "listMarkets"
[operations.checks]
positive_data_acceptance.expected-statuses = ["2xx", "400"]
"""
#: Seconds for all phases together, and how many requests they make at least.
BUDGET = 20
REQUESTS = 200


#: What is between the router and the fuzzer is the same in both variants, so one server is enough for the second; and
#: in the layout `chunks` there is more of it.
SERVED = (("serve", "core", "chunks"), ("nginx", "core", "chunks"), ("serve", "extended", "pages"))


@pytest.fixture(params=SERVED, ids="-".join)
def address(request: pytest.FixtureRequest, demo_folder: Path) -> Iterator[str]:
    """Where the API is served, without a noticeable rate limit."""
    with ExitStack() as stack:
        folder = stack.enter_context(folder_for_anybody())
        (folder / "markets.db").write_bytes((demo_folder / "markets.db").read_bytes())
        port = free_port()
        server, variant, layout = request.param
        url = f"http://127.0.0.1:{port}"
        settings = {"layout": layout, **VARIANTS[variant]}
        with limits.every():
            build_now(make_config(folder, base_url=url, rate_limit__requests=1_000_000, **settings))
        if server == "nginx":
            stack.enter_context(nginx(folder / "output", port))
        else:
            port = stack.enter_context(served(folder, *UNLIMITED)).port
        yield f"http://127.0.0.1:{port}"


@pytest.mark.campaign(short=0)
def test_schemathesis_finds_nothing(address: str, tmp_path: Path) -> None:
    program = require("schemathesis", Path(sys.executable).parent, reason="the API is not fuzzed")
    options = ["--url", address, "--max-time", str(BUDGET), "--seed", "1", "--checks", "all", "--continue-on-failure"]
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(CONFIGURATION)
    result = subprocess.run(
        [
            program,
            "--config-file",
            configuration,
            "run",
            f"{address}/{keys.OPENAPI}",
            *options,
            "--no-color",
            "--generation-database",
            "none",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * BUDGET,
    )
    generated = re.search(r"([0-9,]+) generated", result.stdout)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    assert generated, result.stdout[-2000:]
    assert int(generated[1].replace(",", "")) >= REQUESTS
