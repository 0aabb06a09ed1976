"""A full build from SQLite, beside `cp -r` of its output: `make bench ONLY=build`.

The time of `cp -r` depends on the state of the file system.
"""

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench import databases
from tests.bench.runner import Command, Runner, product, same_files, say
from tests.bench.tables import TOOK, Measured, figures, ratio, table, walls
from tests.support.sites.builds import NOW

MARKETS: Final = (1_000, 5_000)
_BUILD: Final = "build from SQLite"
_COPY: Final = "cp -r"


def run(runner: Runner) -> Iterator[str]:
    """Measure each size."""
    yield "## Full build"
    for markets in dict.fromkeys(map(runner.options.markets, MARKETS)):
        yield from _size(runner, markets)


def _size(runner: Runner, markets: int) -> Iterator[str]:
    say(f"full build of {markets} markets")
    url, reference = databases.url(databases.realistic(runner, markets)), runner.new("reference")
    runner.measured(building(runner, url, reference))
    site = json.loads(reference.joinpath("report.json").read_bytes())
    commands: dict[str, Callable[[Path], Command]] = {
        _BUILD: partial(building, runner, url), _COPY: lambda output: Command(["cp", "-r", reference, output]),
    }  # fmt: skip
    results: dict[str, list[Measured]] = {name: [] for name in commands}
    for _ in range(runner.options.rounds):
        runner.rest_if_full()
        for name in random.sample([*commands], len(commands)):
            output = runner.new(name)
            results[name].append(runner.measured(commands[name](output)))
            same_files(reference / "v1", output / "v1")  # a build's report has durations
    files = sum(1 for path in reference.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in reference.rglob("*"))
    yield f"\n### {markets:,} markets: {files:,} files, {size / 1e9:.2f} GB\n"
    copied = walls(results[_COPY])
    rows = [[name, f"{ratio(walls(runs), copied):.2f}", *figures(runs)] for name, runs in results.items()]
    yield from table(["", "x cp -r", *TOOK], rows)
    yield ""
    stages = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in site["run"]["seconds"].items())
    yield f"- stages of a build: {stages}"


def building(runner: Runner, url: str, output: Path, **settings: str) -> Command:
    """A build through the command line."""
    return product("build", "--as-of", NOW, folder=runner.root, source__url=url, output=output, **settings)
