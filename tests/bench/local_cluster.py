"""A Dask scheduler and workers on this machine, started as an operator starts them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.bench import processes
from tests.bench.runner import say
from tests.support.edges.servers import free_port
from tests.support.sites.builds import ROOT
from tests.support.waiting import PATIENCE_S

#: Workers, of one thread each.
WORKERS: Final = 2
SCHEDULER: Final = "scheduler"
NANNY: Final = "nanny"
#: As in docs/cluster.md: a worker's profiler takes a seventh of its CPU time, getting back memory that it need not have
#: returned a fifteenth, and ticks take some even when it waits.
_RECOMMENDED: Final = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
}


@dataclass(frozen=True)
class LocalCluster:
    """A scheduler that answers at an address, and its processes (ids) by name."""

    address: str
    pids: Mapping[str, int]

    @property
    def workers(self) -> list[str]:
        """The names of its workers."""
        return [name for name in self.pids if name not in {SCHEDULER, NANNY}]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop all processes during the block: while idle, they take a tenth of a processor."""
        for pid in self.pids.values():
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in self.pids.values():
                os.kill(pid, signal.SIGCONT)

    def forget_peaks(self) -> None:
        """Reset the peak memory of all processes."""
        for pid in self.pids.values():
            processes.forget_peak(pid)

    def peak_mib(self) -> float:
        """The peak memory of the largest process."""
        return max(map(processes.peak_mib, self.pids.values()))

    def cpu_s(self) -> float:
        """CPU seconds that all its processes have used."""
        return processes.cpu_s(self.pids.values())


@contextmanager
def running(url: str, folder: Path, workers: int = WORKERS) -> Iterator[LocalCluster]:
    """Run a cluster, whose workers read the database at `url`, during the block; its files go to `folder`."""
    address = f"tcp://127.0.0.1:{free_port()}"
    common = ["--no-dashboard"]
    started = []
    say(f"starting a Dask scheduler and {workers} workers")
    try:
        started.append(_start(folder, url, "dask_scheduler", "--host", address, *common))
        count = ["--nworkers", str(workers), "--nthreads", "1"]
        started.append(_start(folder, url, "dask_worker", address, *count, "--local-directory", folder, *common))
        scheduler, nanny = (process.pid for process in started)
        named = {f"worker {number}": pid for number, pid in enumerate(_worker_pids(address, workers), 1)}
        yield LocalCluster(address, {SCHEDULER: scheduler, NANNY: nanny, **named})
    finally:
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            _end(process)


def _start(folder: Path, url: str, module: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
    environ = {**os.environ, **_RECOMMENDED, "PYTHONPATH": str(ROOT), "PUBLIC_MARKETS_SOURCE__URL": url}
    command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
    with (folder / f"{module}.log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)


def _worker_pids(address: str, workers: int) -> list[int]:
    """The process ids of the workers, once all have joined."""
    distributed: Any = import_module("distributed")  # untyped; only here, as other benchmarks need no Dask
    with distributed.Client(address, timeout=PATIENCE_S, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=PATIENCE_S)
        return sorted(client.run(os.getpid).values())


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
