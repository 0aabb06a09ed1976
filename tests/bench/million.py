"""A first build of a large PostgreSQL database with a Dask cluster on this machine, stage by stage.

    make bench ONLY=cluster OPTIONS='--million postgresql://…'

The coordinator works alone, or while workers do. From the two shares we calculate how long a build with more workers
would take: by elapsed time and, because other programs slow that down, by CPU time.
"""

import json
import os
import subprocess
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tests.bench import databases, local_cluster, processes
from tests.bench.local_cluster import SCHEDULER
from tests.bench.processes import Sample, Watch
from tests.bench.runner import Runner, product, say
from tests.bench.tables import Goal, table
from tests.support.sites.builds import NOW, ROOT

COORDINATOR: Final = "coordinator"
DATABASE: Final = "PostgreSQL"
#: Before the first stage, and after the last.
START: Final = "start"
END: Final = "end"
#: The numbers of workers for which the duration is calculated.
_CALCULATED: Final = (2, 8, 32)
#: A worker that uses less than this share of a processor, over this many seconds, is idle: it only sends heartbeats.
_IDLE: Final = 0.08
_WINDOW_S: Final = 2.0
_MOST_SERIAL_S: Final = 120
_MOST_MIB: Final = 2048


@dataclass
class Part:
    """Seconds of a stage: elapsed, elapsed while the coordinator worked alone, and of CPU by process.

    `beside_s` is the coordinator's CPU time while workers worked, `database_beside_s` that of the server.
    """

    wall_s: float = 0.0
    alone_s: float = 0.0
    coordinator_s: float = 0.0
    beside_s: float = 0.0
    scheduler_s: float = 0.0
    workers_s: float = 0.0
    database_s: float = 0.0
    database_beside_s: float = 0.0

    def __add__(self, other: "Part") -> "Part":
        return Part(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def clock(self) -> "Model":
        """The shares by elapsed time."""
        return self._model(self.alone_s)

    @property
    def cpu(self) -> "Model":
        """The shares by CPU time: the coordinator's while alone includes the server's on its behalf."""
        own, server = self.coordinator_s - self.beside_s, self.database_s - self.database_beside_s
        return self._model(own + server)

    def _model(self, alone_s: float) -> "Model":
        return Model(alone_s, self.beside_s, self.scheduler_s, self.workers_s + self.database_beside_s)


@dataclass(frozen=True)
class Model:
    """Seconds of the coordinator alone and while workers work, of the scheduler, and of ranges.

    Ranges take the CPU time of workers and of the server, for which workers wait.
    """

    alone_s: float
    beside_s: float
    scheduler_s: float
    ranges_s: float

    @property
    def serial_s(self) -> float:
        """What more workers cannot shorten."""
        return self.alone_s + self.beside_s

    def calculated_s(self, workers: int) -> float:
        """The duration in seconds with so many workers, if each process has a processor to itself."""
        return self.alone_s + max(self.beside_s, self.scheduler_s, self.ranges_s / workers)


@dataclass(frozen=True)
class Watched:
    """A build: its samples, the moment (seconds since 1970) when each stage ended, in order, and its last line."""

    watch: Watch
    ends: Mapping[str, float]
    summary: str


def run(runner: Runner, url: str) -> Iterator[str]:
    """Build once, and say where the time went."""
    with local_cluster.running(url, runner.root) as cluster:
        roots = dict(cluster.pids)
        if database := databases.server_process(url):
            roots[DATABASE] = database
        built = _built(runner, url, cluster.address, roots)
    stages = parts(built.watch.samples, built.ends, cluster.workers)
    whole = sum(stages.values(), Part())
    yield f"## Cluster of {len(cluster.workers)} workers on this machine: a first build in `chunks`"
    yield ""
    yield built.summary
    yield ""
    yield from _stages({**stages, "in all": whole})
    yield ""
    yield from table(["", "peak MiB"], [[name, f"{peak:.0f}"] for name, peak in built.watch.peaks.items()])
    yield ""
    yield from _calculated(whole)
    yield ""
    for name, model in (("by the clock", whole.clock), ("by CPU time", whole.cpu)):
        yield Goal(
            f"serial s {name}, the coordinator's CPU beside workers included", model.serial_s, _MOST_SERIAL_S
        ).line()
    largest = max(peak for name, peak in built.watch.peaks.items() if name != DATABASE)
    yield Goal("MiB, peak of a process", largest, _MOST_MIB).line()


def _built(runner: Runner, url: str, address: str, roots: Mapping[str, int]) -> Watched:
    settings = {"output": runner.new("million"), "layout": "chunks", "cluster": address}
    command = product("build", "--log-format", "json", "--as-of", NOW, folder=runner.root, **settings)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PUBLIC_MARKETS_SOURCE__URL": url}
    result, log = runner.root / "result.json", runner.root / "log.json"
    say("building")
    with result.open("wb") as stdout, log.open("wb") as stderr:
        process = subprocess.Popen(
            [*map(str, command.arguments)], cwd=command.cwd, env=environ, stdout=stdout, stderr=stderr
        )
        with processes.watched({COORDINATOR: process.pid, **roots}, whole=[COORDINATOR, DATABASE]) as watch:
            status = process.wait()
    if status:
        raise SystemExit(f"the build ended with {status}:\n{log.read_text('utf-8')[-2000:]}")
    return Watched(watch, ends(_lines(log)), _lines(result)[-1]["message"])


def _lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def ends(log: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """When stages ended, according to the build's log; START ends where the first of them began."""
    found = {line["stage"]: datetime.fromisoformat(line["time"]).timestamp() for line in log if "stage" in line}
    first = next(line for line in log if "stage" in line)
    return {START: found[first["stage"]] - first["duration_ms"] / 1000, **found}


def parts(samples: Sequence[Sample], ends: Mapping[str, float], workers: Sequence[str]) -> dict[str, Part]:
    """The seconds of each stage, from samples of all processes."""
    found = {name: Part() for name in (*ends, END)}
    for span in pairwise(samples):
        stage = next((name for name, end in ends.items() if _middle(span) < end), END)
        around = _around(samples, _middle(span))
        is_beside = any(_used(around, name) > _IDLE * _length(around) for name in workers)
        found[stage] += _part(span, workers, is_beside=is_beside)
    return found


def _around(samples: Sequence[Sample], moment: float) -> tuple[Sample, Sample]:
    """The samples before and after a moment, a window apart."""
    first = bisect_right(samples, moment - _WINDOW_S / 2, key=_time)
    last = bisect_left(samples, moment + _WINDOW_S / 2, key=_time)
    return samples[max(first - 1, 0)], samples[min(last, len(samples) - 1)]


def _time(sample: Sample) -> float:
    return sample.time


def _part(span: tuple[Sample, Sample], workers: Sequence[str], *, is_beside: bool) -> Part:
    coordinator, database = _used(span, COORDINATOR), _used(span, DATABASE)
    return Part(
        wall_s=_length(span),
        alone_s=0 if is_beside else _length(span),
        coordinator_s=coordinator,
        beside_s=coordinator if is_beside else 0,
        scheduler_s=_used(span, SCHEDULER),
        workers_s=sum(_used(span, name) for name in workers),
        database_s=database,
        database_beside_s=database if is_beside else 0,
    )


def _used(span: tuple[Sample, Sample], name: str) -> float:
    before, after = span
    return after.cpu_s.get(name, 0.0) - before.cpu_s.get(name, 0.0)


def _length(span: tuple[Sample, Sample]) -> float:
    return span[1].time - span[0].time


def _middle(span: tuple[Sample, Sample]) -> float:
    return (span[0].time + span[1].time) / 2


def _stages(stages: Mapping[str, Part]) -> Iterator[str]:
    rows = []
    for name, part in stages.items():
        cpu = (part.coordinator_s, part.beside_s, part.scheduler_s, part.workers_s, part.database_s)
        rows.append([name, *(f"{seconds:.1f}" for seconds in (part.wall_s, part.alone_s, *cpu))])
    cpu_of = [COORDINATOR, "of that beside workers", SCHEDULER, "workers", DATABASE]
    yield from table(["stage", "wall s", "coordinator alone", *(f"CPU s: {name}" for name in cpu_of)], rows)


def _calculated(whole: Part) -> Iterator[str]:
    models = (whole.clock, whole.cpu)
    rows = [[f"{number}", *(f"{model.calculated_s(number):.0f}" for model in models)] for number in _CALCULATED]
    yield from table(["workers", "s, **calculated** by the clock", "by CPU time"], rows)
    yield ""
    yield (
        f"Calculated, not measured: the coordinator alone ({whole.clock.alone_s:.0f} s by the clock; "
        f"{whole.cpu.alone_s:.0f} s of CPU, PostgreSQL's for it included), and the longest of its CPU time beside "
        f"workers ({whole.beside_s:.0f} s), the scheduler's ({whole.scheduler_s:.0f} s), and the share of each worker "
        f"in the {whole.cpu.ranges_s:.0f} s of CPU that ranges take in workers and in PostgreSQL. Each process has a "
        "processor then, and PostgreSQL as many as it can use."
    )
