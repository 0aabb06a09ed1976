"""What details cost beside a loop of driver cursors and msgspec without any check: `python -m tests.bench.details`."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import databases, parts
from tests.bench.build import building, worked
from tests.bench.tables import TOOK, Goal, Results, figures, ratio, shown, table
from tests.bench.workshop import PYTHON, Command, Competitor, Workshop, same_files, say
from tests.support.builds import NOW

MARKETS: Final = 10_000
POINTS: Final = 200
FILLS: Final = 20
#: So many markets share the points of the long test.
_LONG_MARKETS: Final = 1_000
_LONG: Final = (1_000_000, 10_000_000)


def run(workshop: Workshop) -> Iterator[str]:
    """Measure on both databases; with --long also what memory does when there are ten times as many points."""
    markets = workshop.options.markets(MARKETS)
    say(f"making up {markets} markets with {POINTS} points and {FILLS} fills each")
    path = databases.uniform(workshop.root / "uniform.db", markets=markets, points=POINTS, fills=FILLS)
    yield f"## Details of {markets:,} markets with {POINTS} points and {FILLS} fills each"
    with databases.postgresql(workshop) as server:
        urls = {"SQLite": databases.url(path)}
        if server:
            urls["PostgreSQL"] = databases.copied(server, path)
        for name, url in urls.items():
            yield from _on(workshop, name, url, markets)
    if workshop.options.is_long:
        yield from _growth(workshop)
    else:
        workshop.lacks(f"details: memory from {_LONG[0]:,} to {_LONG[1]:,} points", "it takes minutes: add --long")


def _on(workshop: Workshop, name: str, url: str, markets: int) -> Iterator[str]:
    ours, loop = f"product, details from {name}", f"cursors and msgspec, {name}"
    competitors = [
        Competitor(ours, lambda output: Command([*PYTHON, "tests.bench.stages", "details", NOW, url, output])),
        Competitor(loop, lambda output: Command([*PYTHON, "tests.bench.direct_details", url, output])),
        Competitor(f"whole build from {name}", lambda output: building(workshop, url, output)),
    ]
    made: list[Path] = []
    results = workshop.race(competitors, partial(_check, made))
    told = {one: worked(runs) for one, runs in results.items() if not one.startswith("whole")}
    yield f"\n### From {name}\n"
    yield from _table(results, told, markets)
    yield ""
    cpu = [[run.cpu_s for run in told[one]] for one in (ours, loop)]
    yield Goal(f"CPU time of the product's details ÷ the loop's, {name}", ratio(*cpu), 1.3).line()


def _check(made: list[Path], name: str, output: Path) -> None:
    if not name.startswith("whole"):
        made.append(output)
        same_files(made[0], output)


def _table(results: Results, told: Results, markets: int) -> Iterator[str]:
    rows = []
    for name, runs in results.items():
        inside = told.get(name)
        per_market = f"{median(run.cpu_s for run in inside) / markets * 1e6:.0f}" if inside else ""
        per_run = f"{median(run.wall_s for run in inside):.2f}" if inside else ""
        rows.append([name, per_market, per_run, *figures(runs)])
    yield from table(["", "CPU µs a market", "stage s", *(f"process: {one}" for one in TOOK)], rows)
    yield (
        "\nThe first two columns are of the work alone, without the start of Python and the catalog, which lists need "
        "as well. CPU time is the client's; what PostgreSQL itself takes is in the seconds only."
    )


def _growth(workshop: Workshop) -> Iterator[str]:
    rows = []
    for points in (workshop.options.markets(one) for one in _LONG):
        markets = min(_LONG_MARKETS, points)
        say(f"making up {points} points")
        path = databases.uniform(workshop.root / f"{points}.db", markets=markets, points=points // markets, fills=1)
        taken = workshop.measured(building(workshop, databases.url(path), workshop.new("long")))
        rows.append([f"{points:,}", f"{points / taken.cpu_s:,.0f}", *figures([taken])])
        yield ""
    yield f"### Memory from {rows[0][0]} to {rows[-1][0]} points, {_LONG_MARKETS:,} markets, SQLite\n"
    yield from table(["points", "points a CPU second", *TOOK], rows)
    yield ""
    yield f"- peak memory grows by a factor of {shown(float(rows[-1][-1]) / float(rows[0][-1]))}"


if __name__ == "__main__":
    parts.main(run)
