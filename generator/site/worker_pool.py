"""A pool of forked workers: they inherit the work items through fork, and send results back.

Threads would not help: writing files is system calls and small byte strings, which Python runs one at a time.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Final, Generic, TypeVar, cast

from generator import garbage
from generator.errors import OutputError

Unit = TypeVar("Unit")
_Result = TypeVar("_Result")

#: How many numbers, of how many bytes each, fit into a pipe on any system. With more units a number means several.
_NUMBERS: Final = 4_000
_WIDTH: Final = 4

_FORK = multiprocessing.get_context("fork")


def available() -> int:
    """The number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class QuitError(Exception):
    """Raised by the work when this worker cannot do any unit; the one that it had taken is left to the caller.

    Its only argument is the reason, a text.
    """


class WorkerPool(Generic[Unit, _Result]):
    """Runs `work` on every unit in `count` processes, in parallel with the caller.

    The costliest unit starts first, and an idle worker takes the next one, so the costs may be rough. The numbers of
    the units are in a pipe filled beforehand: a worker needs nothing from its parent, and ends by itself when the
    parent is gone. Each worker calls `at_end` when it ends; work that raises QuitError ends its worker early,
    and the reason is added to `quits`.
    """

    def __init__(
        self,
        work: Callable[[Unit], _Result],
        units: Sequence[Unit],
        cost: Callable[[Unit], float],
        count: int,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._processes = []
        self._connections: list[Connection[Any, Any]] = []
        self.quits = list[str]()
        waiting = sorted(units, key=cost, reverse=True)
        numbers = _filled_pipe(min(len(waiting), _NUMBERS))
        for _ in range(min(count, len(waiting))):
            receiver, sender = _FORK.Pipe(duplex=False)
            receivers = (*self._connections, receiver)
            taken = _take(waiting, numbers, os.getpid())
            process = _FORK.Process(target=_run, args=(work, taken, sender, receivers, at_end))
            process.start()
            # Only the worker may hold the sending end, so that its death ends the pipe.
            sender.close()
            self._processes.append(process)
            self._connections.append(receiver)
        os.close(numbers)
        self.count = len(self._processes)

    def __enter__(self) -> "WorkerPool[Unit, _Result]":
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

    def results(self) -> Iterator[_Result]:
        """Every result as it arrives; raises a worker's error."""
        open_ends = list(self._connections)
        while open_ends:
            for connection in cast("list[Connection[Any, Any]]", wait(open_ends)):
                try:
                    message = connection.recv()
                except EOFError:
                    raise OutputError("a worker process was killed, perhaps for lack of memory; run again") from None
                if message is None or isinstance(message, QuitError):
                    open_ends.remove(connection)
                    self.quits += [str(message)] if message else []
                elif isinstance(message, BaseException):
                    raise message
                else:
                    yield message


@contextmanager
def results(
    work: Callable[[Unit], _Result], units: Sequence[Unit], cost: Callable[[Unit], float], count: int
) -> Iterator[Iterator[_Result]]:
    """The result of every unit as it arrives, by a pool of `count` workers; by this process if there is one only."""
    if count == 1:
        yield map(work, units)
        return
    with WorkerPool(work, units, cost, count) as pool:
        yield pool.results()


def _filled_pipe(count: int) -> int:
    """The reading end of a pipe that holds the numbers below `count`."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as file:
        file.writelines(number.to_bytes(_WIDTH) for number in range(count))
    return reader


def _take(waiting: Sequence[Unit], numbers: int, parent: int) -> Iterator[Unit]:
    """Take units from the pipe until none is left or the parent is gone."""
    stride = min(len(waiting), _NUMBERS)
    while number := os.read(numbers, _WIDTH):
        for unit in waiting[int.from_bytes(number) :: stride]:
            if os.getppid() != parent:
                return
            yield unit


def _run(
    work: Callable[[Unit], _Result],
    units: Iterator[Unit],
    sender: "Connection[Any, Any]",
    receivers: "Sequence[Connection[Any, Any]]",
    at_end: Callable[[], None],
) -> None:
    garbage.collect_own()
    # Only the parent may hold the receiving ends, so that its death breaks the pipe, even for a blocked worker.
    for receiver in receivers:
        receiver.close()
    with suppress(BrokenPipeError):
        try:
            last = _run_all(work, units, sender)
            at_end()
            sender.send(last)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again in the parent
            sender.send(error)


def _run_all(
    work: Callable[[Unit], _Result], units: Iterator[Unit], sender: "Connection[Any, Any]"
) -> QuitError | None:
    """Send the result of every unit; return why the work quit, if it did."""
    try:
        for unit in units:
            sender.send(work(unit))
    except QuitError as error:
        return error
    return None
