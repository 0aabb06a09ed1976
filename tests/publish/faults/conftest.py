"""Every fault is tried on records with a state, although these sites are small; some on whole records, too."""

from collections.abc import Iterator

import pytest

from generator.tree import run_lock
from tests.support.stores.records import split


@pytest.fixture(autouse=True)
def is_split(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether records have a state; `ON_BOTH` plays a test both ways."""
    if not getattr(request, "param", True):
        yield False
        return
    with split():
        yield True


@pytest.fixture(autouse=True)
def _few_limits(few_limits: None) -> None:
    """Sites of these tests have pages for five limits; deleting those of a hundred would be most of each round."""


@pytest.fixture(autouse=True)
def _soon_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A takedown that waits for a publisher looks for its end more often."""
    monkeypatch.setattr(run_lock, "_RETRY_S", 0.02)
