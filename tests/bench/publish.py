"""A publish compared with other programs that upload the same files: `make bench ONLY=publish`.

Every client uploads a demo of some 10,000 objects to an S3 server in memory, and again without a change. Client and
server share the machine; CPU time and memory are the client's alone.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import databases
from tests.bench.buckets import Counts, compiled, running
from tests.bench.runner import Command, Runner, say
from tests.bench.runner import product as product_command
from tests.bench.tables import TOOK, Measured, figures, table
from tests.support.project import ROOT
from tests.support.sites.builds import NOW, files
from tests.support.stores.s3.server import BUCKET

_MARKETS: Final = 150
_LATENCIES_S: Final = (0.0, 0.02)
_DATABASE: Final = "published.db"
_STATE: Final = "state"
_LONGER: Final = " as it is told by the source that the description names, and in the manner it names?"
#: What each client does in turn.
_FIRST, _UNCHANGED = _STEPS = ("first", "unchanged")
_OURS: Final = "product"
_S5CMD: Final = "s5cmd sync"
_RCLONE: Final = "rclone sync"
_AWS: Final = "aws s3 sync"
_AT_ONCE: Final = 32
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


#: A client, a latency in seconds and a step.
Case = tuple[str, float, str]
#: The measured runs, each with the requests that the server received.
Results = Mapping[Case, Sequence[tuple[Measured, Counts]]]


def run(runner: Runner) -> Iterator[str]:
    """Measure every client at every latency."""
    server = compiled(runner)
    if server is None:
        return
    sizes = make_site(runner)
    found = _measured(runner, server, dict(_clients(runner)))
    yield f"## Publishing {len(sizes):,} objects of {sum(sizes) / len(sizes) / 1e3:.1f} KB on average"
    for latency_s in _LATENCIES_S:
        yield f"\n### {latency_s * 1000:.0f} ms of latency\n"
        yield from _table({case: runs for case, runs in found.items() if case[1] == latency_s})
    yield ""
    yield f"- {_AWS} in one round only, since it takes minutes"


# ── what is published ─────────────────────────────────────────────────────────────────────────────────────────────


def make_site(runner: Runner) -> list[int]:
    """Build what is published; returns the sizes of its objects."""
    say("building the site to publish")
    database = runner.root / _DATABASE
    shutil.copyfile(databases.realistic(runner, runner.options.markets(_MARKETS)), database)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        # Objects of some 8 KB, the size they have with a thousand markets.
        connection.execute("UPDATE markets SET question = question || ?", [_LONGER])
    settings = {"source__url": databases.url(database), "output": runner.root / _STATE}
    runner.measured(product_command("build", "--as-of", NOW, folder=runner.root, **settings))
    return [*map(len, files(runner.root / _STATE).values())]


# ── the clients ───────────────────────────────────────────────────────────────────────────────────────────────────


def _clients(runner: Runner) -> Iterator[tuple[str, Client]]:
    yield _OURS, _ours
    ready = "`make .venv-bench/ready` installs it"
    # The binary itself, not the Python script that starts it.
    s5cmd = next((ROOT / ".venv-bench" / "lib").glob("python*/site-packages/s5cmd/bin/s5cmd"), None)
    if s5cmd:
        yield _S5CMD, lambda state, url: _s5cmd(s5cmd, state, url)
    else:
        runner.not_measured(_S5CMD, ready)
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


def _s5cmd(program: Path, state: Path, url: str) -> Command:
    arguments: list[str | Path] = [program, "--endpoint-url", url, "--log", "error", "sync", "--delete"]
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


def _measured(runner: Runner, server: Path, clients: Mapping[str, Client]) -> Results:
    pairs = [*product(clients, _LATENCIES_S)]
    results: dict[Case, list[tuple[Measured, Counts]]] = {(*pair, step): [] for pair in pairs for step in _STEPS}
    for number in range(runner.options.rounds):
        pairs = [pair for pair in product(clients, _LATENCIES_S) if number < _rounds_of(runner, pair[0])]
        for client, latency_s in random.sample(pairs, len(pairs)):
            times = []
            with running(server, latency_s) as url:
                for step in _STEPS:
                    before = Counts.of(url)
                    taken = runner.measured(clients[client](runner.root / _STATE, url))
                    seen = Counts(*(now - then for now, then in zip(Counts.of(url), before, strict=True)))
                    results[client, latency_s, step].append((taken, seen))
                    times.append(f"{taken.wall_s:.2f} s")
            place = f"round {number + 1} of {runner.options.rounds}"
            say(f"  {place}: {client}, {latency_s * 1000:.0f} ms: {', '.join(times)}")
    return results


# ── the tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def _table(results: Results) -> Iterator[str]:
    rows = []
    for (client, latency_s, step), runs in results.items():
        wall_s = median(taken.wall_s for taken, _ in runs)
        puts = median(seen.puts for _, seen in runs)
        relative = wall_s / median(taken.wall_s for taken, _ in results[_OURS, latency_s, step])
        rows.append([
            f"{client}, {step}",
            f"{relative:.2f}",
            f"{puts / wall_s:,.0f}" if puts > 1 else "",
            f"{median(seen.requests for _, seen in runs):,.0f}",
            f"{puts:,.0f}",
            *figures([taken for taken, _ in runs]),
        ])  # fmt: skip
    yield from table(["", "wall x product", "objects/s", "requests", "puts", *TOOK], rows)
