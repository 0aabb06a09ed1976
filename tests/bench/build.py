"""A full build compared with a C program that creates the same files, and with `cp -r` of its output.

`make bench ONLY=build`. The product goes from the database to files; the C program goes from one packed file to
files, cp from files to files. The time of `cp -r` depends on the state of the file system, so no goal refers to it.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench import databases, packed
from tests.bench.runner import START_UP, Command, Competitor, Runner, product, same_files, say, start_up
from tests.bench.tables import TOOK, Goal, Measured, Results, figures, ratio, table, walls
from tests.support.sites.builds import NOW

MARKETS: Final = (1_000, 5_000)
_BUILD: Final = "build from SQLite"
_BUILD_POSTGRESQL: Final = "build from PostgreSQL"
_COPY: Final = "cp -r"
_C: Final = "C program, 1 process"
_BUILDS: Final = (_BUILD, _BUILD_POSTGRESQL)


def run(runner: Runner) -> Iterator[str]:
    """Measure each size."""
    yield "## Full build"
    with databases.postgresql(runner) as server:
        for markets in dict.fromkeys(map(runner.options.markets, MARKETS)):
            path = databases.realistic(runner, markets)
            urls = {_BUILD: databases.url(path)}
            if server:
                say("copying the database to PostgreSQL")
                urls[_BUILD_POSTGRESQL] = databases.copied(server, path)
            yield from _size(runner, markets, urls)


def _size(runner: Runner, markets: int, urls: dict[str, str]) -> Iterator[str]:
    say(f"full build of {markets} markets")
    reference = runner.new("reference")
    runner.measured(building(runner, urls[_BUILD], reference))
    site = json.loads(reference.joinpath("report.json").read_bytes())
    results = runner.race([*_competitors(runner, urls, reference), start_up(runner.root)], partial(_check, reference))
    files = sum(1 for path in reference.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in reference.rglob("*"))
    yield f"\n### {markets:,} markets: {files:,} files, {size / 1e9:.2f} GB\n"
    yield from _table(results)
    yield ""
    yield from (goal.line() for goal in _goals(results))
    stages = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in site["run"]["seconds"].items())
    yield f"- stages of a build from SQLite: {stages}"


def building(runner: Runner, url: str, output: Path, **settings: str) -> Command:
    """A build through the command line."""
    return product("build", "--as-of", NOW, folder=runner.root, source__url=url, output=output, **settings)


def _competitors(runner: Runner, urls: dict[str, str], reference: Path) -> Iterator[Competitor]:
    for name, url in urls.items():
        yield Competitor(name, partial(building, runner, url))
    yield Competitor(_COPY, lambda output: Command(["cp", "-r", reference, output]))
    if program := packed.compiled(runner):
        pack = packed.pack(reference, runner.new("pack").parent)
        yield Competitor(_C, partial(packed.creating, program, *pack))


def _check(reference: Path, name: str, output: Path) -> None:
    """Compare the files; a build's report is left out, as it contains durations."""
    if name in _BUILDS:
        same_files(reference / "v1", output / "v1")
    elif output.exists():
        same_files(reference, output)


def _table(results: Results) -> Iterator[str]:
    def compared(name: str, other: str) -> str:
        if name == START_UP or other not in results:
            return ""
        whole = ratio(walls(results[name]), walls(results[other]))
        if name not in _BUILDS:
            return f"{whole:.2f}"
        return f"{whole:.2f} ({ratio(_work(results, name), walls(results[other])):.2f})"

    rows = [[name, compared(name, _C), compared(name, _COPY), *figures(runs)] for name, runs in results.items()]
    yield from table(["", "x C program, 1 process (without start-up)", "x cp -r", *TOOK], rows)


def _work(results: Results, name: str) -> list[float]:
    """Wall seconds without start-up."""
    return walls(results[name], results[START_UP])


def _goals(results: Results) -> Iterator[Goal]:
    for name in results.keys() & {*_BUILDS}:
        if _C in results:
            theirs = walls(results[_C])
            yield Goal(f"{name} ÷ {_C}", ratio(walls(results[name]), theirs), 1.7)
            yield Goal(f"{name}, without start-up ÷ {_C}", ratio(_work(results, name), theirs), 1.7)
        yield Goal(f"{name}, peak MiB of a process", _peak(results[name]), 150)


def _peak(runs: Sequence[Measured]) -> float:
    return max(run.rss_mib for run in runs)
