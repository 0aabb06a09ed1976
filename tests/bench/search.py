"""The search index: what it adds to a build, and what a query costs in Node and njs: `make bench ONLY=search`.

With PUBLIC_MARKETS_SOURCE__URL set, the markets of that database are searched instead of the demo's.
"""

import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, Final

from generator.api import keys
from generator.edge import router
from tests.bench import databases, queries
from tests.bench.runner import Runner, product, say
from tests.bench.tables import Goal, Measured, table
from tests.support.edges.engines import FROM_FILES
from tests.support.sites.builds import NOW, make_config

_MARKETS: Final = 100_000
#: Of readers, and at most of those who want it to be slow.
_QUERIES: Final = 300
_ABUSES: Final = 10_000
#: Median and worst, in milliseconds, by engine.
_GOALS: Final = {"node": (3, None), "njs": (20, 150)}
_MOST_OBJECTS: Final = 300
_MOST_BUCKETS: Final = 3

#: As the index counts them: a Japanese word of four characters is three pairs.
_FEW_WORDS: Final = 3

#: A few lists only: they cost what they cost, with an index or without.
_SITE: Final = {"variant": "extended", "layout": "chunks", "categories": "crypto", "search": "title+description"}

#: CPU time, which other processes change little. Linux counts it in steps of milliseconds, so queries are repeated.
_TIMED: Final = (
    FROM_FILES
    + """
function cpu() { return parseInt(fs.readFileSync('/proc/self/schedstat', 'utf8'), 10) / 1e6; }
function ask(query) {
  const read = [];
  let found = route('GET', MARKETS, query, digest), words = 0;
  while (found.status === undefined) {
    if (found.search.step === 'words') words = found.search.words.length;
    found.read.forEach(function (key) { read.push(key); });
    found = cut(found, found.read.map(function (key) { return readText(key); }), digest);
  }
  return { status: found.status, read: read, words: words };
}
const results = JSON.parse(fs.readFileSync(%s, 'utf8')).map(function (query) {
  const answer = ask(query);
  const begin = cpu();
  let count = 0;
  while (count < 2 || cpu() - begin < 40) { ask(query); count += 1; }
  const index = answer.read.filter(function (key) { return key.indexOf(%s) !== -1; });
  const ms = (cpu() - begin) / count, all = answer.read.length;
  return { query: query, ms: ms, status: answer.status, words: answer.words, index: index.length, all: all };
});
fs.writeFileSync(%s, JSON.stringify(results));
"""
)


def run(runner: Runner) -> Iterator[str]:
    """Build with and without the index, edit a title, then search."""
    given = os.environ.get("PUBLIC_MARKETS_SOURCE__URL")
    path = None if given else databases.realistic(runner, runner.options.markets(_MARKETS))
    url = databases.url(path) if path else str(given)
    outputs = {setting: runner.new("search") for setting in ("off", "title", "title+description")}
    built = {setting: _build(runner, url, output, setting) for setting, output in outputs.items()}
    found = outputs["title+description"]
    count = len(json.loads((found / "manifest.json").read_bytes())["markets"])
    yield f"## Search: {count:,} markets"
    yield ""
    yield from _sizes(outputs, built, count)
    yield ""
    if path:
        yield _edited(runner, path, found).line()
    yield from _queries(runner, found)


def _build(runner: Runner, url: str, output: Path, setting: str) -> Measured:
    say(f"  search: {setting}")
    site = {**_SITE, "source__url": url, "output": output, "search": setting}
    return runner.measured(product("build", "--as-of", NOW, folder=runner.root, **site))


def _index(output: Path) -> dict[str, int]:
    """The objects of the index, with their sizes."""
    folder = output / keys.list_prefix(keys.SEARCH)
    return {path.relative_to(output).as_posix(): path.stat().st_size for path in folder.rglob("*.json")}


def _sizes(outputs: dict[str, Path], built: dict[str, Measured], count: int) -> Iterator[str]:
    plain = built["off"]
    rows, goals = [], list[Goal]()
    for setting in ("title", "title+description"):
        index, taken = _index(outputs[setting]), built[setting]
        added = taken.cpu_s - plain.cpu_s, taken.rss_mib - plain.rss_mib
        size = sum(index.values())
        rows.append([setting, f"{len(index):,}", f"{size / count:.1f}", f"{added[0]:.1f}", f"{added[1]:.0f}"])
        goals += [
            Goal(f"CPU seconds that {setting} adds to a build", added[0], 6),
            Goal(f"MiB that {setting} adds to a build", added[1], 200),
            Goal(f"objects of {setting}", len(index), _MOST_OBJECTS),
        ]
    yield from table(["", "objects", "bytes a market", "CPU s added", "MiB added"], rows)
    yield ""
    yield from (goal.line() for goal in goals)


def _edited(runner: Runner, path: Path, output: Path) -> Goal:
    """How many buckets the edit of one word of one title changes."""
    before = set(_index(output))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (market_id, question) = connection.execute(
            "SELECT id, question FROM markets WHERE approval = 'approved' AND is_listed LIMIT 1"
        ).fetchone()
        edited = re.sub(r"\w{4,}", "novelty", question, count=1)
        connection.execute("UPDATE markets SET question = ? WHERE id = ?", [edited, market_id])
        _build(runner, databases.url(path), output, "title+description")
        connection.execute("UPDATE markets SET question = ? WHERE id = ?", [question, market_id])
    fresh = [key for key in _index(output).keys() - before if f"/{keys.CHUNKS}/" in key]
    return Goal("buckets that an edited word of a title changes", len(fresh), _MOST_BUCKETS)


def _queries(runner: Runner, output: Path) -> Iterator[str]:
    core = router.render(make_config(runner.root, **_SITE))
    asked = {"of readers": queries.of_readers(output, runner.options.markets(_QUERIES))}
    abuses = dict.fromkeys(queries.of_abusers(queries.index_of(output)))
    asked["of abusers"] = [*abuses][: runner.options.markets(_ABUSES)]
    rows, goals = [], list[Goal]()
    for engine, (middle, most) in _GOALS.items():
        program = runner.program(engine, "searches in it; `make test-deps` installs it")
        if program is None:
            continue
        timed = {kind: _timed(program, core, found, output, runner.root) for kind, found in asked.items()}
        for kind, found in timed.items():
            took = sorted(float(one["ms"]) for one in found)
            reads = [str(max(int(one[part]) for one in found)) for part in ("index", "all")]
            rows.append([f"{len(found)} {kind}, {engine}", f"{median(took):.1f}", f"{took[-1]:.1f}", *reads])
        readers, everyone = timed["of readers"], [one for found in timed.values() for one in found]
        goals.append(Goal(f"median CPU ms of a reader's query in {engine}", median(_ms(readers)), middle))
        goals += [Goal(f"worst CPU ms of a query in {engine}", max(_ms(everyone)), most)] if most else []
        few = [one for one in readers if int(one["words"]) <= _FEW_WORDS]
        goals.append(Goal("objects of the index for three words", max(int(one["index"]) for one in few), 6))
        say(f"  {engine}: the worst is {max(everyone, key=lambda one: float(one['ms']))['query']}")
    yield ""
    yield from table(["queries", "median CPU ms", "worst", "objects of the index", "objects"], rows)
    yield ""
    yield from (goal.line() for goal in goals)


def _ms(found: Sequence[Mapping[str, Any]]) -> list[float]:
    return [float(one["ms"]) for one in found]


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
