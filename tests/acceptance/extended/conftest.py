"""An empty site in the extended variant."""

import sqlite3
from pathlib import Path

import pytest

from tests.acceptance.extended.site import Site


@pytest.fixture
def site(tmp_path: Path, database: sqlite3.Connection) -> Site:
    return Site(tmp_path, database)
