"""Fixtures that several test files ask for."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.sites.views import ExistingSite


@pytest.fixture
def reader(existing_site: ExistingSite) -> Iterator[Any]:
    """A connection to the file's `site` with the rights of the build."""
    with closing(existing_site.as_reader()) as connection:
        yield connection
