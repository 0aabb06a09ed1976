"""The container image: built for real, on a bare Debian, and run as it would be in a cluster."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
import yaml
from click.testing import CliRunner

from generator import __version__
from generator.cli.main import main
from generator.demo.database import seed
from tests.support.images import BASE, IMAGE, SOURCE, Storage
from tests.support.project import ROOT
from tests.support.readers.pages import PAGES, section, typed
from tests.support.sites.builds import AS_OF
from tests.support.stores.s3.server import BUCKET, S3Server

NOBODY: Final = 65534
#: What the image may add to its base, in bytes.
MOST: Final = 220_000_000
#: For a demo that is built soon.
FEW: Final = ("--markets", "20")
pytestmark = pytest.mark.campaign(short=0)


def size(root: Path) -> int:
    """The bytes in all files below a folder."""
    return sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def test_the_image_is_small_and_says_what_it_is_and_what_is_in_it(storage: Storage) -> None:
    told = storage.configuration(IMAGE)
    assert (told["User"], told["WorkingDir"]) == (f"{NOBODY}:{NOBODY}", "/srv/public-markets")
    assert (told["Entrypoint"], told["Cmd"], told["StopSignal"]) == (["public-markets"], ["--help"], "SIGINT")
    assert told["Healthcheck"]["Test"] == ["CMD", "public-markets", "check", "--published"]
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in told["Labels"].items()}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert (labels["version"], labels["revision"], labels["source"]) == (__version__, commit.strip(), SOURCE)
    assert labels["base.name"] == BASE
    assert "" not in labels.values()
    with storage.container(IMAGE) as made, storage.container(BASE) as base:
        assert 0 < size(made.files) - size(base.files) <= MOST
        program = made.files / "opt/public-markets"
        (packages,) = program.glob("lib/python*/site-packages")
        installed = {found.name.lower(): found.version for found in distributions(path=[str(packages)])}
        listed = json.loads((program / "sbom.cdx.json").read_text())
        assert {found["name"].lower(): found["version"] for found in listed["components"]} == installed
        assert installed["public-markets"] == __version__
        assert {"distributed", "psycopg", "arro3-core", "numpy"} < installed.keys()
        assert "pip" not in installed
        told_version = made.done("public-markets", "--version")
        docs = made.done("public-markets", "docs").strip()
        assert (made.files / docs.removeprefix("/") / "install.md").is_file()
    assert told_version.startswith(f"public-markets {__version__}, commit {commit[:12]}")


def job() -> dict[str, Any]:
    """The pod of the CronJob in docs/scheduling.md."""
    (block,) = [block for block in PAGES["docs/scheduling.md"].split("```yaml\n") if block.startswith("apiVersion")]
    spec: dict[str, Any] = yaml.safe_load(block.partition("```")[0])["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


@pytest.fixture
def server() -> Iterator[S3Server]:
    with S3Server() as started:
        yield started


def reachable(folder: Path) -> None:
    """Let the image's user reach what is in a folder of pytest's."""
    folder.parent.chmod(0o755)
    folder.chmod(0o755)


def owned(root: Path) -> set[Path]:
    """The files and folders that the image's user owns."""
    return {path.relative_to(root) for path in root.rglob("*") if path.lstat().st_uid == NOBODY}


