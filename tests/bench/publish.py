"""A publish compared with other programs that upload the same files: `make bench ONLY=publish`.

Every client uploads a demo of some 10,000 objects to an S3 server in memory: all of them, again without a change, and
with 1 % changed. One that only copies does the first. Client and server share the machine; CPU time and memory are the
client's alone.
"""

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import databases
from tests.bench.buckets import Buckets, Counts
from tests.bench.runner import Command, Runner, say
from tests.bench.runner import product as product_command
from tests.bench.tables import TOOK, Goal, Measured, figures, ratio, table, walls
from tests.support.project import ROOT
from tests.support.sites.builds import NOW, files
from tests.support.sites.rows import insert_order
from tests.support.stores.s3.server import BUCKET

_MARKETS: Final = 150
_LATENCIES_S: Final = (0.0, 0.02)
_CHANGED: Final = 0.01
_DATABASE: Final = "published.db"
_BEFORE: Final = "before"
_AFTER: Final = "after"
_LONGER: Final = " as it is told by the source that the description names, and in the manner it names?"
#: What each client does in turn, and the folder that it publishes.
_FIRST: Final = "first"
_STEPS: Final = {_FIRST: _BEFORE, "unchanged": _BEFORE, "1 % changed": _AFTER}
_OURS: Final = "product"
_S5CMD: Final = "s5cmd sync"
_S5CMD_COPY: Final = "s5cmd cp"
_RCLONE: Final = "rclone sync"
_AWS: Final = "aws s3 sync"
_AT_ONCE: Final = 32
_REQUESTS_OF_UNCHANGED: Final = 5
#: Overrides the user's own AWS configuration.
_ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "RCLONE_CONFIG": "",
}

#: The folder of a state, the URL of a server → the command that publishes the folder there.
Client = Callable[[Path, str], Command]


@dataclass(frozen=True)
class Case:
    """A client, a step and a latency."""

    client: str
    latency_s: float
    step: str


@dataclass(frozen=True)
class Published:
    """A measured run, and the requests that the server received."""

    taken: Measured
    counts: Counts


Results = Mapping[Case, Sequence[Published]]


def run(runner: Runner) -> Iterator[str]:
    """Measure every client at every latency."""
    buckets = Buckets.compiled(runner)
    if buckets is None:
        return
    objects, changed, size = make_site(runner)
    found = _measured(runner, buckets, dict(_clients(runner)))
    yield f"## Publishing {objects:,} objects of {size / objects / 1e3:.1f} KB on average, and {changed} changed ones"
    for latency_s in _LATENCIES_S:
        yield f"\n### {latency_s * 1000:.0f} ms of latency\n"
        yield from _table({case: runs for case, runs in found.items() if case.latency_s == latency_s})
    yield ""
    yield from (goal.line() for goal in _goals(found))
    for clients in (1, _AT_ONCE):
        yield f"- the server handles {buckets.ceiling(clients):,.0f} puts/s from {clients} plain sockets of a C program"
    yield f"- {_AWS} in one round only, since it takes minutes"


# ── what is published ─────────────────────────────────────────────────────────────────────────────────────────────


def make_site(runner: Runner) -> tuple[int, int, int]:
    """Build two states; returns the objects of the first, the number changed in the second, the bytes of the first."""
    say("building the site to publish")
    database = runner.root / _DATABASE
    shutil.copyfile(databases.realistic(runner, runner.options.markets(_MARKETS)), database)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        # Objects of some 8 KB, the size they have with a thousand markets.
        connection.execute("UPDATE markets SET question = question || ?", [_LONGER])
    _build(runner, database, _BEFORE)
    # Keeps modification times, which the other clients compare.
    shutil.copytree(runner.root / _BEFORE, runner.root / _AFTER)
    before = files(runner.root / _BEFORE)
    _change_details(database, round(len(before) * _CHANGED))
    _build(runner, database, _AFTER)
    changed = {key for key, body in files(runner.root / _AFTER).items() if before.get(key) != body}
    for key in changed:
        # As if it had been built after the first state was published.
        os.utime(runner.root / _AFTER / key, (time.time() + 86_400,) * 2)
    return len(before), len(changed), sum(map(len, before.values()))


def _build(runner: Runner, database: Path, state: str) -> None:
    settings = {"source__url": databases.url(database), "output": runner.root / state}
    runner.measured(product_command("build", "--as-of", NOW, folder=runner.root, **settings))


