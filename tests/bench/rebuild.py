"""Rebuilds of an existing folder: nothing changed, and one market in a hundred traded.

`python -m tests.bench.rebuild`. The start of Python is subtracted everywhere.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.bench import databases, parts
from tests.bench.build import building
from tests.bench.runner import Runner, say, start_up
from tests.bench.tables import TOOK, Goal, Measured, figures, ratio, table, walls

MARKETS: Final = 5_000
TRADED: Final = 0.01
_FULL: Final = "full build"
_UNCHANGED: Final = "nothing changed"
_TRADED: Final = f"{TRADED:.0%} of the markets traded"


@dataclass(frozen=True)
class _Built:
    taken: Measured
    #: The `run` section of the report.
    run: dict[str, Any]
    #: The number of lists.
    lists: int

    @property
    def share(self) -> float:
        """The share of all files that were written."""
        return float(self.run["written"] / (self.run["written"] + self.run["unchanged"]))


def run(runner: Runner) -> Iterator[str]:
    """Measure the same three builds in every round; each needs the one before it."""
    markets = runner.options.markets(MARKETS)
    say(f"rebuilds of {markets} markets")
    databases.realistic(runner, markets)
    rounds, idle = [], []
    for number in range(runner.options.rounds):
        runner.rest_if_full()
        runner.wait_for_disk()
        idle.append(runner.measured(start_up(runner.root).command(runner.root)))
        rounds.append(_round(runner, markets))
        took = ", ".join(f"{name}: {built.taken.wall_s:.2f} s" for name, built in rounds[-1].items())
        say(f"  round {number + 1} of {runner.options.rounds}: {took}")
    yield f"## Rebuilds of {markets:,} markets"
    yield ""
    yield from _table(rounds, idle)
    yield ""
    unchanged, full = _walls(rounds, _UNCHANGED, idle), _walls(rounds, _FULL, idle)
    yield Goal("nothing changed ÷ full build", ratio(unchanged, full), 0.25).line()
    yield Goal("files that changed on disk when nothing changed", _touched(rounds), 0).line()
    traded = rounds[0][_TRADED]
    yield (
        f"- {_TRADED}: {traded.run['written']:,} of {traded.run['written'] + traded.run['unchanged']:,} files written, "
        f"{len(traded.run['newLists'])} of {traded.lists} lists, which is {traded.share:.0%} of the files in "
        f"{ratio(_walls(rounds, _TRADED, idle), full):.0%} of the time"
    )


def _round(runner: Runner, markets: int) -> dict[str, _Built]:
    database = runner.root / "traded.db"
    shutil.copyfile(databases.realistic(runner, markets), database)
    output = runner.new("rebuild")
    url = databases.url(database)
    full = _built(runner, url, output)
    before = _state(output)
    unchanged = _built(runner, url, output)
    changed = _state(output).items() ^ before.items()
    unchanged.run["touched"] = len({name for name, _ in changed})
    databases.trade(database, TRADED)
    return {_FULL: full, _UNCHANGED: unchanged, _TRADED: _built(runner, url, output)}


def _built(runner: Runner, url: str, output: Path) -> _Built:
    taken = runner.measured(building(runner, url, output))
    report = json.loads(output.joinpath("report.json").read_bytes())
    summary = taken.stdout.splitlines()[-1]
    # A build that changed nothing does not rewrite the report, so its summary line counts.
    run = {**report["run"], **counted(summary)}
    return _Built(taken, run, len(report["lists"]))


def counted(summary: str) -> dict[str, int]:
    """The numbers of written and unchanged files in the summary line."""
    words = summary.replace(",", "").split()
    return {
        "written": int(words[words.index("written") - 2]),
        "unchanged": int(words[words.index("unchanged") - 1]),
    }


def _state(output: Path) -> dict[str, tuple[int, int, int]]:
    """Inode, size and change time of every file but `.lock`: they differ if a file was written."""
    found = {}
    for folder, _, files in os.walk(output):
        for name in files:
            if name != ".lock":
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - of 300,000 files
                found[f"{folder}/{name}"] = (status.st_ino, status.st_size, status.st_ctime_ns)
    return found


def _walls(rounds: list[dict[str, _Built]], name: str, idle: list[Measured]) -> list[float]:
    return walls([builds[name].taken for builds in rounds], idle)


def _touched(rounds: list[dict[str, _Built]]) -> float:
    return max(float(builds[_UNCHANGED].run["touched"]) for builds in rounds)


def _table(rounds: list[dict[str, _Built]], idle: list[Measured]) -> Iterator[str]:
    full = _walls(rounds, _FULL, idle)
    rows = [
        [
            name,
            f"{ratio(_walls(rounds, name, idle), full):.2f}",
            f"{median(builds[name].share for builds in rounds):.2f}",
            f"{median(_walls(rounds, name, idle)):.2f}",
            *figures([builds[name].taken for builds in rounds]),
        ]
        for name in rounds[0]
    ]
    yield from table(["", "x full build", "files written ÷ all", "without start-up s", *TOOK], rows)
    yield f"\nStart-up: {median(run.wall_s for run in idle):.2f} s, subtracted in the first and the third column."


if __name__ == "__main__":
    parts.main(run)
