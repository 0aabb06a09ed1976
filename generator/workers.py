"""Forked workers that share the parent's memory: work goes out by being there before the fork, results come back.

Threads would not do: making files is system calls and small byte strings, which Python runs one at a time.
"""

import heapq
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from generator.errors import OutputError

Unit = TypeVar("Unit")
Result = TypeVar("Result")

_FORK = multiprocessing.get_context("fork")


def available() -> int:
    """The number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew(Generic[Unit, Result]):
    """Runs `work` on every unit in `count` processes, while the caller does something else.

    Units are shared out beforehand, the costliest first, each to the worker with the least to do: no queue, so a
    worker needs nothing from its parent, and ends by itself when the parent is gone.
    """

    def __init__(
        self, work: Callable[[Unit], Result], units: Sequence[Unit], cost: Callable[[Unit], int], count: int
    ) -> None:
        self._processes = []
        self._connections: list[Connection[Any, Any]] = []
        for share in _shares(units, cost, count):
            receiver, sender = _FORK.Pipe(duplex=False)
            receivers = (*self._connections, receiver)
            process = _FORK.Process(target=_run, args=(work, share, sender, receivers, os.getpid()))
            process.start()
            # Only the worker may hold the sending end: its death then reads as the end of the pipe.
            sender.close()
            self._processes.append(process)
            self._connections.append(receiver)

    def __enter__(self) -> "Crew[Unit, Result]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if error is not None:
                process.terminate()
            process.join()
        for connection in self._connections:
            connection.close()

    def results(self) -> Iterator[Result]:
        """Every unit's result as it comes; a worker's error is raised here."""
        open_ends = list(self._connections)
        while open_ends:
            for connection in cast("list[Connection[Any, Any]]", wait(open_ends)):
                try:
                    message = connection.recv()
                except EOFError:
                    raise OutputError("a worker process was killed; is the memory exhausted? run again") from None
                if message is None:
                    open_ends.remove(connection)
                elif isinstance(message, BaseException):
                    raise message
                else:
                    yield message


def _shares(units: Sequence[Unit], cost: Callable[[Unit], int], count: int) -> list[list[Unit]]:
    """Share out the units so that no worker has much more to do than another."""
    loads: list[tuple[int, int]] = [(0, worker) for worker in range(count)]
    shares: list[list[Unit]] = [[] for _ in range(count)]
    for unit in sorted(units, key=cost, reverse=True):
        load, worker = loads[0]
        shares[worker].append(unit)
        heapq.heapreplace(loads, (load + cost(unit), worker))
    return [share for share in shares if share]


def _run(
    work: Callable[[Unit], Result],
    share: list[Unit],
    sender: "Connection[Any, Any]",
    receivers: "Sequence[Connection[Any, Any]]",
    parent: int,
) -> None:
    # Only the parent may hold the receiving ends: its death then breaks the pipe, also for a worker that waits in it.
    for receiver in receivers:
        receiver.close()
    with suppress(BrokenPipeError):
        try:
            for unit in share:
                if os.getppid() != parent:
                    return
                sender.send(work(unit))
            sender.send(None)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again in the parent
            sender.send(error)
