"""How many threads put files at a time."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Barrier, BrokenBarrierError

import pytest

from generator.stores.turns import Turns
from tests.support.waiting import PATIENCE_S

THREADS = 3
#: How long a thread waits in vain for one that must not come.
_SHORT_S = 0.1


def work_at_once(turn: Callable[[], AbstractContextManager[None]], patience_s: float) -> bool:
    """Whether all threads get a turn at the same time, if those that have one wait so long for the others."""
    barrier = Barrier(THREADS)

    def work(_: int) -> bool:
        with turn():
            try:
                barrier.wait(patience_s)
            except BrokenBarrierError:
                return False
            return True

    with ThreadPoolExecutor(THREADS) as pool:
        return all(pool.map(work, range(THREADS)))


@pytest.mark.parametrize(
    ("elapsed_s", "cpu_s", "at_once"),
    [
        pytest.param(10.0, 9.0, False, id="hardly waiting"),
        pytest.param(10.0, 1.0, True, id="mostly waiting"),
        pytest.param(0.1, 0.01, False, id="too short to tell"),
    ],
)
def test_threads_take_turns_unless_they_wait_for_the_disk(
    elapsed_s: float, cpu_s: float, *, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(THREADS)
    with monkeypatch.context() as patch:
        for name, taken_s in (("monotonic", elapsed_s), ("thread_time", cpu_s)):
            patch.setattr(time, name, iter((0.0, taken_s)).__next__)
        with turns.taken():
            pass
        for name in ("monotonic", "thread_time"):  # the next turns take no time
            patch.setattr(time, name, lambda: 0.0)
        assert work_at_once(turns.taken, PATIENCE_S if at_once else _SHORT_S) is at_once
