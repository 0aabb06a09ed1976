"""The fixture that all tests of the loader ask for."""

from pathlib import Path

import pytest

from tests.config.folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)
