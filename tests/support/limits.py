"""Sites whose lists have first pages for a few limits only: a campaign builds and publishes thousands of times.

Such a build takes a fifth of the time and of the files. A pytest plugin: ask for `few_limits`. All other tests build
pages for all hundred limits, as the program does. With `one_processor`, builds fork no workers: to fork a process full
of tests twice is a third of the work of building a small site.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

from generator.tree import pages

#: Those that tests read by, and those that the product itself does: the greatest, and the ones the index page links.
FEW: Final = (1, 2, 3, 5, 7, 10, 20, 50, 100)
#: Enough for a site without a search index, which takes items from pages of the other limits. Pages of one item each
#: are left out: they would be the most.
FEWEST: Final = (2, 100)


@contextmanager
def only(limits: Sequence[int]) -> Iterator[None]:
    """Build with these limits for the length of the block, in this process and in those it forks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "LIMITS", limits)
        yield


@pytest.fixture
def few_limits() -> Iterator[None]:
    with only(FEW):
        yield


@contextmanager
def on_one_processor() -> Iterator[None]:
    """Let this thread, and what it starts, use one processor for the length of the block.

    A program that the block starts keeps to it for good.
    """
    before = os.sched_getaffinity(0)
    # Tests that run beside this one are on other processors.
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    os.sched_setaffinity(0, {sorted(before)[worker % len(before)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@pytest.fixture
def one_processor() -> Iterator[None]:
    with on_one_processor():
        yield
