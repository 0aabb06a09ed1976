"""The search index: what it adds to a build, and what a query costs in Node and njs: `make bench ONLY=search`.

With PUBLIC_MARKETS_SOURCE__URL set, the markets of that database are searched instead of the demo's.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from generator.api import keys
from generator.edge import router
from tests.bench import databases, queries
from tests.bench.runner import Runner, product, say
from tests.bench.tables import Measured, table
from tests.support.edges.engines import FROM_FILES
from tests.support.sites.builds import NOW, make_config

_MARKETS: Final = 100_000
#: Of readers, and at most of those who want it to be slow.
_QUERIES: Final = 300
_ABUSES: Final = 10_000
#: A few lists only: they cost what they cost, with an index or without.
_SITE: Final = {"variant": "extended", "layout": "chunks", "categories": "crypto", "search": "title+description"}

#: CPU time, which other processes change little. Linux counts it in steps of milliseconds, so queries are repeated.
_TIMED: Final = (
    FROM_FILES
    + """
function cpu() { return parseInt(fs.readFileSync('/proc/self/schedstat', 'utf8'), 10) / 1e6; }
function ask(query) {
  const read = [];
  let found = route('GET', MARKETS, query, digest);
  while (found.status === undefined) {
    found.read.forEach(function (key) { read.push(key); });
    found = cut(found, found.read.map(function (key) { return readText(key); }), digest);
  }
  return { status: found.status, read: read };
}
const results = JSON.parse(fs.readFileSync(%s, 'utf8')).map(function (query) {
  const answer = ask(query);
  const begin = cpu();
  let count = 0;
  while (count < 2 || cpu() - begin < 40) { ask(query); count += 1; }
  const index = answer.read.filter(function (key) { return key.indexOf(%s) !== -1; });
  const ms = (cpu() - begin) / count, all = answer.read.length;
  return { query: query, ms: ms, status: answer.status, index: index.length, all: all };
});
fs.writeFileSync(%s, JSON.stringify(results));
"""
)


def run(runner: Runner) -> Iterator[str]:
    """Build with and without the index, then search."""
    given = os.environ.get("PUBLIC_MARKETS_SOURCE__URL")
    path = None if given else databases.realistic(runner, runner.options.markets(_MARKETS))
    url = databases.url(path) if path else str(given)
    outputs = {setting: runner.new("search") for setting in ("off", _SITE["search"])}
    built = {setting: _build(runner, url, output, setting) for setting, output in outputs.items()}
    found = outputs[_SITE["search"]]
    count = len(json.loads((found / "manifest.json").read_bytes())["markets"])
    yield f"## Search: {count:,} markets"
    yield ""
    yield from _sizes(_index(found), built["off"], built[_SITE["search"]], count)
    yield ""
    yield from _queries(runner, found)


def _build(runner: Runner, url: str, output: Path, setting: str) -> Measured:
    say(f"  search: {setting}")
    site = {**_SITE, "source__url": url, "output": output, "search": setting}
    return runner.measured(product("build", "--as-of", NOW, folder=runner.root, **site))


def _index(output: Path) -> dict[str, int]:
    """The objects of the index, with their sizes."""
    folder = output / keys.list_prefix(keys.SEARCH)
    return {path.relative_to(output).as_posix(): path.stat().st_size for path in folder.rglob("*.json")}


def _sizes(index: dict[str, int], without: Measured, taken: Measured, count: int) -> Iterator[str]:
    cpu_s, rss_mib = taken.cpu_s - without.cpu_s, taken.rss_mib - without.rss_mib
    row = [f"{len(index):,}", f"{sum(index.values()) / count:.1f}", f"{cpu_s:.1f}", f"{rss_mib:.0f}"]
    yield from table(["objects", "bytes a market", "CPU s added", "MiB added"], [row])


def _queries(runner: Runner, output: Path) -> Iterator[str]:
    core = router.render(make_config(runner.root, **_SITE))
    asked = {"of readers": queries.of_readers(output, runner.options.markets(_QUERIES))}
    abuses = dict.fromkeys(queries.of_abusers(queries.index_of(output)))
    asked["of abusers"] = [*abuses][: runner.options.markets(_ABUSES)]
    rows = []
    for engine in ("node", "njs"):
        program = runner.program(engine, "searches in it; `make test-deps` installs it")
        if program is None:
            continue
        timed = {kind: _timed(program, core, found, output, runner.root) for kind, found in asked.items()}
        for kind, found in timed.items():
            took = sorted(float(one["ms"]) for one in found)
            reads = [str(max(int(one[part]) for one in found)) for part in ("index", "all")]
            rows.append([f"{len(found)} {kind}, {engine}", f"{median(took):.1f}", f"{took[-1]:.1f}", *reads])
        everyone = [one for found in timed.values() for one in found]
        say(f"  {engine}: the worst is {max(everyone, key=lambda one: float(one['ms']))['query']}")
    yield ""
    yield from table(["queries", "median CPU ms", "worst", "objects of the index", "objects"], rows)


def _timed(program: str, core: str, asked: Sequence[str], output: Path, folder: Path) -> list[dict[str, Any]]:
    given, answers, script = folder / "queries.json", folder / "answers.json", folder / "search.js"
    given.write_text(json.dumps(asked), "utf-8")
    values = (json.dumps(str(value)) for value in (output, given, keys.SEARCH, answers))
    script.write_text(core + _TIMED % tuple(values), "utf-8")
    subprocess.run([program, script], check=True)
    found: list[dict[str, Any]] = json.loads(answers.read_text("utf-8"))
    refused = [one["query"] for one in found if one["status"] not in (200, 400)]
    if refused:
        raise SystemExit(f"{program} could not answer {refused}")
    return found
