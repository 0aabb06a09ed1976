"""Rebuilds of a folder that is built already: nothing changed, and one market in a hundred traded.

`python -m tests.bench.rebuild`. What it takes to start Python is subtracted everywhere.
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
from tests.bench.tables import TOOK, Goal, Measured, figures, ratio, table, walls
from tests.bench.workshop import Workshop, say, start_up

MARKETS: Final = 5_000
TRADED: Final = 0.01
_FULL: Final = "full build"
_UNCHANGED: Final = "nothing changed"
_TRADED: Final = f"{TRADED:.0%} of the markets traded"


@dataclass(frozen=True)
class _Built:
    taken: Measured
    #: What its report says of the run.
    run: dict[str, Any]
    #: How many lists there are.
    lists: int

    @property
    def share(self) -> float:
        """The share of all files that it wrote."""
        return float(self.run["written"] / (self.run["written"] + self.run["unchanged"]))


def run(workshop: Workshop) -> Iterator[str]:
    """Measure the same three builds round by round; their order is in the nature of things."""
    markets = workshop.options.markets(MARKETS)
    say(f"rebuilds of {markets} markets")
    databases.lifelike(workshop, markets)
    rounds, idle = [], []
    for number in range(workshop.options.rounds):
        workshop.rest_if_full()
        workshop.settle()
        idle.append(workshop.measured(start_up(workshop.root).command(workshop.root)))
        rounds.append(_round(workshop, markets))
        took = ", ".join(f"{name}: {built.taken.wall_s:.2f} s" for name, built in rounds[-1].items())
        say(f"  round {number + 1} of {workshop.options.rounds}: {took}")
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


def _round(workshop: Workshop, markets: int) -> dict[str, _Built]:
    database = workshop.root / "traded.db"
    shutil.copyfile(databases.lifelike(workshop, markets), database)
    output = workshop.new("rebuild")
    url = databases.url(database)
    full = _built(workshop, url, output)
    before = _state(output)
    unchanged = _built(workshop, url, output)
    changed = _state(output).items() ^ before.items()
    unchanged.run["touched"] = len({name for name, _ in changed})
    databases.trade(database, TRADED)
    return {_FULL: full, _UNCHANGED: unchanged, _TRADED: _built(workshop, url, output)}


def _built(workshop: Workshop, url: str, output: Path) -> _Built:
    taken = workshop.measured(building(workshop, url, output))
    report = json.loads(output.joinpath("report.json").read_bytes())
    summary = taken.said.splitlines()[-1]
    # The report of a build that changed nothing is left alone, so its own words count.
    run = {**report["run"], **counted(summary)}
    return _Built(taken, run, len(report["lists"]))


def counted(summary: str) -> dict[str, int]:
    """How many files the summary line says were written and unchanged."""
    words = summary.replace(",", "").split()
    return {
        "written": int(words[words.index("files") - 1]),
        "unchanged": int(words[words.index("unchanged") - 1]),
    }


def _state(output: Path) -> dict[str, tuple[int, int, int]]:
    """What tells whether somebody wrote a file: inode, size and time of the last change; `.lock` is not output."""
    found = {}
    for folder, _, files in os.walk(output):
        for name in files:
            if name != ".lock":
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - of 300,000 files
                found[f"{folder}/{name}"] = (status.st_ino, status.st_size, status.st_ctime_ns)
    return found


def _walls(rounds: list[dict[str, _Built]], name: str, idle: list[Measured]) -> list[float]:
    return walls([one[name].taken for one in rounds], idle)


def _touched(rounds: list[dict[str, _Built]]) -> float:
    return max(float(one[_UNCHANGED].run["touched"]) for one in rounds)


def _table(rounds: list[dict[str, _Built]], idle: list[Measured]) -> Iterator[str]:
    full = _walls(rounds, _FULL, idle)
    rows = [
        [
            name,
            f"{ratio(_walls(rounds, name, idle), full):.2f}",
            f"{median(one[name].share for one in rounds):.2f}",
            f"{median(_walls(rounds, name, idle)):.2f}",
            *figures([one[name].taken for one in rounds]),
        ]
        for name in rounds[0]
    ]
    yield from table(["", "x full build", "files written ÷ all", "without start-up s", *TOOK], rows)
    yield f"\nStart-up: {median(one.wall_s for one in idle):.2f} s, subtracted in the first and the third column."


if __name__ == "__main__":
    parts.main(run)
