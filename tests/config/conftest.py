"""The fixture shared by the tests of the loader."""

from pathlib import Path

import pytest

from tests.config.folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)
