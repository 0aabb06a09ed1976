"""Sites for the tests with a cluster. All are in one database, the only one that the workers know."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from generator.demo.database import seed
from tests.cluster.sites import ClusterSite
from tests.support.cluster import Cluster, running
from tests.support.postgres import Server
from tests.support.sites.builds import AS_OF

_NUMBERS: Final = count(1)
#: Enough for several ranges.
MARKETS: Final = 120


@pytest.fixture(autouse=True, scope="session")
def _loaded() -> None:
    """Import once what every build on a cluster imports."""
    importlib.import_module("distributed")


@pytest.fixture(scope="module")
def lonely() -> Iterator[Cluster]:
    """A scheduler without workers, for those that a test starts and ends."""
    with running({}, workers=0) as cluster:
        yield cluster


@pytest.fixture
def odd(lonely: Cluster) -> Iterator[Cluster]:
    """`lonely`; a failed test shows its logs."""
    yield lonely
    sys.stdout.write(lonely.logs())
    for worker in [*lonely.workers]:
        lonely.remove(worker)


@pytest.fixture(scope="session")
def demo_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's first markets in SQLite."""
    path = tmp_path_factory.mktemp("rows") / "markets.db"
    seed(path, as_of=AS_OF, markets=MARKETS)
    return path


@pytest.fixture(scope="session")
def demo(
    postgres: Server, cluster_database: str, demo_rows: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterSite]:
    """The demo with a gate, and a build of it by forked workers in the folder `forked`. Its rows stay as they are.

    It is in chunks, which are fewer objects.
    """
    site = ClusterSite(postgres, cluster_database, "demo_0", tmp_path_factory.mktemp("demo"))
    site.settings = {"layout": "chunks"}
    site.rows.copy(demo_rows)
    site.has_gate()
    site.build(None, "forked")
    with closing(site.rows.connection):
        yield site


@pytest.fixture
def cluster_site(postgres: Server, cluster_database: str, demo_rows: Path, tmp_path: Path) -> Iterator[ClusterSite]:
    """The demo in a schema of its own, to be changed."""
    site = ClusterSite(postgres, cluster_database, f"site_{next(_NUMBERS)}", tmp_path)
    site.rows.copy(demo_rows)
    with closing(site.rows.connection):
        yield site
