"""nginx with the router compared with nginx serving the same files by name, and the router's cost in njs.

`python -m tests.bench.serving`. One nginx process each, so that rates are rates of one core.
"""

import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from generator.api.contract import SORTS, STATUS_FILTERS
from generator.api.keys import DETAILS, MARKETS
from generator.edge import router
from tests.bench import databases, parts
from tests.bench.runner import Runner, product, provided, say
from tests.bench.tables import Goal, shown, table
from tests.support.builds import NOW, make_config
from tests.support.engines import Request, in_quickjs
from tests.support.servers import free_port, nginx

_MARKETS: Final = 400
_SECONDS: Final = 4
_CONNECTIONS: Final = 32
_LIMITS: Final = (5, 20, 50)
#: CloudFront stops a function that takes longer, according to AWS's documentation.
_BUDGET_US: Final = 1_000
_LOOPS: Final = 200
#: Pattern → replacement: turns the rendered configuration into one that serves files by name.
_PLAIN: Final = (
    (r"load_module [^;]*;", ""),
    (r"js_(path|import|set) [^;]*;", ""),
    (r"(map|geo) \$\w+ [^}]*}", ""),
    (r"limit_req_(zone|status|log_level) [^;]*;", ""),
    (r"limit_req zone=[^;]*;", ""),
    (r"try_files /\$\w+_key @respond;", "try_files $uri =404;"),
    (r"add_header (X-As-Of|Link) \$\w+;", ""),
    (r"add_header Cache-Control \$\w+ always;", 'add_header Cache-Control "public, max-age=10" always;'),
    (r"location @respond \{[^}]*\}", ""),
)
_ROUTER: Final = "router.conf"
_FILES: Final = "plain.conf"
_NAMES: Final = {_ROUTER: "nginx with the router and its rate limit", _FILES: "nginx, plain files"}


