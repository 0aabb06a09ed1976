"""How long a publish takes beside other ways to upload the same files: `python -m tests.bench.publish`.

It makes a demo of some 10,000 objects and has every client bring them to the tests' S3 server, which is a process of
its own: all of them, again without a change, and with 1 % changed. Rounds go through the clients in random order; the
table shows medians. The server is written in Python, so it bounds the fastest client. Run it on a quiet machine.
"""

import argparse
import json
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

from tests.s3_server import BUCKET
from tests.s3_servers import SeparateServer, separate_s3_server
from tests.support import NOW, ROOT, files, insert_order, run

_MARKETS: Final = 150
_ROUNDS: Final = 5
_LATENCIES_S: Final = (0.0, 0.02)
_CHANGED: Final = 0.01
_BEFORE: Final = "before"
_AFTER: Final = "after"
#: What each client does in turn, and the folder that it publishes.
_STEPS: Final = {"first": _BEFORE, "unchanged": _BEFORE, "1 % changed": _AFTER}
_AWS: Final = "aws s3 sync"
_CLIENTS: Final = ("public-markets (obstore)", "public-markets (boto3)", _AWS)
#: Where AWS clients look, so that nothing of the user's own gets in.
_ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "PYTHONPATH": str(ROOT),
}


@dataclass(frozen=True)
class Case:
    """What one client does in one step, behind so much latency."""

    client: str
    latency_s: float
    step: str


@dataclass(frozen=True)
class Measured:
    """What a run took. CPU time and memory are the client's alone."""

    wall_s: float
    cpu_s: float
    rss_mib: float
    requests: int
    uploaded: int


# ── what is published ─────────────────────────────────────────────────────────────────────────────────────────────


def make_site(folder: Path, markets: int) -> tuple[int, int]:
    """Build two states in `folder`; returns how many objects the first has, and how many differ in the second."""
    folder.joinpath("config.yaml").touch()
    _succeed("demo", "--markets", markets, "--as-of", NOW, "--set", f"output={_BEFORE}", cwd=folder)
    # With their times, by which `aws s3 sync` tells what changed.
    shutil.copytree(folder / _BEFORE, folder / _AFTER)
    before = files(folder / _BEFORE)
    _change_details(folder / "demo.db", round(len(before) * _CHANGED))
    _succeed("build", "--as-of", NOW, "--set", f"output={_AFTER}", cwd=folder)
    changed = {key for key, body in files(folder / _AFTER).items() if before.get(key) != body}
    for key in changed:
        # As if it had been built after the first state was published.
        os.utime(folder / _AFTER / key, (time.time() + 86_400,) * 2)
    return len(before), len(changed)


def _change_details(database: Path, count: int) -> None:
    """A resting order shows in its market's detail and nowhere else."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        visible = "SELECT id FROM markets WHERE approval = 'approved' AND is_listed ORDER BY id LIMIT ?"
        for (market_id,) in connection.execute(visible, [count]).fetchall():
            insert_order(connection, market_id=market_id)


def _succeed(*arguments: str | int, cwd: Path) -> None:
    done = run(*map(str, arguments), cwd=cwd)
    if done.returncode:
        raise SystemExit(done.stderr)


# ── how it is measured ────────────────────────────────────────────────────────────────────────────────────────────


def rounds(folder: Path, clients: Iterable[str], count: int, aws: str) -> Iterator[tuple[Case, Measured]]:
    """Measure every step of every client behind every latency, `count` times."""
    pairs = [*product(clients, _LATENCIES_S)]
    for number in range(count):
        random.shuffle(pairs)
        for client, latency_s in pairs:
            _say(f"round {number + 1} of {count}: {client}, {latency_s * 1000:.0f} ms")
            with separate_s3_server() as server:
                server.behave(latency_s=latency_s)
                for step, state in _STEPS.items():
                    command = _command(client, folder / state, server.url, aws)
                    yield Case(client, latency_s, step), _measured(command, folder, server)


def _command(client: str, state: Path, url: str, aws: str) -> list[str]:
    if client == _AWS:
        return [
            aws, "s3", "sync", f"{state}/v1", f"s3://{BUCKET}/site/v1", "--delete", "--only-show-errors",
            "--endpoint-url", url,
        ]  # fmt: skip
    settings = {
        "output": state,
        "publish.target": f"s3://{BUCKET}/site",
        "publish.endpoint_url": url,
        "publish.client": client.partition("(")[2].rstrip(")"),
    }
    overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "generator", "publish", *overrides]


def _measured(command: list[str], folder: Path, server: SeparateServer) -> Measured:
    seen = len(server.log())
    measure = [sys.executable, "-m", "tests.bench.measure"]
    environment = {**os.environ, **_ENVIRONMENT}
    done = subprocess.run([*measure, *command], cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} ended with {done.returncode}")
    asked = server.log()[seen:]
    uploaded = sum(one["operation"] == "PutObject" and "/v1/" in one["key"] for one in asked)
    return Measured(**json.loads(done.stdout), requests=len(asked), uploaded=uploaded)


# ── what is told ──────────────────────────────────────────────────────────────────────────────────────────────────


def table(results: Mapping[Case, list[Measured]]) -> Iterator[str]:
    """The medians as a Markdown table."""
    yield "| client | latency | publish | wall s | objects/s | CPU s | peak RSS MiB | requests |"
    yield "|---|---|---|---|---|---|---|---|"
    for one, found in results.items():
        uploaded = median(each.uploaded for each in found)
        wall_s = median(each.wall_s for each in found)
        figures = [
            f"{wall_s:.2f}",
            f"{uploaded / wall_s:,.0f}" if uploaded else "",
            f"{median(each.cpu_s for each in found):.2f}",
            f"{median(each.rss_mib for each in found):.0f}",
            f"{median(each.requests for each in found):,.0f}",
        ]
        yield f"| {one.client} | {one.latency_s * 1000:.0f} ms | {one.step} | {' | '.join(figures)} |"


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


def _present(aws: str) -> Iterator[str]:
    for client in _CLIENTS:
        if client == _AWS and shutil.which(aws) is None:
            _say(f"NOT MEASURED: {_AWS}, because there is no program {aws}; install awscli or name it with --aws")
        else:
            yield client


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.publish", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--markets", type=int, default=_MARKETS, help="of the demo; 150 make some 10,000 objects")
    parser.add_argument("--aws", default="aws", help="the AWS command line; a version manager's shim costs extra")
    options = parser.parse_args()
    clients = [*_present(options.aws)]
    results: dict[Case, list[Measured]] = {Case(*one): [] for one in product(clients, _LATENCIES_S, _STEPS)}
    with tempfile.TemporaryDirectory() as name:
        objects, changed = make_site(Path(name), options.markets)
        for one, measured in rounds(Path(name), clients, options.rounds, options.aws):
            results[one].append(measured)
    lines = [f"{objects} objects, {changed} of them changed; medians of {options.rounds} rounds.", "", *table(results)]
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
