"""Sites for the tests with a cluster. All are in one database, as the workers know only that."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from generator.progress import Span, Stopwatch
from tests.cluster.sites import Site
from tests.support.cluster import Cluster, running
from tests.support.postgres import Server

_NUMBERS: Final = count(1)
#: Markets per range, at the least: many ranges for the few markets of a test.
FEW: Final = 8


@pytest.fixture(autouse=True)
def _many_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide few markets into many ranges."""
    monkeypatch.setattr("generator.builder.executors.LEAST", FEW)


@pytest.fixture(autouse=True)
def _no_durations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every build take no time, so that reports can be compared."""

    @contextmanager
    def stage(stopwatch: Stopwatch, name: str) -> Iterator[None]:
        yield
        stopwatch.spans[name] = Span(0.0, 0.0)

    monkeypatch.setattr(Stopwatch, "stage", stage)


@pytest.fixture(autouse=True, scope="session")
def _loaded() -> None:
    """Load once what every build on a cluster loads."""
    importlib.import_module("distributed")


@pytest.fixture(scope="module")
def lonely() -> Iterator[Cluster]:
    """A scheduler without workers, for those that a test starts and ends."""
    with running({}, workers=0) as cluster:
        yield cluster


@pytest.fixture
def odd(lonely: Cluster) -> Iterator[Cluster]:
    """The same; a failed test shows the logs."""
    yield lonely
    sys.stdout.write(lonely.logs())
    for worker in [*lonely.workers]:
        lonely.remove(worker)


@pytest.fixture
def make_site(postgres: Server, cluster_database: str, tmp_path: Path) -> Iterator[Callable[[Path], Site]]:
    """Make a site of an SQLite database's rows."""
    made: list[Site] = []

    def make(database: Path) -> Site:
        folder = tmp_path / f"site-{len(made)}"
        folder.mkdir()
        made.append(Site(postgres, cluster_database, f"site_{next(_NUMBERS)}", folder))
        made[-1].rows.copy(database)
        return made[-1]

    yield make
    for site in made:
        site.rows.connection.close()


@pytest.fixture
def site(make_site: Callable[[Path], Site], demo_folder: Path) -> Site:
    """The demo."""
    return make_site(demo_folder / "markets.db")
