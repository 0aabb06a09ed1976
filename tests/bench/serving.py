"""nginx with the router beside nginx that serves the same files by their names, and what the router costs in njs.

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
from tests.bench.tables import Goal, shown, table
from tests.bench.workshop import Workshop, product, provided, say
from tests.support.builds import NOW, make_config
from tests.support.engines import Request, in_quickjs
from tests.support.servers import free_port, nginx

_MARKETS: Final = 400
_SECONDS: Final = 4
_CONNECTIONS: Final = 32
_LIMITS: Final = (5, 20, 50)
#: CloudFront ends a function that takes longer, by what AWS's documentation was found to say.
_BUDGET_US: Final = 1_000
_LOOPS: Final = 200
#: What makes the rendered configuration one that serves files by their names: what is replaced, and by what.
_PLAIN: Final = (
    (r"load_module [^;]*;", ""),
    (r"js_(path|import|set) [^;]*;", ""),
    (r"map \$object_key [^}]*}", ""),
    (r"limit_req_(zone|status|log_level) [^;]*;", ""),
    (r"limit_req zone=[^;]*;", ""),
    (r"try_files /\$object_key @respond;", "try_files $uri =404;"),
    (r"add_header Cache-Control \$object_cache always;", 'add_header Cache-Control "public, max-age=10" always;'),
    (r"location @respond \{[^}]*\}", ""),
)
_ROUTER: Final = "router.conf"
_FILES: Final = "plain.conf"
_NAMES: Final = {_ROUTER: "nginx with the router and its rate limit", _FILES: "nginx, plain files"}


@dataclass(frozen=True)
class _Load:
    """What wrk told of a run, and the CPU time of nginx's worker in it."""

    requests: int
    seconds: float
    p99_ms: float
    cpu_s: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU time of a request."""
        return self.cpu_s / self.requests * 1e6


def run(workshop: Workshop) -> Iterator[str]:
    """Measure nginx, then the router alone."""
    markets = workshop.options.markets(_MARKETS)
    path = databases.lifelike(workshop, markets)
    output, port = workshop.new("serving"), free_port()
    url = f"http://127.0.0.1:{port}"
    site = {"base_url": url, "rate_limit__requests": 1_000_000, "source__url": databases.url(path), "output": output}
    workshop.measured(product("build", "--as-of", NOW, folder=workshop.root, **site))
    asked = _requests(output)
    core = router.render(make_config(workshop.root, base_url=url))
    found = [str(one["key"]) for one in in_quickjs(core, asked, workshop.root)]
    yield f"## Serving: {len(asked)} different list pages and details of {markets:,} markets"
    yield ""
    yield from _nginx(workshop, output, port, asked, found)
    yield from _njs(workshop, core, asked)


def _requests(output: Path) -> list[Request]:
    """First pages, pages further on, and details; every list and market once."""
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


def _nginx(
    workshop: Workshop, output: Path, port: int, asked: Sequence[Request], found: Sequence[str]
) -> Iterator[str]:
    wrk = workshop.program("wrk", "nginx beside nginx; `make bench-deps` installs it")
    if wrk is None:
        return
    targets = {_ROUTER: workshop.root / "asked", _FILES: workshop.root / "found"}
    asked_for = (f"{path}?{query}" if query else path for _, path, query in asked)
    targets[_ROUTER].write_text("\n".join(asked_for) + "\n", "utf-8")
    targets[_FILES].write_text("".join(f"/{key}\n" for key in found), "utf-8")
    _configure(output)
    loads: dict[str, list[_Load]] = {name: [] for name in targets}
    for number in range(workshop.options.rounds):
        for name in random.sample([*targets], len(targets)):
            server = nginx(output, port, name)
            with provided(workshop, "nginx", "`make test-deps` installs it", _started(server)) as is_there:
                if not is_there:
                    return
                loads[name].append(_loaded(wrk, port, targets[name], output))
            say(f"  round {number + 1} of {workshop.options.rounds}: {name}: {loads[name][-1].rate:,.0f} requests/s")
    yield from _nginx_table(loads)


@contextmanager
def _started(server: object) -> Iterator[bool]:
    with server:  # type: ignore[attr-defined]
        yield True


def _configure(output: Path) -> None:
    """Two configurations beside the rendered one: that with one process, and one without the router."""
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
        raise SystemExit(f"the rendered nginx.conf has no {pattern}; tests/bench/serving.py must follow it")
    return changed


def _loaded(wrk: str, port: int, targets: Path, output: Path) -> _Load:
    """Let wrk ask for all targets for some seconds."""
    script = Path(__file__).with_name("targets.lua")
    command: list[str | Path] = [
        wrk, "-t1", f"-c{_CONNECTIONS}", f"-d{_SECONDS}s", "--latency", "-s", script, f"http://127.0.0.1:{port}",
    ]  # fmt: skip
    before = _cpu_s(output)
    environ = {**os.environ, "TARGETS": str(targets)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    cpu_s = _cpu_s(output) - before
    told = json.loads(done.stdout.splitlines()[-1])
    if told.pop("errors"):
        raise SystemExit(f"wrk met errors:\n{done.stdout}")
    return _Load(**told, cpu_s=cpu_s)


def _cpu_s(output: Path) -> float:
    """The CPU time so far of the children of the nginx that runs there."""
    master = output.joinpath("edge", "nginx", "nginx.pid").read_text("utf-8").strip()
    workers = Path(f"/proc/{master}/task/{master}/children").read_text("utf-8").split()
    ticks = 0
    for worker in workers:
        fields = Path(f"/proc/{worker}/stat").read_text("utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _nginx_table(loads: dict[str, list[_Load]]) -> Iterator[str]:
    plain = median(one.rate for one in loads[_FILES])
    rows = [
        [
            _NAMES[name],
            f"{median(one.rate for one in runs) / plain:.2f}",
            f"{median(one.rate for one in runs):,.0f}",
            f"{median(one.cpu_us for one in runs):.1f}",
            f"{median(one.p99_ms for one in runs):.1f}",
        ]
        for name, runs in loads.items()
    ]
    yield from table(["", "x plain", "requests/s", "CPU us a request", "99th percentile ms"], rows)
    costs = [median(one.cpu_us for one in loads[name]) for name in (_ROUTER, _FILES)]
    yield f"\n- router and rate limit cost {costs[0] - costs[1]:.1f} us of CPU time a request in nginx"
    yield f"- {_CONNECTIONS} connections of wrk on the same machine, {_SECONDS} s a run, no gzip asked for"


# ── the router alone ──────────────────────────────────────────────────────────────────────────────────────────────

_TIMED: Final = """
const crypto = require('crypto');
function digest(text) { return crypto.createHash('sha256').update(text).digest('hex'); }
const KINDS = %s;
const told = {};
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
  told[kind] = (Date.now() - begin) * 1000 / count;
}
console.log(JSON.stringify(told));
"""


def _njs(workshop: Workshop, core: str, asked: Sequence[Request]) -> Iterator[str]:
    kinds = {
        "a market": [one for one in asked if not one[2]][:50],
        "a first page": [one for one in asked if one[2] and "cursor" not in one[2]][:50],
        "a page further on": [one for one in asked if "cursor" in one[2]][:50],
        "the worst 400": [("GET", f"/{MARKETS}", "status=%6fpen&sort=nosuch&limit=101&cursor=" + "a" * 200)],
    }
    script = workshop.root / "router.js"
    script.write_text(core + _TIMED % (json.dumps(kinds), _LOOPS), "utf-8")
    rows: dict[str, list[str]] = {kind: [] for kind in kinds}
    engines, worst = [], 0.0
    for engine in ("njs", "node"):
        if shutil.which(engine) is None:
            workshop.lacks(f"the router in {engine}", "`make test-deps` installs it")
            continue
        engines.append(engine)
        runs = [_timed(engine, script) for _ in range(workshop.options.rounds)]
        for kind in kinds:
            rows[kind].append(shown(median(run[kind] for run in runs)))
        if engine == "njs":
            worst = max(median(run[kind] for run in runs) for kind in kinds)
    yield ""
    yield from table(["the router alone, us a request", *engines], [[kind, *found] for kind, found in rows.items()])
    yield ""
    if worst:
        yield Goal(f"dearest request in njs, share of CloudFront's {_BUDGET_US} us", worst / _BUDGET_US, 0.5).line()
        yield "- CloudFront itself was not asked; njs has its features, and Amazon's machines are others"


def _timed(engine: str, script: Path) -> dict[str, float]:
    done = subprocess.run([engine, script], capture_output=True, text=True, check=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    parts.main(run)