def _change_details(database: Path, count: int) -> None:
    """A resting order shows in its market's detail and nowhere else."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        visible = "SELECT id FROM markets WHERE approval = 'approved' AND is_listed ORDER BY id LIMIT ?"
        for (market_id,) in connection.execute(visible, [count]).fetchall():
            insert_order(connection, market_id=market_id)


# ── the clients ───────────────────────────────────────────────────────────────────────────────────────────────────


def _clients(runner: Runner) -> Iterator[tuple[str, Client]]:
    yield _OURS, _ours
    ready = "`make .venv-bench/ready` installs it"
    # The binary itself, not the Python script that starts it.
    s5cmd = next((ROOT / ".venv-bench" / "lib").glob("python*/site-packages/s5cmd/bin/s5cmd"), None)
    if s5cmd:
        yield _S5CMD, lambda state, url: _s5cmd(s5cmd, state, url, "sync", "--delete")
        yield _S5CMD_COPY, lambda state, url: _s5cmd(s5cmd, state, url, "cp")
    else:
        runner.not_measured(f"{_S5CMD} and {_S5CMD_COPY}", ready)
    if rclone := runner.program("rclone", f"{_RCLONE}; `make bench-deps` installs it"):
        yield _RCLONE, lambda state, url: _rclone(rclone, state, url)
    if aws := shutil.which(ROOT / ".venv-bench" / "bin" / "aws"):
        yield _AWS, lambda state, url: _aws(aws, state, url)
    else:
        runner.not_measured(_AWS, ready)


def _ours(state: Path, url: str) -> Command:
    command = product_command(
        "publish",
        folder=state.parent,
        source__url=databases.url(state.parent / _DATABASE),
        output=state,
        publish__target=f"s3://{BUCKET}/site",
        publish__endpoint_url=url,
    )
    return replace(command, environ=_ENVIRONMENT)


def _s5cmd(program: Path, state: Path, url: str, *command: str) -> Command:
    arguments: list[str | Path] = [program, "--endpoint-url", url, "--log", "error", *command]
    return Command([*arguments, f"{state}/v1/", f"s3://{BUCKET}/site/v1/"], state.parent, _ENVIRONMENT)


def _rclone(program: str, state: Path, url: str) -> Command:
    """Compare with the server's listing only; no HEAD request before or after an upload."""
    # rclone does not start with a CA bundle set, and needs none here.
    arguments = [
        program, "sync", f"{state}/v1", f":s3:{BUCKET}/site/v1", "--s3-provider", "Other", "--s3-list-version", "2",
        "--s3-env-auth", "--s3-endpoint", url, "--s3-no-check-bucket", "--s3-no-head", "--ignore-checksum", "--update",
        "--use-server-modtime", "--fast-list", "--retries", "1",
        "--transfers", str(_AT_ONCE), "--checkers", str(_AT_ONCE),
    ]  # fmt: skip
    return Command(arguments, state.parent, {**_ENVIRONMENT, "AWS_CA_BUNDLE": ""})


def _aws(program: str, state: Path, url: str) -> Command:
    arguments = [program, "s3", "sync", f"{state}/v1", f"s3://{BUCKET}/site/v1", "--delete", "--only-show-errors"]
    return Command([*arguments, "--endpoint-url", url], state.parent, _ENVIRONMENT)


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _rounds_of(runner: Runner, client: str) -> int:
    return 1 if client == _AWS else runner.options.rounds


def _steps_of(client: str) -> dict[str, str]:
    """What a client does: one that compares nothing would do the first step again."""
    return {_FIRST: _BEFORE} if client == _S5CMD_COPY else _STEPS


def _measured(runner: Runner, buckets: Buckets, clients: Mapping[str, Client]) -> Results:
    pairs = [*product(clients, _LATENCIES_S)]
    results: dict[Case, list[Published]] = {Case(*pair, step): [] for pair in pairs for step in _steps_of(pair[0])}
    for number in range(runner.options.rounds):
        pairs = [pair for pair in product(clients, _LATENCIES_S) if number < _rounds_of(runner, pair[0])]
        for client, latency_s in random.sample(pairs, len(pairs)):
            times = []
            with buckets.running(latency_s) as server:
                for step, state in _steps_of(client).items():
                    seen = server.counts()
                    taken = runner.measured(clients[client](runner.root / state, server.url))
                    results[Case(client, latency_s, step)].append(Published(taken, server.counts() - seen))
                    times.append(f"{taken.wall_s:.2f} s")
            place = f"round {number + 1} of {runner.options.rounds}"
            say(f"  {place}: {client}, {latency_s * 1000:.0f} ms: {', '.join(times)}")
    return results


# ── the tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def _table(results: Results) -> Iterator[str]:
    rows = []
    for case, runs in results.items():
        ours = results[Case(_OURS, case.latency_s, case.step)]
        wall_s = median(run.taken.wall_s for run in runs)
        puts = median(run.counts.puts for run in runs)
        relative = wall_s / median(run.taken.wall_s for run in ours)
        rows.append([
            f"{case.client}, {case.step}",
            f"{relative:.2f}",
            f"{puts / wall_s:,.0f}" if puts > 1 else "",
            f"{median(run.counts.requests for run in runs):,.0f}",
            f"{puts:,.0f}",
            *figures([run.taken for run in runs]),
        ])  # fmt: skip
    yield from table(["", "wall x product", "objects/s", "requests", "puts", *TOOK], rows)


def _goals(found: Results) -> Iterator[Goal]:
    for latency_s in _LATENCIES_S:
        latency = f"at {latency_s * 1000:.0f} ms"
        unchanged = found[Case(_OURS, latency_s, "unchanged")]
        most = max(run.counts.requests for run in unchanged)
        yield Goal(f"requests of a publish without a change, {latency}", most, _REQUESTS_OF_UNCHANGED)
        ours, synced, copied = (_taken(found, client, latency_s) for client in (_OURS, _S5CMD, _S5CMD_COPY))
        if synced:
            yield Goal(f"first publish ÷ {_S5CMD}, wall, {latency}", ratio(walls(ours), walls(synced)), 1)
            cpu = [[taken.cpu_s for taken in each] for each in (ours, synced)]
            yield Goal(f"first publish ÷ {_S5CMD}, CPU, {latency}", ratio(*cpu), 1)
        # Without latency, what checks every file cannot be as fast as what checks nothing.
        if copied and latency_s:
            yield Goal(f"first publish ÷ {_S5CMD_COPY}, wall, {latency}", ratio(walls(ours), walls(copied)), 1)


def _taken(found: Results, client: str, latency_s: float) -> list[Measured]:
    """The first publishes of a client; none if it was not measured."""
    return [run.taken for run in found.get(Case(client, latency_s, _FIRST), ())]
