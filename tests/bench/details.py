"""Details compared with a loop of driver cursors and msgspec without validation: `python -m tests.bench.details`."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import databases, parts
from tests.bench.build import building, worked
from tests.bench.runner import PYTHON, Command, Competitor, Runner, same_files, say
from tests.bench.tables import TOOK, Goal, Results, figures, ratio, shown, table
from tests.support.sites.builds import NOW

MARKETS: Final = 10_000
POINTS: Final = 200
FILLS: Final = 20
#: The number of markets that share the points of the long test.
_LONG_MARKETS: Final = 1_000
_LONG: Final = (1_000_000, 10_000_000)


def run(runner: Runner) -> Iterator[str]:
    """Measure on both databases; with --long also how memory grows with ten times as many points."""
    markets = runner.options.markets(MARKETS)
    say(f"generating {markets} markets with {POINTS} points and {FILLS} fills each")
    path = databases.uniform(runner.root / "uniform.db", markets=markets, points=POINTS, fills=FILLS)
    yield f"## Details of {markets:,} markets with {POINTS} points and {FILLS} fills each"
    with databases.postgresql(runner) as server:
        urls = {"SQLite": databases.url(path)}
        if server:
            urls["PostgreSQL"] = databases.copied(server, path)
        for name, url in urls.items():
            yield from _on(runner, name, url, markets)
    if runner.options.is_long:
        yield from _growth(runner)
    else:
        runner.not_measured(f"details: memory from {_LONG[0]:,} to {_LONG[1]:,} points", "it takes minutes: add --long")


def _on(runner: Runner, name: str, url: str, markets: int) -> Iterator[str]:
    ours, loop = f"product, details from {name}", f"cursors and msgspec, {name}"
    competitors = [
        Competitor(ours, lambda output: Command([*PYTHON, "tests.bench.stages", "details", NOW, url, output])),
        Competitor(loop, lambda output: Command([*PYTHON, "tests.bench.direct_details", url, output])),
        Competitor(f"whole build from {name}", lambda output: building(runner, url, output)),
    ]
    made: list[Path] = []
    results = runner.race(competitors, partial(_check, made))
    stages = {name: worked(runs) for name, runs in results.items() if not name.startswith("whole")}
    yield f"\n### From {name}\n"
    yield from _table(results, stages, markets)
    yield ""
    cpu = [[run.cpu_s for run in stages[side]] for side in (ours, loop)]
    yield Goal(f"CPU time of the product's details ÷ the loop's, {name}", ratio(*cpu), 1.3).line()


def _check(made: list[Path], name: str, output: Path) -> None:
    if not name.startswith("whole"):
        made.append(output)
        same_files(made[0], output)


def _table(results: Results, stages: Results, markets: int) -> Iterator[str]:
    rows = []
    for name, runs in results.items():
        inside = stages.get(name)
        per_market = f"{median(run.cpu_s for run in inside) / markets * 1e6:.0f}" if inside else ""
        per_run = f"{median(run.wall_s for run in inside):.2f}" if inside else ""
        rows.append([name, per_market, per_run, *figures(runs)])
    yield from table(["", "CPU µs a market", "stage s", *(f"process: {heading}" for heading in TOOK)], rows)
    yield (
        "\nThe first two columns exclude the start of Python and the catalog, which lists need as well. CPU time is "
        "the client's; PostgreSQL's own work shows in the wall seconds only."
    )


def _growth(runner: Runner) -> Iterator[str]:
    rows = []
    for points in (runner.options.markets(number) for number in _LONG):
        markets = min(_LONG_MARKETS, points)
        say(f"generating {points} points")
        path = databases.uniform(runner.root / f"{points}.db", markets=markets, points=points // markets, fills=1)
        taken = runner.measured(building(runner, databases.url(path), runner.new("long")))
        rows.append([f"{points:,}", f"{points / taken.cpu_s:,.0f}", *figures([taken])])
        yield ""
    yield f"### Memory from {rows[0][0]} to {rows[-1][0]} points, {_LONG_MARKETS:,} markets, SQLite\n"
    yield from table(["points", "points a CPU second", *TOOK], rows)
    yield ""
    yield f"- peak memory grows by a factor of {shown(float(rows[-1][-1]) / float(rows[0][-1]))}"


if __name__ == "__main__":
    parts.main(run)
