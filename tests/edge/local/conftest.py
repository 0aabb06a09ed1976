"""A running `public-markets serve`, and builds for it to serve."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.demo.database import seed
from tests.support import limits
from tests.support.edges.servers import Client, connected
from tests.support.edges.serving import UNLIMITED, Served, served
from tests.support.sites.builds import AS_OF, build_now, make_config


@pytest.fixture(scope="module")
def server(demo_output: Path) -> Iterator[Served]:
    with served(demo_output.parent, *UNLIMITED) as server:
        yield server


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with connected(server.port) as client:
        yield client


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    seed(folder / "markets.db", as_of=AS_OF, markets=60)
    with limits.only(limits.FEW):
        build_now(make_config(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path, built: Path, few_limits: None) -> Path:
    """A small build of its own, to be changed; later builds have its limits, too."""
    return Path(shutil.copytree(built, tmp_path / "own"))
