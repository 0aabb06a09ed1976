"""Sites whose lists have first pages for a few limits only: a build takes a fifth of the time and of the files.

Every test builds so, except those marked `every_limit`; `tests/conftest.py` sees to it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

from generator.tree import pages

EVERY: Final = pages.LIMITS
#: Those that tests read by, and those that the product itself does: the greatest, and the ones the index page links.
FEW: Final = (1, 2, 3, 5, 7, 10, 20, 50, 100)
#: Enough for a site without a search index, which takes items from pages of the other limits. Pages of one item each
#: are left out: they would be the most.
FEWEST: Final = (2, 100)


def prepare(limits: Sequence[int] = FEW) -> None:
    """Build with few limits in this process from now on, and in those it forks."""
    pytest.MonkeyPatch().setattr(pages, "LIMITS", limits)


def are_few() -> bool:
    """Whether builds of this process have few limits."""
    return pages.LIMITS is not EVERY


@contextmanager
def only(limits: Sequence[int]) -> Iterator[None]:
    """Build with these limits for the length of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "LIMITS", limits)
        yield


@contextmanager
def every() -> Iterator[None]:
    """Build with all limits for the length of the block."""
    with only(EVERY):
        yield
