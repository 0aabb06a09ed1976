"""Fixtures that several test files ask for."""

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader

from generator.api.contract import Variant
from generator.demo.database import seed
from generator.markets.quarantine import Quarantine
from tests.support.builds import AS_OF, EXTENDED, VARIANTS, Outputs, build_now, make_config
from tests.support.rows import create_database

pytest_plugins = [
    "tests.publish.faults.scene",
    "tests.publish.faults.strikes",
    "tests.support.campaigns",
    "tests.support.disks",
    "tests.support.limits",
    "tests.support.postgres",
    "tests.support.publishing",
    "tests.support.s3.servers",
]  # fmt: skip


#: What takes longest. It begins first, so that no worker is left alone with it at the end.
LONGEST = (
    "builder/test_faults",
    "faults/test_races",
    "faults/test_takedowns",
    "faults/test_random",
    "faults/test_kills",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.with_suffix("").as_posix().endswith(LONGEST))


@pytest.fixture(scope="session", autouse=True)
def _one_process_for_many_commands() -> Iterator[None]:
    """Stop each command from freezing the garbage of those before it, and from parsing botocore's models again."""
    load, loaded = JSONFileLoader.load_file, dict[str, Any]()

    def load_once(self: JSONFileLoader, file_path: str) -> Any:
        if file_path not in loaded:
            loaded[file_path] = load(self, file_path)
        return loaded[file_path]

    gc.collect()
    gc.freeze()  # pytest's own objects, and the modules of the tests
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        patch.setattr(JSONFileLoader, "load_file", load_once)
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
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's first 150 markets in markets.db, as `make_config` expects it. Read only."""
    folder = tmp_path_factory.mktemp("demo")
    seed(folder / "markets.db", as_of=AS_OF, markets=150)
    return folder


@pytest.fixture(scope="session")
def extended_output(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build of the extended variant makes of the demo, with lists for CATEGORIES. Read only."""
    output = tmp_path_factory.mktemp("extended") / "output"
    build_now(make_config(demo_folder, output=output, **EXTENDED))
    return output


@pytest.fixture(scope="session")
def outputs(request: pytest.FixtureRequest, demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """Builds of the demo by variant and layout, made when they are asked for. Read only."""
    names = {"core": "demo_output", "extended": "extended_output"}

    @cache
    def chunked(variant: Variant) -> Path:
        output = tmp_path_factory.mktemp("chunked") / "output"
        build_now(make_config(demo_folder, output=output, layout="chunks", **VARIANTS[variant]))
        return output

    return lambda variant, layout="pages": (
        Path(request.getfixturevalue(names[variant])) if layout == "pages" else chunked(variant)
    )


@pytest.fixture(scope="session")
def demo_output(demo_folder: Path) -> Path:
    """What a build makes of the demo. Read only."""
    build_now(make_config(demo_folder))
    return demo_folder / "output"
