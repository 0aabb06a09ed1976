"""Builds that tests run in their own process fork no workers: forking a process of its size takes longer than the work.

The commands of `commands.run` and of the fault tests fork as the program does. So does every build of a test marked
`workers`; `tests/conftest.py` sees to it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self

import pytest

from generator.site import worker_pool

_REAL: Final = worker_pool.WorkerPool


class _NoWorkers:
    """Does all units in this process, when their results are asked for."""

    def __init__(
        self,
        work: Callable[[Any], Any],
        units: Sequence[Any],
        cost: Callable[[Any], float],
        count: int,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        del cost, count
        self._work, self._units, self._at_end = work, units, at_end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._at_end()

    def results(self) -> Iterator[Any]:
        return map(self._work, self._units)


def prepare() -> None:
    """Build without workers in this process from now on."""
    pytest.MonkeyPatch().setattr(worker_pool, "WorkerPool", _NoWorkers)


@contextmanager
def workers() -> Iterator[None]:
    """Build with workers for the length of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "WorkerPool", _REAL)
        yield
