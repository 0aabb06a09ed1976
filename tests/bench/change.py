"""Builds every few minutes of a large site in `chunks`, in which little happens.

Without `detail_version`, with it, and with it and `fills_window_step` of an hour.

`python -m tests.bench.change`.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from tests.bench import databases, parts
from tests.bench.rebuild import counted
from tests.bench.runner import Runner, product, say
from tests.bench.tables import TOOK, Measured, figures, table
from tests.support.builds import AS_OF

MARKETS: Final = 20_000
TRADED: Final = 50
_FULL: Final = "full build"
_SAME: Final = "nothing changed, same as-of"
_LATER: Final = "five minutes later, nothing traded"
_TRADED: Final = f"ten minutes later, {TRADED} markets traded"


@dataclass(frozen=True)
class _Kind:
    has_versions: bool
    step: str


_KINDS: Final = {
    "without detail_version": _Kind(has_versions=False, step="0"),
    "with it": _Kind(has_versions=True, step="0"),
    "with it and fills_window_step: 1 h": _Kind(has_versions=True, step="1 h"),
}


@dataclass(frozen=True)
class _Built:
    taken: Measured
    written: int
    #: Details that were read, if the run wrote a report, because it wrote anything at all.
    read: int | None


def run(runner: Runner) -> Iterator[str]:
    """Measure the same four builds in every round, of a database without versions and of one with them."""
    markets = runner.options.markets(MARKETS)
    found: dict[str, list[dict[str, _Built]]] = {kind: [] for kind in _KINDS}
    for number in range(runner.options.rounds):
        for name, rounds in found.items():
            say(f"round {number + 1} of {runner.options.rounds}: builds of {markets} markets, {name}")
            runner.rest_if_full()
            rounds.append(_round(runner, markets, _KINDS[name]))
    yield f"## Builds of {markets:,} markets that change little"
    yield ""
    rows = [
        [
            kind,
            name,
            "-" if rounds[0][kind].read is None else str(rounds[0][kind].read),
            str(rounds[0][kind].written),
            *figures([builds[kind].taken for builds in rounds]),
        ]
        for kind in (_FULL, _SAME, _LATER, _TRADED)
        for name, rounds in found.items()
    ]
    yield from table(["", "", "details read", "objects written", *TOOK], rows)


def _round(runner: Runner, markets: int, kind: _Kind) -> dict[str, _Built]:
    database = runner.root / "changing.db"
    shutil.copyfile(databases.realistic(runner, markets), database)
    if kind.has_versions:
        databases.add_versions(database)
    output = runner.new("change")
    minutes = {_FULL: 0, _SAME: 0, _LATER: 5, _TRADED: 10}
    built = {}
    for name, later in minutes.items():
        if name == _TRADED:
            databases.trade(database, TRADED * runner.options.scale / databases.public(database))
        built[name] = _built(runner, database, output, later, kind.step)
    return built


def _built(runner: Runner, database: Path, output: Path, later: int, step: str) -> _Built:
    as_of = (AS_OF + timedelta(minutes=later)).isoformat()
    url, settings = databases.url(database), {"layout": "chunks", "output": output, "fills_window_step": step}
    taken = runner.measured(product("build", "--as-of", as_of, folder=runner.root, source__url=url, **settings))
    written = counted(taken.stdout.splitlines()[-1])["written"]
    run = json.loads((output / "report.json").read_bytes())["run"]
    return _Built(taken, written, run["details"]["read"] if written else None)


if __name__ == "__main__":
    parts.main(run)
