"""Every fault is tried on records with shards, although these sites are small."""

from collections.abc import Iterator

import pytest

from tests.support.records import sharded


@pytest.fixture(autouse=True)
def _sharded() -> Iterator[None]:
    with sharded():
        yield