def test_the_kubernetes_job_runs_without_a_shell_and_writes_only_output_and_scratch(
    storage: Storage, server: S3Server, tmp_path: Path
) -> None:
    volumes = {name: tmp_path / name for name in ("config", "output", "build-tmp", "publish-tmp", "database")}
    for name, folder in volumes.items():
        folder.mkdir()
        os.chown(folder, *((NOBODY, NOBODY) if name not in {"config", "database"} else (0, 0)))
    reachable(tmp_path)
    seed(volumes["database"] / "markets.db", as_of=AS_OF, markets=30)
    (volumes["config"] / "config.yaml").write_text(
        f"layout: chunks\npublish: {{target: 's3://{BUCKET}/api', endpoint_url: '{server.url}'}}\n"
    )
    source = {"PUBLIC_MARKETS_SOURCE__URL": "sqlite:////database/markets.db"}
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    pod = job()
    with storage.container(IMAGE) as container:
        for name in ("sh", "bash", "dash", "rbash"):
            (container.files / "usr/bin" / name).unlink(missing_ok=True)
        before = owned(container.files)
        for spec, environ in zip((*pod["initContainers"], *pod["containers"]), (source, source | keys), strict=True):
            assert spec["image"].rpartition("/")[2] == IMAGE.rpartition("/")[2]
            mounts = {volumes[mount["name"]]: mount["mountPath"] for mount in spec["volumeMounts"]}
            read_only = {volumes["config"]: f"{mounts.pop(volumes['config'])}:ro", volumes["database"]: "/database:ro"}
            container.done(*spec["command"], volumes=read_only | mounts, environ=environ)
        assert owned(container.files) == before
        assert before <= {Path("srv/public-markets", name) for name in ("", "config.yaml", "output")}
        at = ("--config", "/etc/public-markets/config.yaml", "--set", "output=/output/site")
        health = storage.configuration(IMAGE)["Healthcheck"]["Test"][1:]
        everywhere = {**read_only, **mounts}
        code, told = container.ran(*health, *at, volumes=everywhere, environ=source | keys)
        assert (code, " are published as of " in told) == (0, True), told
        assert container.done("dask", "--version")
    assert server.objects()["api/v1/build.json"][0] == (volumes["output"] / "site/v1/build.json").read_bytes()


def test_a_folder_that_init_made_is_run_as_the_docs_say(storage: Storage, server: S3Server, tmp_path: Path) -> None:
    own, line = (line.removeprefix("sudo ") for line in typed(section("docs/install.md", "Container"))[-2:])
    options, _, words = line.partition(f" public-markets:{__version__} ")
    site = tmp_path / "site"
    chosen = ("--database", "sqlite", "--edge", "cloudflare", "--scheduler", "cron")
    assert CliRunner().invoke(main, ["init", str(site), *chosen]).exit_code == 0
    seed(site / "markets.db", as_of=AS_OF, markets=5)
    given = {
        "PUBLIC_MARKETS_SOURCE__URL": "sqlite:///markets.db",
        "PUBLIC_MARKETS_PUBLISH__TARGET": f"s3://{BUCKET}/api",
        "PUBLIC_MARKETS_PUBLISH__ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    (site / "environment").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    subprocess.run(own.split(), cwd=site, check=True)
    reachable(tmp_path)
    before = {path.name for path in site.iterdir()}
    (place,) = (word.partition(":")[2] for word in shlex.split(options) if word.startswith("$PWD:"))
    with storage.container(IMAGE) as container:
        entry = storage.configuration(IMAGE)["Entrypoint"]
        container.done(*entry, *words.split(), volumes={site: place})
        # The program may read a file of variables, but the health check has those of the container.
        health = storage.configuration(IMAGE)["Healthcheck"]["Test"][1:]
        assert " are published as of " in container.done(*health, volumes={site: place}, environ=given)
    assert "api/v1/build.json" in server.objects()
    assert {path.name for path in site.iterdir()} - before == {"output"}


def test_a_container_serves_the_demo_as_the_docs_say(storage: Storage) -> None:
    (line,) = [line for line in typed(section("docs/install.md", "Container")) if "demo --serve" in line]
    assert line in PAGES["README.md"]
    words = line.partition(f"public-markets:{__version__} ")[2].split()
    # Buildah's container has this machine's network, which nothing here is to be reached from.
    words[words.index("--host") + 1] = "127.0.0.1"
    entry = storage.configuration(IMAGE)["Entrypoint"]
    with storage.container(IMAGE) as container:
        assert container.ran(*entry, "check", "--published")[0] == 1
        with (
            container.serving(*entry, *words, *FEW, "--port", "0") as address,
            urlopen(address) as answer,  # noqa: S310 - it begins with http://127.0.0.1
        ):
            assert json.load(answer)["items"]
            assert container.done(*entry, "check", "--published")
