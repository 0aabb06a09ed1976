"""An empty site in the extended variant."""

import sqlite3
from pathlib import Path

import pytest

from tests.acceptance.extended.site import ExtendedSite


@pytest.fixture
def extended_site(tmp_path: Path, database: sqlite3.Connection) -> ExtendedSite:
    return ExtendedSite(tmp_path, database)
