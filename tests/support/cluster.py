"""A Dask scheduler and workers, each in a process of its own, reachable from this machine only.

A pytest plugin: `workers` is a cluster of two, shared by the tests of a process and restored for every test.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from tests.support.edges.servers import free_port, mortal
from tests.support.postgres import Server
from tests.support.project import ROOT
from tests.support.waiting import wait_until

#: The number of workers in `workers`.
WORKERS: Final = 2
#: The only variables of ours in a worker's environment, besides those that a test gives it.
_KEPT: Final = ("HOME", "LANG", "PATH", "TMPDIR", "USER")
_LISTENS: Final = "Scheduler at:"
_REGISTERED: Final = "Starting worker compute stream, "
_REMOVED: Final = "Remove worker addr: "
_NAME: Final = "Start worker at:"
#: The pause between looks into a log.
_PAUSE_S: Final = 0.05
#: How much of each log to show with a failure.
_SHOWN: Final = 5_000


@dataclass(frozen=True)
class Process:
    """A scheduler or a worker, which writes to `log`."""

    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass(frozen=True)
class Worker(Process):
    """A worker, which runs one task at a time."""

    @property
    def address(self) -> str:
        """The address under which the scheduler knows it; empty until it listens."""
        _, _, rest = self.text().partition(_NAME)
        return rest.split()[0] if rest else ""


@dataclass
class Cluster:
    """A running scheduler, and the workers that were started for it; logs and scratch files are below `folder`."""

    folder: Path
    scheduler: Process
    port: int
    scheme: str = "tcp"
    workers: list[Worker] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def address(self) -> str:
        """As the setting `cluster` takes it."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def begin(self, environ: Mapping[str, str], program: Path = ROOT) -> Worker:
        """Start a worker with hardly any variables but `environ`; it imports the program from a folder."""
        name = f"worker-{next(self._numbers)}"
        options = ["--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--protocol", self.scheme]
        log = self.folder / f"{name}.log"
        process = _started("worker", self.address, *options, log=log, program=program, environ=environ)
        self.workers.append(Worker(process, log))
        return self.workers[-1]

    def joined(self, worker: Worker) -> Worker:
        """Wait until the scheduler gives tasks to the worker."""
        wait_until(lambda: self._knows(worker) or not worker.is_alive(), pause=_PAUSE_S)
        assert worker.is_alive(), worker.text()
        return worker

    def remove(self, worker: Worker) -> None:
        """Kill a worker, and wait until the scheduler knows."""
        worker.kill()
        self.workers.remove(worker)
        wait_until(lambda: not self._knows(worker), pause=_PAUSE_S)

    def _knows(self, worker: Worker) -> bool:
        address = worker.address
        log = self.scheduler.text()
        return bool(address) and log.count(f"{_REGISTERED}{address}") > log.count(f"{_REMOVED}{address}")

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()

    def logs(self) -> str:
        """The ends of all logs, to be shown with a failure."""
        return "\n".join(f"--- {one.log.name}\n{one.text()[-_SHOWN:]}" for one in (self.scheduler, *self.workers))


@contextmanager
def running(
    environ: Mapping[str, str],
    workers: int = WORKERS,
    scheduler: Mapping[str, str] = MappingProxyType({}),
    scheme: str = "tcp",
) -> Iterator[Cluster]:
    """Run a scheduler and workers, each with its environment, during the block."""
    with tempfile.TemporaryDirectory(prefix="public-markets-cluster-") as name, ExitStack() as ended:
        cluster = _begun(Path(name), scheduler, scheme)
        ended.callback(cluster.end)
        begun = [cluster.begin(environ) for _ in range(workers)]
        wait_until(lambda: _LISTENS in cluster.scheduler.text() or not cluster.scheduler.is_alive(), pause=_PAUSE_S)
        assert cluster.scheduler.is_alive(), cluster.scheduler.text()
        for worker in begun:
            cluster.joined(worker)
        yield cluster


@pytest.fixture(scope="session")
def cluster_database(postgres: Server) -> str:
    """The database that the workers read, which must outlive them; each test has its own schema in it."""
    return postgres.create_database()


@pytest.fixture(scope="session")
def worker_environ(postgres: Server, cluster_database: str) -> Mapping[str, str]:
    """What a worker needs in its environment."""
    return {"PUBLIC_MARKETS_SOURCE__URL": postgres.url(cluster_database)}


@pytest.fixture(scope="session")
def _shared(worker_environ: Mapping[str, str]) -> Iterator[Cluster]:
    with running(worker_environ) as cluster:
        yield cluster


@pytest.fixture
def workers(_shared: Cluster, worker_environ: Mapping[str, str]) -> Iterator[Cluster]:
    """A scheduler with two workers for the `cluster_database`; a failed test shows their logs."""
    for ended in [worker for worker in _shared.workers if not worker.is_alive()]:
        _shared.remove(ended)
    for worker in [_shared.begin(worker_environ) for _ in range(len(_shared.workers), WORKERS)]:
        _shared.joined(worker)
    usual = [*_shared.workers]
    yield _shared
    sys.stdout.write(_shared.logs())
    for worker in [worker for worker in _shared.workers if worker not in usual]:
        _shared.remove(worker)


def _begun(folder: Path, environ: Mapping[str, str], scheme: str) -> Cluster:
    port, log = free_port(), folder / "scheduler.log"
    options = ["--port", str(port), "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--protocol", scheme]
    process = _started("scheduler", *options, log=log, program=ROOT, environ=environ)
    return Cluster(folder, Process(process, log), port, scheme)


def _started(
    kind: str, *arguments: str | Path, log: Path, program: Path, environ: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    command = mortal(sys.executable, "-m", f"distributed.cli.dask_{kind}", "--host", "127.0.0.1", *arguments)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    ours = {
        "DASK_CONFIG": str(log.parent),  # instead of the user's configuration of Dask
        "DASK_TEMPORARY_DIRECTORY": str(log.parent),
        "PYTHONPATH": str(program),
        "PYTHONUNBUFFERED": "1",
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=log.parent, env={**kept, **ours, **environ}, stdin=subprocess.DEVNULL, stdout=output,
            stderr=output,
        )  # fmt: skip
