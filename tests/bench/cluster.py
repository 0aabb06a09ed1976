"""Builds with a Dask cluster on this machine, compared with forked workers: `python -m tests.bench.cluster`.

Both read the same PostgreSQL database, with `detail_version` and `fills_window_step`, in `chunks`: a first build, and a
rebuild five minutes later, after some trades. CPU time is that of the build, its workers and the scheduler; the
database server's is shown separately.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import change, databases, local_cluster, parts, processes
from tests.bench.local_cluster import LocalCluster
from tests.bench.runner import Runner, product, same_files, say
from tests.bench.tables import TOOK, Goal, Measured, figures, ratio, table, walls
from tests.support.sites.builds import AS_OF

MARKETS: Final = 20_000
_FORKED: Final = "forked workers"
_CLUSTER: Final = f"cluster of {local_cluster.WORKERS} workers"
_WAYS: Final = (_FORKED, _CLUSTER)
_FIRST: Final = "first build"
_REBUILD: Final = f"rebuild, {change.TRADED} markets traded"
#: The minute of each build of a round.
_BUILDS: Final = {_FIRST: 0, _REBUILD: change.SCHEDULE}
_MOST: Final = 1.2


@dataclass(frozen=True)
class Build:
    """A build, and the CPU seconds that the database server took meanwhile."""

    taken: Measured
    database_s: float


#: The builds of all rounds, by what was built and how.
Builds = Mapping[tuple[str, str], list[Build]]


def run(runner: Runner) -> Iterator[str]:
    """Compare forked workers with a cluster."""
    markets = runner.options.markets(MARKETS)
    yield f"## Cluster: {markets:,} markets from PostgreSQL in `chunks`"
    yield ""
    with databases.postgresql(runner) as server:
        if not server:
            return
        say("copying the database to PostgreSQL")
        url = databases.copied(server, databases.realistic(runner, markets))
        databases.add_postgresql_versions(url)
        with local_cluster.running(url, runner.root) as cluster:
            builds = _Race(runner, url, cluster).builds()
    yield from _table(builds)
    yield ""
    yield from _goals(builds)
    yield "- both wrote the same bytes, checked file by file"


@dataclass(frozen=True)
class _Race:
    """Both ways of building one database."""

    runner: Runner
    url: str
    cluster: LocalCluster

    def builds(self) -> Builds:
        """Each build in both ways, in random order, in every round."""
        found: dict[tuple[str, str], list[Build]] = {(name, way): [] for name in _BUILDS for way in _WAYS}
        rounds = self.runner.options.rounds
        for number in range(1, rounds + 1):
            self.runner.rest_if_full()
            self.runner.wait_for_disk()
            outputs = {way: self.runner.new(way) for way in _WAYS}
            for name, minutes in _BUILDS.items():
                if name == _REBUILD:
                    databases.trade_on_postgresql(self.url, change.TRADED, seed=number)
                for way in random.sample(_WAYS, len(_WAYS)):
                    made = self._build(way, outputs[way], minutes)
                    say(f"  round {number} of {rounds}: {name}, {way}: {made.taken.wall_s:.2f} s")
                    found[name, way].append(made)
                same_files(outputs[_FORKED] / "v1", outputs[_CLUSTER] / "v1")
        return found

    def _build(self, way: str, output: Path, minutes: int) -> Build:
        """Build with the cluster, or while it is paused."""
        has_cluster, cluster = way == _CLUSTER, self.cluster
        settings = {"output": output, "layout": "chunks", "fills_window_step": "1 h"}
        settings |= {"cluster": cluster.address} if has_cluster else {}
        as_of = (AS_OF + timedelta(minutes=minutes)).isoformat()
        command = product("build", "--as-of", as_of, folder=self.runner.root, **settings)
        command = replace(command, environ={"PUBLIC_MARKETS_SOURCE__URL": self.url})
        database = databases.server_process(self.url)
        cluster.forget_peaks()
        before = _cpu_s(database), cluster.cpu_s()
        with nullcontext() if has_cluster else cluster.paused():
            taken = self.runner.measured(command)
        database_s, workers_s = _cpu_s(database) - before[0], cluster.cpu_s() - before[1]
        if has_cluster:
            taken = replace(taken, cpu_s=taken.cpu_s + workers_s, rss_mib=max(taken.rss_mib, cluster.peak_mib()))
        return Build(taken, database_s)


def _cpu_s(database: int | None) -> float:
    return processes.cpu_s(processes.family(database)) if database else 0.0


def _table(builds: Builds) -> Iterator[str]:
    rows = []
    for (name, way), found in builds.items():
        server = f"{median(build.database_s for build in found):.2f}"
        rows.append([f"{name}: {way}", *figures([build.taken for build in found]), server])
    yield from table(["", *TOOK, "CPU s of PostgreSQL"], rows)


def _goals(builds: Builds) -> Iterator[str]:
    for name in _BUILDS:
        ours, theirs = ([build.taken for build in builds[name, way]] for way in (_CLUSTER, _FORKED))
        compared = f"{name}: {_CLUSTER} ÷ {_FORKED}"
        yield Goal(f"wall time, {compared}", ratio(walls(ours), walls(theirs)), _MOST).line()
        cpu = ([run.cpu_s for run in runs] for runs in (ours, theirs))
        yield Goal(f"CPU time, {compared}", ratio(*cpu), _MOST).line()


if __name__ == "__main__":
    parts.main(run)
