"""Forked workers: every result arrives, the death of a worker is noticed, and work is spread evenly."""

import gc
import multiprocessing
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from generator import garbage
from generator.errors import OutputError, PublicMarketsError
from generator.site.worker_pool import WorkerPool
from tests.support.faults import ENDED, children_of, state_of
from tests.support.sites.builds import CHUNKED, build_now, make_config
from tests.support.sites.rows import insert_market
from tests.support.waiting import PATIENCE_S, wait_until


def collects(unit: int) -> bool:
    return gc.isenabled()


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


def test_units_are_worked_on_in_other_processes_and_no_more_than_there_are_units() -> None:
    all_three = multiprocessing.Barrier(3)

    def meet(_: int) -> int:
        all_three.wait(PATIENCE_S)
        return os.getpid()

    with WorkerPool(meet, [1, 2, 3], cost, 8) as pool:
        workers = [*pool.results()]
    assert len(set(workers)) == 3
    assert os.getpid() not in workers


def test_an_idle_worker_takes_the_next_unit_whatever_its_estimated_cost() -> None:
    quick = multiprocessing.Semaphore(0)

    def outlast(unit: int) -> int:
        """The first unit lasts until twenty others are done."""
        if unit:
            quick.release()
        else:
            assert all(quick.acquire(timeout=PATIENCE_S) for _ in range(20))
        return os.getpid()

    with WorkerPool(outlast, range(21), lambda _: 1, 2) as pool:
        done = Counter(pool.results())
    assert sorted(done.values()) == [1, 20]


def test_a_worker_closes_what_it_opened(tmp_path: Path) -> None:
    def leave_a_trace() -> None:
        (tmp_path / str(os.getpid())).touch()

    with WorkerPool(whose, [1, 2, 3], cost, 2, leave_a_trace) as pool:
        workers = {process for process, _ in pool.results()}
    assert {int(path.name) for path in tmp_path.iterdir()} >= workers
    assert len(list(tmp_path.iterdir())) == 2


def test_the_costliest_unit_is_begun_first() -> None:
    with WorkerPool(whose, [1, 5, 3, 9, 7], cost, 1) as pool:
        assert [unit for _, unit in pool.results()] == [9, 7, 5, 3, 1]


def test_a_result_larger_than_a_pipe_arrives() -> None:
    with WorkerPool(bytes, [10_000_000, 20_000_000], cost, 2) as pool:
        assert sorted(len(result) for result in pool.results()) == [10_000_000, 20_000_000]


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


def test_workers_collect_their_garbage_although_the_build_does_not() -> None:
    with garbage.uncollected(), WorkerPool(collects, [1], cost, 1) as pool:
        assert ([*pool.results()], gc.isenabled()) == ([True], False)
    assert gc.isenabled()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="one processor needs no workers")
@pytest.mark.parametrize(
    ("markets", "settings", "is_forked"),
    [(50, {}, False), (51, {}, True), (1, {"dumps__parquet": True, "dumps__fills": True}, True)],
)
def test_few_lists_are_staged_without_workers_unless_there_are_full_histories(
    tmp_path: Path,
    database: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
    markets: int,
    settings: Mapping[str, Any],
    *,
    is_forked: bool,
) -> None:
    for number in range(1, markets + 1):
        insert_market(database, number)
    forks, fork = Counter[str](), os.fork

    def counted() -> int:
        forks["all"] += 1
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    build_now(make_config(tmp_path, **CHUNKED, **settings))
    assert (forks.total() > 0) == is_forked
