"""The wheel: complete, and it works in a separate environment, outside the source tree.

The environment finds the dependencies of the tests through a .pth file, which saves installing them.
"""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from tests.support.readers.pages import section, typed
from tests.support.sites.builds import ROOT

PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
#: The build backend is in .venv; where it is not, pip fetches it.
ISOLATION: Final = ("--no-build-isolation",) if importlib.util.find_spec("hatchling") else ()
#: An environment without paths to the source tree.
DEMO: Final = "--allow-demo"
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


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with the wheel installed."""
    folder = tmp_path_factory.mktemp("environment")
    done(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    done(
        *PIP,
        "--python",
        folder / "bin/python",
        "install",
        "--no-index",
        "--no-deps",
        f"{wheel}[postgresql]",
        cwd=folder,
    )
    (site,) = (folder / "lib").glob("python*/site-packages")
    # A folder named in a .pth file has its own .pth files ignored: the tests' editable install stays out of sight.
    (site / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def test_the_wheel_holds_every_file_of_the_package_and_every_template(wheel: Path) -> None:
    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "generator").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    templates = {
        f"generator/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "templates").rglob("*") if path.is_file()
    }
    assert held == package | templates
    assert len(templates) > 20
    assert {"generator/cost/prices.json", "generator/verify/requests/core.json"} < held


@pytest.mark.campaign(short=0)
def test_a_link_chooses_the_version(programs: Path, tmp_path: Path) -> None:
    commands = {
        line: re.sub(r"(/opt/)?public-markets-0\.1\.0", str(programs.parent), line).replace("/opt", str(tmp_path))
        for line in typed(section("docs/install.md", "From a wheel"))
        if line.startswith("ln ")
    }
    (link,) = commands.values()
    for _ in range(2):  # the second time there is a link already
        done(*link.split(), cwd=tmp_path)
    assert done(tmp_path / "public-markets/bin/public-markets", "--version", cwd=tmp_path)


@pytest.mark.campaign(short=0)
def test_the_installed_program_does_the_main_job(programs: Path, tmp_path: Path) -> None:
    program = programs / "public-markets"
    (tmp_path / "config.yaml").write_text("layout: chunks\npublish: {target: ./site}\n")
    where = done(programs / "python", "-c", "import generator; print(generator.__file__)", cwd=tmp_path)
    assert where.startswith(str(programs.parent))
    assert done(program, "--version", cwd=tmp_path)
    for command in (
        ["demo", "--markets", "5"],
        ["check", DEMO],
        ["build"],
        ["plan"],
        ["publish", DEMO],
        ["serve", "--help"],
    ):
        assert done(program, *command, cwd=tmp_path), command
    output = tmp_path / "output"
    assert (output / "v1/build.json").read_bytes() == (tmp_path / "site/v1/build.json").read_bytes()
    for name in ("index.html", "api.html", "edge/router.js", "edge/cloudfront/template.yaml", "vendor"):
        assert (output / name).exists(), name
