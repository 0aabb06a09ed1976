"""How tests are found, ordered and given their fixtures.

Imports nothing of ours: a small test begins within a second, as the modules of fixtures are loaded when a test file
names one of their fixtures.
"""

import fcntl
import gc
import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Final, TypeAlias

import pytest

pytest_plugins = ["tests.support.campaigns"]

#: The fixtures that several test files ask for, by the module that has them.
FIXTURES: Final[Mapping[str, tuple[str, ...]]] = {
    "tests.publish.faults.scene": ("scene",),
    "tests.publish.faults.strikes": ("victims",),
    "tests.support.cluster": ("cluster_database", "worker_environ", "workers"),
    "tests.support.disks": ("disk",),
    "tests.support.images": ("storage",),
    "tests.support.limits": ("few_limits", "one_processor"),
    "tests.support.postgres": ("new_database", "postgres"),
    "tests.support.sites.demo": ("database", "demo_folder", "demo_output", "extended_output", "outputs"),
    "tests.support.sites.publishing": ("empty", "impatient", "original", "published_site", "site_server"),
    "tests.support.stores.s3.servers": ("radosgw", "s3"),
}
#: A fixture as a file asks for it: a parameter, or a name in quotation marks.
_ASKED: Final = {module: re.compile(rf"\b({'|'.join(names)})(: |\")") for module, names in FIXTURES.items()}

#: Fills a folder by name, once in a run.
Shared: TypeAlias = Callable[[str, Callable[[Path], object]], Path]

#: What takes longest. It begins first, so that no worker is left alone with it at the end.
LONGEST: Final = (
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
    "faults/test_kills",
)


def pytest_collection() -> None:
    gc.disable()  # tests and modules stay: looking for garbage among them takes a third of the time to find them


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """Load the modules of the fixtures that a test file asks for, a conftest.py above it, or one of these modules."""
    if not isinstance(collector, pytest.Module):
        return
    plugins, folders = collector.config.pluginmanager, takewhile(_is_below_tests, collector.path.parents)
    left = [collector.path, *(folder / "conftest.py" for folder in folders)]
    while left:
        path = left.pop()
        text = path.read_text("utf-8") if path.exists() else ""
        for name, asked in _ASKED.items():
            if asked.search(text) and not plugins.has_plugin(name):
                module = import_module(name)
                plugins.register(module, name)
                left.append(Path(str(module.__file__)))


def _is_below_tests(folder: Path) -> bool:
    return folder != Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.with_suffix("").as_posix().endswith(LONGEST))


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
