"""Fixtures that several test files ask for."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.views import Site


@pytest.fixture
def reader(site: Site) -> Iterator[Any]:
    """A connection to the file's `site` with the rights of the build."""
    with closing(site.as_reader()) as connection:
        yield connection
