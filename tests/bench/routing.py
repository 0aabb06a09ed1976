"""The requests that the benchmark of serving makes, and what the router alone costs for them in njs and Node."""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from generator.api.contract import SORTS, STATUS_FILTERS
from generator.api.keys import DETAILS, MARKETS
from tests.bench.runner import Runner
from tests.bench.tables import Goal, shown, table
from tests.support.edges.engines import Request

FIRST, CURSOR, MARKET = KINDS = ("first pages", "cursor pages", "markets")
_LIMITS: Final = (5, 20, 50)
#: CloudFront stops a function that takes longer, according to AWS's documentation.
_BUDGET_US: Final = 1_000
_LOOPS: Final = 200
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


def requests(output: Path) -> dict[str, list[Request]]:
    """First pages, cursor pages of the layout `pages`, and details, each once, by kind."""
    path, asked = f"/{MARKETS}", {kind: list[Request]() for kind in KINDS}
    for status in STATUS_FILTERS:
        for sort in SORTS:
            for limit in _LIMITS:
                query = f"status={status}&sort={sort}&limit={limit}"
                asked[FIRST].append(("GET", path, query))
                page = json.loads(output.joinpath(f"{MARKETS}/lists/{status}/{sort}/first/{limit}.json").read_bytes())
                if cursor := page["nextCursor"]:
                    asked[CURSOR].append(("GET", path, f"{query}&cursor={cursor}"))
    details = sorted(file.stem for file in output.joinpath(DETAILS).rglob("*.json"))[: len(asked[FIRST])]
    asked[MARKET] = [("GET", f"{path}/{market_id}", "") for market_id in details]
    for chosen in asked.values():
        random.Random(1).shuffle(chosen)  # noqa: S311 - the same order every time
    return asked


def alone(runner: Runner, core: str, asked: Mapping[str, Sequence[Request]]) -> Iterator[str]:
    """Measure the router in njs and Node."""
    kinds = {
        "a market": asked[MARKET][:50],
        "a first page": asked[FIRST][:50],
        "a later page": asked[CURSOR][:50],
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
