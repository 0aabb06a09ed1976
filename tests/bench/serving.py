"""nginx with the router compared with nginx serving the same pages by name.

`make bench ONLY=serving`. One nginx process each, so that rates are rates of one core.
"""

import json
import os
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product as product_of
from pathlib import Path
from statistics import median
from typing import Any, Final

from generator.edge import router
from generator.tree.layouts import LAYOUTS
from tests.bench import databases, routing
from tests.bench.routing import CURSOR, FIRST, KINDS
from tests.bench.runner import Runner, product, provided, say
from tests.bench.tables import Goal, ratio, table
from tests.support.edges.engines import Request, in_quickjs
from tests.support.edges.servers import connected, free_port, nginx, temporary_folders
from tests.support.sites.builds import NO_LIMITS, NOW, make_config

_MARKETS: Final = 400
_SECONDS: Final = 2
_CONNECTIONS: Final = 32
#: nginx with the settings of the rendered one, serving files by name.
_PLAIN: Final = """
worker_processes 1;
worker_rlimit_nofile 8192;
pid "{folder}/nginx.pid";
error_log "{folder}/error.log" warn;
events {{ worker_connections 1024; }}
http {{
{temporary}
    access_log off;
    server_tokens off;
    sendfile on;
    tcp_nopush on;
    server {{
        listen 127.0.0.1:{port};
        root "{output}";
        open_file_cache max=1000 inactive=30s;
        open_file_cache_valid 1s;
        types {{ }}
        default_type application/json;
        add_header Cache-Control "public, max-age=10" always;
        add_header Access-Control-Allow-Origin "*" always;
    }}
}}
"""
_FILES: Final = "plain files"
#: The same requests again and again; answered without the cache; each with a query of its own, so not in the cache yet.
_HOT, _UNCACHED, _NEW = _STATES = ("hot", "uncached", "new")
#: What is changed in the rendered configuration, to have one process, and no cache.
_ONE_PROCESS: Final = ("worker_processes auto;", "worker_processes 1;")
_NO_CACHE: Final = ("_has_body) {", "_network) {")


@dataclass(frozen=True)
class _Run:
    """Requests of one kind to one server: plain files, or a layout."""

    server: str
    kind: str
    state: str

    @property
    def name(self) -> str:
        return f"{self.server}, {self.kind}" if self.server == _FILES else f"`{self.server}`, {self.kind}, {self.state}"

    @property
    def configuration(self) -> str:
        if self.server == _FILES:
            return "plain.conf"
        return "uncached.conf" if self.state == _UNCACHED else "router.conf"


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
    """Measure nginx."""
    markets = runner.options.markets(_MARKETS)
    sites = {layout: _built(runner, markets, layout) for layout in LAYOUTS}
    asked = routing.requests(sites["pages"].output)
    yield f"## Serving: list pages and details of {markets:,} markets"
    yield ""
    yield from _nginx(runner, sites, asked)


@dataclass(frozen=True)
class _Site:
    output: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def _built(runner: Runner, markets: int, layout: str) -> _Site:
    path, made = databases.realistic(runner, markets), _Site(runner.new("serving"), free_port())
    site = {**NO_LIMITS, "source__url": databases.url(path), "layout": layout}
    runner.measured(product("build", "--as-of", NOW, folder=runner.root, base_url=made.url, output=made.output, **site))
    return made


# ── nginx ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _nginx(runner: Runner, sites: Mapping[str, _Site], asked: Mapping[str, Sequence[Request]]) -> Iterator[str]:
    wrk = runner.program("wrk", "nginx with and without the router; `make bench-deps` installs it")
    if wrk is None:
        return
    for site in sites.values():
        _configure(site)
    runs = [_Run(_FILES, kind, _HOT) for kind in KINDS]
    runs += [_Run(*one) for one in product_of(sites, KINDS, _STATES)]
    servers = {(one.server, one.configuration) for one in runs}
    loads: dict[_Run, list[_Load]] = {one: [] for one in runs}
    for number in range(runner.options.rounds):
        for server, name in random.sample(sorted(servers), len(servers)):
            site = sites.get(server, sites["pages"])
            running = nginx(site.output, site.port, name)
            with provided(runner, "nginx", "`make test-deps` installs it", _started(running)) as is_there:
                if not is_there:
                    return
                for one in (one for one in runs if (one.server, one.configuration) == (server, name)):
                    loads[one].append(_loaded(wrk, runner, one, site, asked))
                    say(f"  round {number + 1} of {runner.options.rounds}: {one.name}: {loads[one][-1].rate:,.0f}/s")
    yield from _nginx_table(loads)


@contextmanager
def _started(server: object) -> Iterator[bool]:
    with server:  # type: ignore[attr-defined]
        yield True


