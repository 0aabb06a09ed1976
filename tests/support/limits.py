"""Sites whose lists have first pages for a few limits only: a campaign builds and publishes thousands of times.

Such a build takes a fifth of the time and of the files. A pytest plugin: ask for `few_limits`. All other tests build
pages for all hundred limits, as the program does. And builds of `one_processor`, which fork no workers: for a small
site, two forks of a process full of tests are a third of the work.
"""

import os
import random
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

    Not for programs that it starts for good: they would stay so.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {random.choice([*before])})  # noqa: S311 - nothing here is secret
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@pytest.fixture
def one_processor() -> Iterator[None]:
    with on_one_processor():
        yield
