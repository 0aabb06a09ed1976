"""Sites whose lists have first pages for a few limits only: a build takes a fifth of the time and of the files.

A pytest plugin: `usefixtures("few_limits")` where a test is about something else than pages. Commands in processes of
their own still make all hundred, except those of a `Runner` that is told to `prepare` this module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

#: Those that tests read by, and those that the product itself does: the greatest, and the ones the index page links.
FEW: Final = (1, 2, 3, 5, 7, 20, 50, 100)


def prepare() -> None:
    """Build with few limits in this process from now on, and in those it forks."""
    _patch(pytest.MonkeyPatch())


def _patch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("generator.tree.pages.LIMITS", FEW)


@contextmanager
def few() -> Iterator[None]:
    """Build with few limits for the length of the block."""
    with pytest.MonkeyPatch.context() as patch:
        _patch(patch)
        yield


@pytest.fixture
def few_limits() -> Iterator[None]:
    """Build with few limits for the length of the test."""
    with few():
        yield