def _configure(site: _Site) -> None:
    """Write the rendered configuration with one process, the same without the cache, and one that serves files."""
    folder = site.output / "edge" / "nginx"
    text = _replaced(folder.joinpath("nginx.conf").read_text("utf-8"), *_ONE_PROCESS)
    folder.joinpath("router.conf").write_text(text, "utf-8")
    folder.joinpath("uncached.conf").write_text(_replaced(text, *_NO_CACHE), "utf-8")
    plain = _PLAIN.format(folder=folder, temporary=temporary_folders(folder), port=site.port, output=site.output)
    folder.joinpath("plain.conf").write_text(plain, "utf-8")


def _replaced(text: str, rule: str, other: str) -> str:
    if rule not in text:
        raise SystemExit(f"the rendered nginx.conf has no {rule}; update tests/bench/serving.py")
    return text.replace(rule, other)


def _targets(runner: Runner, one: _Run, site: _Site, asked: Mapping[str, Sequence[Request]]) -> Path:
    """A file with the targets of a run, made when it is first needed: cursors of `chunks` come from its first pages."""
    path = runner.root / f"{one.server}-{one.kind}".replace(" ", "-")
    if path.exists():
        return path
    requests = asked[one.kind]
    if one.server == _FILES:
        core = router.render(make_config(runner.root, base_url=site.url))
        lines = [f"/{found['key']}" for found in in_quickjs(core, requests, runner.root)]
    else:
        lines = [f"{path}?{query}" if query else path for _, path, query in requests]
    if one.server == "chunks" and one.kind == CURSOR:
        lines = [*_cursors(site, [line.partition("&cursor=")[0] for line in lines])]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def _cursors(site: _Site, first: Sequence[str]) -> Iterator[str]:
    with connected(site.port) as client:
        for target in first:
            yield f"{target}&cursor={json.loads(client.send('GET', target).body)['nextCursor']}"


def _loaded(wrk: str, runner: Runner, one: _Run, site: _Site, asked: Mapping[str, Sequence[Request]]) -> _Load:
    """Run wrk over all targets for some seconds; hot ones a second longer."""
    environ = {**os.environ, "TARGETS": str(_targets(runner, one, site, asked))}
    if one.state == _NEW:
        environ["EACH_NEW"] = "1"
    elif one.server != _FILES:
        _asked_by(wrk, 1, site, environ)
    before = _cpu_s(site.output)
    found = _asked_by(wrk, _SECONDS, site, environ)
    if found.pop("errors"):
        raise SystemExit(f"wrk reported errors: {one.name}")
    return _Load(**found, cpu_s=_cpu_s(site.output) - before)


def _asked_by(wrk: str, seconds: int, site: _Site, environ: Mapping[str, str]) -> dict[str, Any]:
    script = Path(__file__).with_name("targets.lua")
    command: list[str | Path] = [
        wrk, "-t1", f"-c{_CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", script, site.url,
    ]  # fmt: skip
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _cpu_s(output: Path) -> float:
    """CPU seconds used so far by the processes of the nginx in this folder."""
    master = output.joinpath("edge", "nginx", "nginx.pid").read_text("utf-8").strip()
    workers = Path(f"/proc/{master}/task/{master}/children").read_text("utf-8").split()
    ticks = 0
    for worker in workers:
        fields = Path(f"/proc/{worker}/stat").read_text("utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _nginx_table(loads: Mapping[_Run, Sequence[_Load]]) -> Iterator[str]:
    plain = {one.kind: [load.rate for load in found] for one, found in loads.items() if one.server == _FILES}
    shares = {one: ratio([load.rate for load in found], plain[one.kind]) for one, found in loads.items()}
    rows = [
        [
            one.name,
            f"{shares[one]:.2f}",
            f"{median(load.rate for load in found):,.0f}",
            f"{median(load.cpu_us for load in found):.1f}",
            f"{median(load.p99_ms for load in found):.1f}",
        ]
        for one, found in loads.items()
    ]
    yield from table(["", "x plain", "requests/s", "CPU us a request", "99th percentile ms"], rows)
    yield ""
    for layout in LAYOUTS:
        slowest = min(share for one, share in shares.items() if one.server == layout and one.state == _HOT)
        yield Goal(f"slowest hot requests in `{layout}`, x plain files", slowest, 0.8, is_least=True).line()
    for kind in (FIRST, CURSOR):
        found = shares[_Run("pages", kind, _UNCACHED)]
        yield Goal(f"{kind} in `pages`, uncached, x plain files", found, 0.65, is_least=True).line()
    yield f"- {_CONNECTIONS} connections of wrk on the same machine, {_SECONDS} s a run, without gzip"
    yield "- hot: the same requests again and again; uncached: by the router alone; new: each with a query of its own"
