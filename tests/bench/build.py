"""A full build compared with a C program that creates the same files, and with `cp -r` of its output.

`python -m tests.bench.build`. The product goes from the database to files; the C program goes from one packed file to
files, cp from files to files. The time of `cp -r` depends on the state of the file system, so no goal refers to it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from generator.api.keys import LISTS
from tests.bench import databases, packed, parts
from tests.bench.runner import PYTHON, START_UP, Command, Competitor, Runner, product, same_files, say, start_up
from tests.bench.tables import TOOK, Goal, Measured, Results, figures, ratio, table, walls
from tests.support.sites.builds import NOW

MARKETS: Final = (1_000, 5_000)
_LISTS: Final = "list pages, from SQLite"
_BUILD: Final = "build from SQLite"
_BUILD_POSTGRESQL: Final = "build from PostgreSQL"
_COPY_LISTS: Final = "cp -r of the list pages"
_COPY: Final = "cp -r of the whole output"
_COPY_SYNCED: Final = "cp -r of the whole output, then sync"
_C: Final = "C program of the list pages, 1 process"
_C_TWO: Final = "C program of the list pages, 2 processes"
_C_WHOLE: Final = "C program of the whole output, 1 process"


#: What writes the whole output: its builds first.
_BUILDS: Final = (_BUILD, _BUILD_POSTGRESQL)
_OF_WHOLE: Final = (*_BUILDS, _COPY, _COPY_SYNCED, _C_WHOLE)


def run(runner: Runner) -> Iterator[str]:
    """Measure each size."""
    yield "## Full build"
    with databases.postgresql(runner) as server:
        for number in MARKETS:
            markets = runner.options.markets(number)
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
    # Competitors without a goal run at the smallest size only.
    is_small = markets == runner.options.markets(MARKETS[0])
    competitors = [*_competitors(runner, urls, reference, is_small=is_small)]
    results = runner.race([*competitors, start_up(runner.root)], partial(_check, reference))
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


def listing(url: str, output: Path) -> Command:
    """The list pages alone, through the product's stages."""
    return Command([*PYTHON, "tests.bench.stages", "lists", NOW, url, output])


def worked(runs: Sequence[Measured]) -> list[Measured]:
    """The times that stages report for their work, without the start of Python."""
    reported = [json.loads(run.stdout) for run in runs]
    pairs = zip(runs, reported, strict=True)
    return [replace(run, wall_s=times["wall_s"], cpu_s=times["cpu_s"]) for run, times in pairs]


def _competitors(runner: Runner, urls: dict[str, str], reference: Path, *, is_small: bool) -> Iterator[Competitor]:
    for name, url in urls.items():
        yield Competitor(name, partial(building, runner, url))
    yield Competitor(_LISTS, lambda output: listing(urls[_BUILD], output))
    yield Competitor(_COPY, lambda output: Command(["cp", "-r", reference, output]))
    if is_small:
        yield Competitor(_COPY_SYNCED, lambda output: _synced_copy(reference, output))
    yield Competitor(_COPY_LISTS, lambda output: Command(["cp", "-r", reference / LISTS, output]))
    if program := packed.compiled(runner):
        index, bodies = packed.pack(reference / LISTS, runner.new("pack").parent)
        yield Competitor(_C, partial(packed.creating, program, index, bodies, 1))
        whole = packed.pack(reference, runner.new("whole-pack").parent)
        yield Competitor(_C_WHOLE, partial(packed.creating, program, *whole, 1))
        if is_small:
            yield Competitor(_C_TWO, partial(packed.creating, program, index, bodies, 2))


def _synced_copy(reference: Path, output: Path) -> Command:
    """A copy on disk, comparable with a build: a plain cp leaves it in memory."""
    return Command(["sh", "-c", 'cp -r "$0" "$1" && sync -f "$1"', reference, output])


def _check(reference: Path, name: str, output: Path) -> None:
    """Compare the files; a build's report is left out, as it contains durations."""
    if name in _BUILDS:
        same_files(reference / "v1", output / "v1")
    elif name == _LISTS:
        same_files(reference / LISTS, output / LISTS)
    elif output.exists():
        same_files(reference if name in _OF_WHOLE else reference / LISTS, output)


def _table(results: Results) -> Iterator[str]:
    def compared(name: str, other: str) -> str:
        if name == START_UP or other not in results:
            return ""
        whole = ratio(walls(results[name]), walls(results[other]))
        if name not in (_LISTS, *_BUILDS):
            return f"{whole:.2f}"
        return f"{whole:.2f} ({ratio(_work(results, name), walls(results[other])):.2f})"

    rows = []
    for name, runs in results.items():
        program, copy = (_C_WHOLE, _COPY) if name in _OF_WHOLE else (_C, _COPY_LISTS)
        rows.append([name, compared(name, program), compared(name, copy), *figures(runs)])
    yield from table(["", "x C program, 1 process (without start-up)", "x cp -r", *TOOK], rows)


def _work(results: Results, name: str) -> list[float]:
    """Wall seconds without start-up."""
    if name == _LISTS:
        return walls(worked(results[name]))
    return walls(results[name], results[START_UP])


def _goals(results: Results) -> Iterator[Goal]:
    for name, other, most in ((_LISTS, _C, 1.2), *((build, _C_WHOLE, 1.7) for build in _BUILDS)):
        if name in results and other in results:
            theirs = walls(results[other])
            yield Goal(f"{name} ÷ {other}", ratio(walls(results[name]), theirs), most)
            yield Goal(f"{name}, without start-up ÷ {other}", ratio(_work(results, name), theirs), most)
    for name in _BUILDS:
        if name in results:
            yield Goal(f"{name}, peak MiB of a process", _peak(results[name]), 150)


def _peak(runs: Sequence[Measured]) -> float:
    return max(run.rss_mib for run in runs)


if __name__ == "__main__":
    parts.main(run)