@dataclass(frozen=True)
class _Load:
    """What wrk reported of a run, and the CPU time of nginx's worker."""

    requests: int
    seconds: float
    p99_ms: float
    cpu_s: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU time per request, in microseconds."""
        return self.cpu_s / self.requests * 1e6


def run(runner: Runner) -> Iterator[str]:
    """Measure nginx, then the router alone."""
    markets = runner.options.markets(_MARKETS)
    path = databases.realistic(runner, markets)
    output, port = runner.new("serving"), free_port()
    url = f"http://127.0.0.1:{port}"
    site = {"base_url": url, "rate_limit__requests": 1_000_000, "source__url": databases.url(path), "output": output}
    runner.measured(product("build", "--as-of", NOW, folder=runner.root, **site))
    asked = _requests(output)
    core = router.render(make_config(runner.root, base_url=url))
    found = [str(response["key"]) for response in in_quickjs(core, asked, runner.root)]
    yield f"## Serving: {len(asked)} different list pages and details of {markets:,} markets"
    yield ""
    yield from _nginx(runner, output, port, asked, found)
    yield from _njs(runner, core, asked)


def _requests(output: Path) -> list[Request]:
    """First pages, later pages and details, each once."""
    path, asked = f"/{MARKETS}", []
    for status in STATUS_FILTERS:
        for sort in SORTS:
            for limit in _LIMITS:
                query = f"status={status}&sort={sort}&limit={limit}"
                asked.append(("GET", path, query))
                page = json.loads(output.joinpath(f"{MARKETS}/lists/{status}/{sort}/first/{limit}.json").read_bytes())
                if cursor := page["nextCursor"]:
                    asked.append(("GET", path, f"{query}&cursor={cursor}"))
    details = sorted(file.stem for file in output.joinpath(DETAILS).rglob("*.json"))[: len(asked)]
    asked += [("GET", f"{path}/{market_id}", "") for market_id in details]
    random.Random(1).shuffle(asked)  # noqa: S311 - the same order every time
    return asked


# ── nginx ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _nginx(runner: Runner, output: Path, port: int, asked: Sequence[Request], found: Sequence[str]) -> Iterator[str]:
    wrk = runner.program("wrk", "nginx with and without the router; `make bench-deps` installs it")
    if wrk is None:
        return
    targets = {_ROUTER: runner.root / "asked", _FILES: runner.root / "found"}
    asked_for = (f"{path}?{query}" if query else path for _, path, query in asked)
    targets[_ROUTER].write_text("\n".join(asked_for) + "\n", "utf-8")
    targets[_FILES].write_text("".join(f"/{key}\n" for key in found), "utf-8")
    _configure(output)
    loads: dict[str, list[_Load]] = {name: [] for name in targets}
    for number in range(runner.options.rounds):
        for name in random.sample([*targets], len(targets)):
            server = nginx(output, port, name)
            with provided(runner, "nginx", "`make test-deps` installs it", _started(server)) as is_there:
                if not is_there:
                    return
                loads[name].append(_loaded(wrk, port, targets[name], output))
            say(f"  round {number + 1} of {runner.options.rounds}: {name}: {loads[name][-1].rate:,.0f} requests/s")
    yield from _nginx_table(loads)


@contextmanager
def _started(server: object) -> Iterator[bool]:
    with server:  # type: ignore[attr-defined]
        yield True


def _configure(output: Path) -> None:
    """Write two variants of the rendered configuration, both with one process: with and without the router."""
    folder = output / "edge" / "nginx"
    rendered = folder.joinpath("nginx.conf").read_text("utf-8")
    text = _replaced(rendered, r"worker_processes auto;", "worker_processes 1;")
    folder.joinpath(_ROUTER).write_text(text, "utf-8")
    for pattern, replacement in _PLAIN:
        text = _replaced(text, pattern, replacement)
    folder.joinpath(_FILES).write_text(text, "utf-8")


def _replaced(text: str, pattern: str, replacement: str) -> str:
    changed, count = re.subn(pattern, lambda _: replacement, text)
    if count == 0:
        raise SystemExit(f"the rendered nginx.conf has no {pattern}; update tests/bench/serving.py")
    return changed


def _loaded(wrk: str, port: int, targets: Path, output: Path) -> _Load:
    """Run wrk over all targets for some seconds."""
    script = Path(__file__).with_name("targets.lua")
    command: list[str | Path] = [
        wrk, "-t1", f"-c{_CONNECTIONS}", f"-d{_SECONDS}s", "--latency", "-s", script, f"http://127.0.0.1:{port}",
    ]  # fmt: skip
    before = _cpu_s(output)
    environ = {**os.environ, "TARGETS": str(targets)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    cpu_s = _cpu_s(output) - before
    reported = json.loads(done.stdout.splitlines()[-1])
    if reported.pop("errors"):
        raise SystemExit(f"wrk reported errors:\n{done.stdout}")
    return _Load(**reported, cpu_s=cpu_s)


def _cpu_s(output: Path) -> float:
    """CPU seconds used so far by the workers of the nginx in this folder."""
    master = output.joinpath("edge", "nginx", "nginx.pid").read_text("utf-8").strip()
    workers = Path(f"/proc/{master}/task/{master}/children").read_text("utf-8").split()
    ticks = 0
    for worker in workers:
        fields = Path(f"/proc/{worker}/stat").read_text("utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _nginx_table(loads: dict[str, list[_Load]]) -> Iterator[str]:
    plain = median(load.rate for load in loads[_FILES])
    rows = [
        [
            _NAMES[name],
            f"{median(load.rate for load in runs) / plain:.2f}",
            f"{median(load.rate for load in runs):,.0f}",
            f"{median(load.cpu_us for load in runs):.1f}",
            f"{median(load.p99_ms for load in runs):.1f}",
        ]
        for name, runs in loads.items()
    ]
    yield from table(["", "x plain", "requests/s", "CPU us a request", "99th percentile ms"], rows)
    costs = [median(load.cpu_us for load in loads[name]) for name in (_ROUTER, _FILES)]
    yield f"\n- router and rate limit cost {costs[0] - costs[1]:.1f} us of CPU time a request in nginx"
    yield f"- {_CONNECTIONS} connections of wrk on the same machine, {_SECONDS} s a run, without gzip"


# ── the router alone ──────────────────────────────────────────────────────────────────────────────────────────────

_TIMED: Final = """
const crypto = require('crypto');
function digest(text) { return crypto.createHash('sha256').update(text).digest('hex'); }
const KINDS = %s;
const costs = {};
for (const kind in KINDS) {
  const requests = KINDS[kind];
  const begin = Date.now();
  let count = 0;
  while (count < %d || Date.now() - begin < 300) {
    for (let number = 0; number < requests.length; number++) {
      route(requests[number][0], requests[number][1], requests[number][2], digest);
    }
    count += requests.length;
  }
  costs[kind] = (Date.now() - begin) * 1000 / count;
}
console.log(JSON.stringify(costs));
"""


def _njs(runner: Runner, core: str, asked: Sequence[Request]) -> Iterator[str]:
    kinds = {
        "a market": [request for request in asked if not request[2]][:50],
        "a first page": [request for request in asked if request[2] and "cursor" not in request[2]][:50],
        "a later page": [request for request in asked if "cursor" in request[2]][:50],
        "the worst 400": [("GET", f"/{MARKETS}", "status=%6fpen&sort=nosuch&limit=101&cursor=" + "a" * 200)],
    }
    script = runner.root / "router.js"
    script.write_text(core + _TIMED % (json.dumps(kinds), _LOOPS), "utf-8")
    rows: dict[str, list[str]] = {kind: [] for kind in kinds}
    engines, worst = [], 0.0
    for engine in ("njs", "node"):
        if shutil.which(engine) is None:
            runner.not_measured(f"the router in {engine}", "`make test-deps` installs it")
            continue
        engines.append(engine)
        runs = [_timed(engine, script) for _ in range(runner.options.rounds)]
        for kind in kinds:
            rows[kind].append(shown(median(run[kind] for run in runs)))
        if engine == "njs":
            worst = max(median(run[kind] for run in runs) for kind in kinds)
    yield ""
    yield from table(["the router alone, us a request", *engines], [[kind, *found] for kind, found in rows.items()])
    yield ""
    if worst:
        yield Goal(
            f"most expensive request in njs, share of CloudFront's {_BUDGET_US} us", worst / _BUDGET_US, 0.5
        ).line()
        yield "- measured on this machine in njs, which has the features of CloudFront's runtime"


def _timed(engine: str, script: Path) -> dict[str, float]:
    done = subprocess.run([engine, script], capture_output=True, text=True, check=True)
    costs: dict[str, float] = json.loads(done.stdout)
    return costs


if __name__ == "__main__":
    parts.main(run)
