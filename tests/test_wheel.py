"""The wheel: complete, and it works in a separate environment, outside the source tree.

The environment finds the dependencies of the tests through a .pth file, which saves installing them.
"""

import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final
from urllib.request import urlopen
from zipfile import ZipFile

import pytest

from tests.support.programs import require
from tests.support.project import ROOT
from tests.support.readers.pages import PAGES, prose, section, typed

PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
#: The build backend is in .venv; where it is not, pip fetches it.
ISOLATION: Final = ("--no-build-isolation",) if importlib.util.find_spec("hatchling") else ()
#: An environment without paths to the source tree.
DEMO: Final = "--accept=demo"
ENVIRON: Final = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def done(*command: str | Path, cwd: Path) -> str:
    """Run a program that must succeed and return its stdout."""
    ran = subprocess.run(
        [*map(str, command)], cwd=cwd, env=ENVIRON, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done(*PIP, "wheel", "--no-deps", *ISOLATION, "--wheel-dir", folder, ".", cwd=ROOT)
    (built,) = folder.iterdir()
    return built


def test_the_wheel_holds_every_file_of_the_package_every_template_and_the_docs(wheel: Path) -> None:
    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "generator").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    templates = {
        f"generator/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "templates").rglob("*") if path.is_file()
    }
    docs = {f"generator/{page}" for page in ("CHANGELOG.md", *PAGES) if page != "CONTRIBUTING.md"}
    commit = {"generator/COMMIT"} if (ROOT / ".git").exists() else set[str]()
    assert held == package | templates | docs | commit
    assert len(templates) > 20
    assert {"generator/cost/prices.json", "generator/verify/requests/core.json"} < held


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is installed."""
    folder = tmp_path_factory.mktemp("installed")
    ZipFile(wheel).extractall(folder)  # noqa: S202 - it was built here
    return folder / "generator"


def test_the_links_of_its_pages_lead_to_others_except_to_what_only_a_checkout_has(unpacked: Path) -> None:
    links = {
        os.path.relpath(page.parent / name, unpacked)
        for page in [unpacked / "README.md", unpacked / "CHANGELOG.md", *(unpacked / "docs").rglob("*.md")]
        for name in re.findall(r"\]\(([^)#]+)", prose(page.read_text("utf-8")))
    }
    assert len(links) > 30
    assert {name for name in links if not (unpacked / name).exists()} == {
        "CONTRIBUTING.md", "LICENSE", "RATIONALE.md", ".github/inspection.png", "generator/edge/README.md",
        "clients/python/SKILL.md", "clients/typescript/SKILL.md",
    }  # fmt: skip


def built(folder: Path, source: Path, *targets: str) -> dict[str, bytes]:
    """What is built from a source tree, by its name."""
    options = [part for target in targets for part in ("--target", target)]
    done(sys.executable, "-m", "hatchling", "build", "--directory", folder, *options, cwd=source)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def contents(wheel: bytes) -> dict[str, bytes]:
    """What is in a wheel, whose order only its RECORD tells."""
    opened = ZipFile(io.BytesIO(wheel))
    return {name: opened.read(name) for name in opened.namelist() if not name.endswith("/RECORD")}


@pytest.mark.campaign(short=0)
def test_what_is_built_from_the_sdist_which_is_no_checkout_has_the_same_in_it(wheel: Path, tmp_path: Path) -> None:
    ((name, sdist),) = built(tmp_path / "dist", ROOT, "sdist").items()
    with tarfile.open(fileobj=io.BytesIO(sdist)) as opened:
        opened.extractall(tmp_path, filter="data")
    (again,) = built(tmp_path / "again", tmp_path / name.removesuffix(".tar.gz"), "wheel").values()
    assert contents(again) == contents(wheel.read_bytes())
    assert re.fullmatch(rb"[0-9a-f]{12}(-dirty)?\n", contents(again)["generator/COMMIT"])


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("program", ["uvx --from {wheel}", "uvx pipx run --spec {wheel}"])
def test_one_line_serves_a_demo_where_nothing_is_installed(wheel: Path, tmp_path: Path, program: str) -> None:
    """Dependencies come from the package index, or the cache of `make .venv/test`."""
    uv = require("uv", Path(sys.executable).parent, reason="the wheel is not run without being installed")
    line = section("docs/install.md", "Try a wheel")
    (shown,) = [line for line in typed(line) if line.startswith("uvx ")]
    words = shown.replace("uvx --from ./public_markets-0.1.0-py3-none-any.whl", program.format(wheel=wheel)).split()
    command = [str(uv.parent / words[0]), *words[1:], "--port", "0", "--markets", "20"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**ENVIRON, "PIPX_HOME": str(tmp_path / "pipx")}, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout
            told = next(line for line in process.stdout if line.startswith("serving "))
            with urlopen(told.split()[-1]) as answer:  # noqa: S310 - it begins with http://127.0.0.1
                assert json.load(answer)["items"]
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # a shell in the background has programs ignore SIGINT
    assert {path.name for path in tmp_path.iterdir()} <= {"demo.db", "output", "pipx"}


def test_a_link_chooses_the_version(tmp_path: Path) -> None:
    program = tmp_path / "public-markets-0.1.0/bin/public-markets"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    (link,) = [line for line in typed(section("docs/install.md", "From a wheel")) if line.startswith("ln ")]
    for _ in range(2):  # the second time there is a link already
        done(*link.replace("/opt", str(tmp_path)).split(), cwd=tmp_path)
    assert (tmp_path / "public-markets/bin/public-markets").readlink() == Path("/bin/true")
