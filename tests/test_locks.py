"""The lock files: every package that is installed is pinned by version and hash, and none by a download address."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.programs import require
from tests.support.project import ROOT

PYTHON_LOCKS: Final = sorted((ROOT / "requirements").iterdir())
NPM_LOCKS: Final = [ROOT / f"{name}/package-lock.json" for name in ("tests/node", "clients/typescript")]
PYPROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
GROUPS: Final[dict[str, list[str]]] = PYPROJECT["dependency-groups"]
DIRECT: Final[list[str]] = PYPROJECT["project"]["dependencies"]
EXTRAS: Final = [text for extra in PYPROJECT["project"]["optional-dependencies"].values() for text in extra]
#: What each file pins, directly.
ASKED_FOR: Final = {
    "run.txt": [*DIRECT, *EXTRAS],
    "test.txt": [*DIRECT, *EXTRAS, *GROUPS["dev"]],
    "tools.txt": [*PYPROJECT["build-system"]["requires"], *GROUPS["tools"]],
    "bench.txt": GROUPS["bench"],
    "sbom.txt": GROUPS["sbom"],
}
#: Spelled in two parts, because this file is searched, too.
REGISTRIES: Final = [
    f"{name}.{end}"
    for name, end in [("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("yarnpkg", "com")]
]


def pins(name: str) -> dict[tuple[str, str], str]:
    """The version that a file pins, by package and environment marker."""
    text = (ROOT / "requirements" / name).read_text("utf-8")
    found = [Requirement(line) for line in re.findall(r"^([\w.-]+==[^\\\n]+)", text, re.MULTILINE)]
    assert len(found) >= 5
    return {(canonicalize_name(pin.name), str(pin.marker or "")): str(pin.specifier) for pin in found}


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git repository")
    git = require("git", reason="the list of tracked files")
    # In a container the repository may belong to another user.
    listed = subprocess.run(
        [git, "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_there_is_one_lock_file_for_each_purpose() -> None:
    assert {path.name for path in PYTHON_LOCKS} == ASKED_FOR.keys()
    others = {"uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock", "pylock.toml", "yarn.lock", "pnpm-lock.yaml"}
    files = tracked_files()
    assert [path for path in files if path.name in others] == []
    assert {path for path in files if path.name == "package-lock.json"} == {*NPM_LOCKS}


@pytest.mark.parametrize(("name", "asked_for"), ASKED_FOR.items(), ids=ASKED_FOR)
def test_what_pyproject_asks_for_is_pinned_within_its_range(name: str, asked_for: list[str]) -> None:
    assert asked_for
    pinned = [(package, pin.removeprefix("==")) for (package, _), pin in pins(name).items()]
    for wanted in map(Requirement, asked_for):
        found = [version for package, version in pinned if package == canonicalize_name(wanted.name)]
        assert found, wanted
        assert all(map(wanted.specifier.contains, found)), wanted


def test_tests_run_with_the_versions_that_run_in_production() -> None:
    run, test = ({(package, pin) for (package, _), pin in pins(name).items()} for name in ("run.txt", "test.txt"))
    assert run <= test


def test_the_tools_fit_the_environment_they_share_with_the_tests() -> None:
    tools, test = pins("tools.txt"), pins("test.txt")
    shared = tools.keys() & test.keys()
    assert len(shared) >= 3
    assert {key: tools[key] for key in shared} == {key: test[key] for key in shared}


@pytest.mark.parametrize("path", NPM_LOCKS, ids=lambda path: path.parent.parent.name)
def test_npm_verifies_every_package(path: Path) -> None:
    """By a strong hash, and whatever the address; it refuses itself what package.json does not ask for."""
    packages = {name: one for name, one in json.loads(path.read_text("utf-8"))["packages"].items() if name}
    assert len(packages) > 30
    assert [name for name, one in packages.items() if not one.get("integrity", "").startswith("sha512-")] == []
    assert [name for name, one in packages.items() if "resolved" in one or one.get("link")] == []


def test_make_installs_nothing_without_its_hash() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    installers = re.findall(r"^.*\bpip install .*$", makefile, re.MULTILINE)
    assert len(installers) == 3
    (project,) = (line for line in installers if "--require-hashes" not in line)
    assert "--no-deps --no-build-isolation" in project
    assert re.findall(r"\$\(INSTALL_PROJECT\)(.*)", makefile) == [" --python $(BIN)/python --editable ."] * 2
    assert re.findall(r"\bnpm install (?!--package-lock-only)|\buv (?:sync|run)\b|\buvx\b|\bnpx\b", makefile) == []


def test_no_file_names_a_package_registry() -> None:
    pattern = re.compile("|".join(map(re.escape, REGISTRIES)).encode(), re.IGNORECASE)
    files = tracked_files()
    assert len(files) > 100
    assert [str(path.relative_to(ROOT)) for path in files if pattern.search(path.read_bytes())] == []
