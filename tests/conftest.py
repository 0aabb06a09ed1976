"""Fixtures that several test files ask for."""

import fcntl
import gc
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TypeAlias

import pytest

from generator.api.contract import Variant
from generator.demo.database import seed
from generator.markets.quarantine import Quarantine
from tests.support import limits, loaded, one_process
from tests.support.sites.builds import AS_OF, VARIANTS, Outputs, build_now, make_config
from tests.support.sites.rows import create_database

pytest_plugins = [
    "tests.publish.faults.scene",
    "tests.publish.faults.strikes",
    "tests.support.campaigns",
    "tests.support.disks",
    "tests.support.images",
    "tests.support.postgres",
    "tests.support.cluster",  # which imports the one before
    "tests.support.sites.publishing",
    "tests.support.stores.s3.servers",
    "tests.support.sites.searchable_site",
    "tests.publish.archived_site",  # which imports those of sites
]  # fmt: skip


#: Fills a folder by name, once in a run.
Shared: TypeAlias = Callable[[str, Callable[[Path], object]], Path]

#: What takes longest. It begins first, so that no worker is left alone with it at the end.
LONGEST = (
    "acceptance/test_followers",
    "acceptance/test_schemathesis",
    "builder/test_faults",
    "builder/test_incremental_builds",
    "cost/test_estimate",
    "edge/test_cloudfront_chunks",
    "edge/test_search_rebuilds",
    "explorer/test_explorer",
    "faults/test_races",
    "faults/test_takedowns",
    "faults/test_random",
    "faults/test_kills",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.with_suffix("").as_posix().endswith(LONGEST))


@pytest.fixture(scope="session", autouse=True)
def _one_process_for_many_commands() -> None:
    """Load once what commands load, and stop each from freezing the garbage of those before it."""
    loaded.prepare()
    gc.collect()
    gc.freeze()  # pytest's own objects, and the modules of the tests
    pytest.MonkeyPatch().setattr(gc, "freeze", lambda: None)


@pytest.fixture(scope="session", autouse=True)
def _few_limits() -> None:
    limits.prepare()


@pytest.fixture(autouse=True)
def _every_limit(request: pytest.FixtureRequest) -> Iterator[None]:
    is_marked = request.node.get_closest_marker("every_limit") is not None
    with limits.every() if is_marked else nullcontext():
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_workers() -> None:
    one_process.prepare()


@pytest.fixture(autouse=True)
def _workers(request: pytest.FixtureRequest) -> Iterator[None]:
    is_marked = request.node.get_closest_marker("workers") is not None
    with one_process.workers() if is_marked else nullcontext():
        yield


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An empty database at `tmp_path`/markets.db, where `make_config(tmp_path)` looks for it."""
    with closing(create_database(tmp_path / "markets.db")) as connection:
        yield connection


@pytest.fixture
def quarantine() -> Quarantine:
    return Quarantine()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Fill a folder that all workers of a run read, unless one of them has: `shared(name, fill)`."""
    base = tmp_path_factory.getbasetemp()
    place = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name: str, fill: Callable[[Path], object]) -> Path:
        path, done = place / name, place / f"{name}.done"
        with (place / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                path.mkdir()
                fill(path)
                done.touch()
        return path

    return folder


@pytest.fixture(scope="session")
def outputs(shared: Shared, demo_folder: Path) -> Outputs:
    """Builds of the demo by variant and layout, made when they are asked for, with all limits. Read only."""

    def made(variant: Variant, layout: str = "pages") -> Path:
        if (variant, layout) == ("core", "pages"):
            return demo_folder / "output"

        def fill(folder: Path) -> None:
            with limits.every():
                build_now(make_config(demo_folder, output=folder / "output", layout=layout, **VARIANTS[variant]))

        return shared(f"{variant}-{layout}", fill) / "output"

    return made


@pytest.fixture(scope="session")
def demo_folder(shared: Shared) -> Path:
    """The demo's first 150 markets in markets.db, as `make_config` expects it, and what a build makes of them."""

    def fill(folder: Path) -> None:
        seed(folder / "markets.db", as_of=AS_OF, markets=150)
        with limits.every():
            build_now(make_config(folder))

    return shared("demo", fill)


@pytest.fixture(scope="session")
def demo_output(demo_folder: Path) -> Path:
    """What a build makes of the demo. Read only."""
    return demo_folder / "output"


@pytest.fixture(scope="session")
def extended_output(outputs: Outputs) -> Path:
    """What a build of the extended variant makes of the demo, with lists for CATEGORIES. Read only."""
    return outputs("extended")
