"""Forked workers: every result arrives, the death of a worker is noticed, and work is spread evenly."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from generator.errors import OutputError, PublicMarketsError
from generator.site.worker_pool import WorkerPool
from tests.support.faults import ENDED, children_of, state_of
from tests.support.waiting import wait_until


def cost(unit: int) -> int:
    return unit


def double(unit: int) -> int:
    return 2 * unit


def whose(unit: int) -> tuple[int, int]:
    return os.getpid(), unit


def fail_at_three(unit: int) -> int:
    if unit == 3:
        raise OutputError("the disk is full of three")
    return unit


def lose_the_disk(unit: int) -> int:
    raise OSError(28, "No space left on device", "/somewhere")


def die(unit: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return unit


def doze(unit: int) -> int:
    time.sleep(0.2)
    return unit


def flood(unit: int) -> bytes:
    return bytes(1_000_000)


def nap(unit: int) -> int:
    time.sleep(3600)  # longer than any test may run
    return unit


def my_workers() -> list[int]:
    """The workers among this process's children, which include servers of other tests."""
    return [child.pid for child in multiprocessing.active_children() if child.pid]


@pytest.mark.campaign(short=0)
def test_every_unit_gives_its_result_once_even_if_there_are_more_than_a_pipe_holds() -> None:
    for units, count in (*product((0, 1, 3, 100), (1, 2, 7)), (100_001, 3)):
        with WorkerPool(double, range(units), cost, count) as pool:
            assert sorted(pool.results()) == [2 * unit for unit in range(units)]
        assert my_workers() == []


def test_a_worker_closes_what_it_opened(tmp_path: Path) -> None:
    def leave_a_trace() -> None:
        (tmp_path / str(os.getpid())).touch()

    with WorkerPool(whose, [1, 2, 3], cost, 2, leave_a_trace) as pool:
        workers = {process for process, _ in pool.results()}
    assert {int(path.name) for path in tmp_path.iterdir()} >= workers
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("work", "error", "said"),
    [
        (fail_at_three, OutputError, "full of three"),
        (lose_the_disk, OSError, "No space left.*'/somewhere'"),
        (die, OutputError, "a worker process was killed"),
    ],
)
def test_an_error_or_the_death_of_a_worker_is_raised_where_its_results_are_awaited(
    work: Callable[[int], object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said), WorkerPool(work, range(10), cost, 2) as pool:
        list(pool.results())
    assert my_workers() == []


def test_an_error_of_the_caller_ends_the_workers() -> None:
    with pytest.raises(PublicMarketsError, match="enough"), WorkerPool(nap, [1, 2, 3], cost, 3):
        raise PublicMarketsError("enough")
    assert my_workers() == []


@pytest.mark.parametrize("work", [doze, flood])
def test_workers_end_soon_after_their_parent_is_killed(work: Callable[[int], object]) -> None:
    parent = os.fork()
    if parent == 0:
        with WorkerPool(work, range(1000), cost, 2):
            time.sleep(3600)  # meanwhile the pipe fills and workers block
        os._exit(0)
    wait_until(lambda: len(children_of(parent)) == 2)
    workers = children_of(parent)
    time.sleep(0.3)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    wait_until(lambda: all(state_of(worker) in ENDED for worker in workers))
