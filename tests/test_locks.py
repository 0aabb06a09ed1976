"""The lock files: every package that is installed is pinned by version and hash, and none by a download address."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

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


def entries(text: str) -> Iterator[tuple[str, list[str]]]:
    """The requirements of a file, each with the hashes it allows. Options, addresses and paths are among them."""
    without_comments = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for line in without_comments.replace("\\\n", " ").splitlines():
        requirement, *hashes = line.split(" --hash=")
        yield requirement.strip(), [value.strip() for value in hashes]


def pins(name: str) -> dict[tuple[str, str], str]:
    """The version that a file pins, by package and environment marker."""
    found = [Requirement(text) for text, _ in entries((ROOT / "requirements" / name).read_text("utf-8"))]
    return {(canonicalize_name(pin.name), str(pin.marker or "")): str(pin.specifier) for pin in found}


def unpinned(text: str) -> list[str]:
    """The requirements without an exact version or a SHA-256 hash."""
    exact = re.compile(r"[\w.-]+==[\w.!+]+( ; .+)?")
    sha256 = re.compile(r"sha256:[0-9a-f]{64}")
    return [
        requirement
        for requirement, hashes in entries(text)
        if not exact.fullmatch(requirement) or not hashes or not all(map(sha256.fullmatch, hashes))
    ]


def unverified(lock: dict[str, Any]) -> list[str]:
    """The packages of an npm lock file that have no strong hash, or an address."""
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(packages) > (30 if lock["name"] == "public-markets-client" else 50)
    return [
        name
        for name, entry in packages.items()
        if "resolved" in entry or entry.get("link") or not entry.get("integrity", "").startswith("sha512-")
    ]


def unmet(asked_for: list[str], pinned: dict[tuple[str, str], str]) -> list[str]:
    """The requirements that no pin satisfies in every environment."""
    versions: dict[str, list[str]] = {}
    for (name, _), specifier in pinned.items():
        versions.setdefault(name, []).append(specifier.removeprefix("=="))
    return [
        text
        for text in asked_for
        for wanted in [Requirement(text)]
        for found in [versions.get(canonicalize_name(wanted.name), [])]
        if not found or not all(map(wanted.specifier.contains, found))
    ]


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


@pytest.mark.parametrize("path", PYTHON_LOCKS, ids=lambda path: path.name)
def test_every_requirement_has_an_exact_version_and_a_hash(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len([*entries(text)]) >= 5
    assert unpinned(text) == []


@pytest.mark.parametrize(("name", "asked_for"), ASKED_FOR.items(), ids=ASKED_FOR)
def test_what_pyproject_asks_for_is_pinned_within_its_range(name: str, asked_for: list[str]) -> None:
    assert asked_for
    assert unmet(asked_for, pins(name)) == []


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
    lock = json.loads(path.read_text("utf-8"))
    assert lock["lockfileVersion"] == 3
    assert unverified(lock) == []
    # So `make lock` leaves the addresses out on every machine.
    assert path.with_name(".npmrc").read_text("utf-8") == "omit-lockfile-registry-resolved=true\n"


@pytest.mark.parametrize("path", NPM_LOCKS, ids=lambda path: path.parent.parent.name)
def test_npm_locks_what_package_json_asks_for(path: Path) -> None:
    asked_for: dict[str, str] = json.loads(path.with_name("package.json").read_text("utf-8"))["devDependencies"]
    packages = json.loads(path.read_text("utf-8"))["packages"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in asked_for} == asked_for


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
