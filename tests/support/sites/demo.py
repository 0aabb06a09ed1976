"""Databases and builds of the demo that many tests read. A pytest plugin."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from generator.api.contract import Variant
from generator.demo.database import seed
from tests.conftest import Shared
from tests.support.sites.builds import AS_OF, VARIANTS, Outputs, build_now, make_config
from tests.support.sites.rows import create_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An empty database at `tmp_path`/markets.db, where `make_config(tmp_path)` looks for it."""
    with closing(create_database(tmp_path / "markets.db")) as connection:
        yield connection


@pytest.fixture(scope="session")
def outputs(shared: Shared, demo_folder: Path) -> Outputs:
    """Builds of the demo by variant and layout, made when they are asked for. Read only."""

    def made(variant: Variant, layout: str = "pages") -> Path:
        if (variant, layout) == ("core", "pages"):
            return demo_folder / "output"

        def fill(folder: Path) -> None:
            build_now(make_config(demo_folder, output=folder / "output", layout=layout, **VARIANTS[variant]))

        return shared(f"{variant}-{layout}", fill) / "output"

    return made


@pytest.fixture(scope="session")
def demo_folder(shared: Shared) -> Path:
    """The demo's first 150 markets in markets.db, as `make_config` expects it, and what a build makes of them."""

    def fill(folder: Path) -> None:
        seed(folder / "markets.db", as_of=AS_OF, markets=150)
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
