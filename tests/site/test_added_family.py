"""What it costs to publish one more kind of object: hello.patch adds `v1/hello.json` as a module and a row.

A copy of the project with the patch builds, publishes, takes down and plans it, and every edge answers it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.support.project import ROOT

PATCH: Final = Path(__file__).with_name("hello.patch")
#: The table of requests on every edge.
TABLES: Final = tuple(
    f"tests/edge/{name}.py::test_every_case_of_the_table" for name in ("test_table", "test_cloudfront")
)


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, with the patch."""
    folder = tmp_path_factory.mktemp("patched") / "project"
    ignored = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "dist", "output", "*.tar.xz")
    shutil.copytree(ROOT, folder, ignore=ignored)
    for name in (".venv", "tests/node/node_modules"):
        (folder / name).symlink_to(ROOT / name)
    subprocess.run(["patch", "--quiet", "-p1", "-i", PATCH], cwd=folder, check=True)
    return folder


def run(patched: Path, *words: str | Path, cwd: Path | None = None) -> str:
    """Run a program of the copy; it must succeed. Returns what it printed."""
    environ = {**os.environ, "PYTHONPATH": str(patched), "TEST_ALL": "", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd or patched, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_another_kind_of_document_is_a_module_and_a_row() -> None:
    assert len(re.findall(r"^diff ", PATCH.read_text("utf-8"), re.MULTILINE)) == 2


def test_it_is_built_and_described(patched: Path, tmp_path: Path) -> None:
    run(patched, "generator", "demo", "--markets", "30", "--set", "layout=chunks", cwd=tmp_path)
    published = tmp_path / "output/v1"
    assert json.loads((published / "hello.json").read_bytes())["openMarkets"] > 0
    assert json.loads((published / "index.json").read_bytes())["hello"].endswith("/v1/hello.json")
    assert "/v1/hello.json: how many markets are open" in (published / "llms.txt").read_text("utf-8")
    assert "v1/hello.json" in (tmp_path / "output/index.html").read_text("utf-8")
    described = json.loads((published / "openapi.json").read_bytes())
    OpenAPIV31SpecValidator(described).validate()
    assert described["paths"]["/v1/hello.json"]["get"]["operationId"] == "getHello"
    assert described["components"]["schemas"]["Hello"]["required"] == ["openMarkets"]


@pytest.mark.campaign(short=0)
def test_it_is_published_planned_and_stays_through_a_takedown(patched: Path, tmp_path: Path) -> None:
    def cli(*words: str) -> str:
        return run(patched, "generator", *words, cwd=tmp_path)

    (tmp_path / "target").mkdir()
    (tmp_path / "config.yaml").write_text("layout: chunks\npublish: {target: ./target}\n", "utf-8")
    cli("demo", "--markets", "30")
    cli("publish", "--accept", "demo")
    published = tmp_path / "target/v1"
    count = json.loads((published / "hello.json").read_bytes())["openMarkets"]
    taken = json.loads((published / "prices.json").read_bytes())["markets"][0]["id"]
    cli("takedown", "--yes", taken)
    assert json.loads((published / "hello.json").read_bytes()) == {"openMarkets": count - 1}
    (published / "hello.json").unlink()
    assert "1 object uploaded" in cli("publish", "--verify", "--accept", "demo")
    assert "hello" not in cli("plan")  # a document costs what its bytes cost, which is in the sums


@pytest.mark.campaign(short=0)
def test_every_edge_answers_it(patched: Path) -> None:
    told = run(patched, "pytest", "-q", "-p", "no:cacheprovider", *TABLES)
    assert re.search(r"^[1-9][0-9]* passed in", told, re.MULTILINE), told
