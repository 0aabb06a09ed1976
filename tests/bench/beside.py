"""Whole commands of this checkout beside those of another commit: `make bench ONLY=beside OPTIONS="--commit HEAD~5"`.

Both programs run in turn, in random order, each in folders of its own, on the same database, whose markets have both
version columns. CPU seconds are user and system of all processes; shares of a full build are without start-up.
"""

import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import databases
from tests.bench.change import FULL, LATER, SAME, SCHEDULE, TRADED_LATER, traded
from tests.bench.changing import BESIDE, Built, built
from tests.bench.runner import Runner, product, say, start_up
from tests.bench.tables import Measured, ratio, table
from tests.support import postgres
from tests.support.project import ROOT
from tests.support.sites.builds import NOW

#: Sizes of the sites.
MARKETS: Final = 20_000
MANY: Final = 100_000
PAGES: Final = 1_000
SMALL: Final = 100
HUGE: Final = 1_000_000
#: The most rounds of what takes minutes.
_FEW: Final = 3
_HEADER: Final = (
    *("", "CPU s before", "now", "ratio", "of a full build before", "now"),
    *("peak MiB of a process before", "now", "puts before", "now"),
)
_EXTENDED: Final = {"variant": "extended", "search": "title+description"}

#: The runs of the two programs: those of the other commit come first.
Runs = tuple[list[Measured], list[Measured]]
#: Runs a command, by its arguments.
Site = Callable[..., Measured]


def run(runner: Runner) -> Iterator[str]:
    """Measure each kind of command."""
    yield f"## Whole commands, and those of {runner.options.commit} before"
    yield ""
    yield from table(_HEADER, _Pair(runner, (_other(runner), ROOT)).rows())


def _other(runner: Runner) -> Path:
    """The code of the other commit, in a folder of its own."""
    folder = runner.root / "other"
    folder.mkdir()
    archived = ["git", "-C", str(ROOT), "archive", runner.options.commit, "generator", "templates"]
    packed = subprocess.run(archived, stdout=subprocess.PIPE, check=False)
    if packed.returncode:
        raise SystemExit(f"{runner.options.commit}: git has no such commit")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder


@dataclass(frozen=True)
class _Pair:
    """Two programs, by the folders of their code, that are measured beside each other."""

    runner: Runner
    programs: tuple[Path, Path]

    def rows(self) -> Iterator[list[str]]:
        """The rows of the table, each as soon as it is known."""
        yield from self._rebuilds(self.runner.options.markets(MARKETS))
        yield from self._many(self.runner.options.markets(MANY))
        pages, small = (self.runner.options.markets(number) for number in (PAGES, SMALL))
        yield _row(f"{pages:,}, `pages`: full build", self._full(pages, layout="pages"))
        yield _row(f"{small:,}, `chunks`: full build", self._full(small, layout="chunks"))
        yield from self._huge(self.runner.options.markets(HUGE))

    def _each(self, rounds: int, measured: Callable[[Path], Measured]) -> Runs:
        """Measure something of both programs, so many times."""
        runs: dict[Path, list[Measured]] = {program: [] for program in self.programs}
        for _ in range(min(rounds, self.runner.options.rounds)):
            for program in random.sample(self.programs, len(self.programs)):
                runs[program].append(measured(program))
        before, now = self.programs
        return runs[before], runs[now]

    def _database(self, markets: int) -> Path:
        """A database of its own, with both versions."""
        database = self.runner.root / f"versions-{markets}.db"
        shutil.copyfile(databases.realistic(self.runner, markets), database)
        databases.add_versions(database)
        databases.add_row_versions(database)
        return database

    def _rebuilds(self, markets: int) -> Iterator[list[str]]:
        """Builds one after the other: what each is of a full build, and what it puts."""
        idle = self._each(_FEW, lambda program: self.runner.measured(start_up(self.runner.root).of(program)))
        builds: dict[str, dict[Path, list[Built]]] = {}
        for number in range(self.runner.options.rounds):
            say(f"round {number + 1} of {self.runner.options.rounds}: rebuilds of {markets} markets")
            self.runner.rest_if_full()
            database, outputs = self._database(markets), {one: self.runner.new("beside") for one in self.programs}
            for name, minutes in {FULL: 0, SAME: 0, LATER: SCHEDULE, TRADED_LATER: 2 * SCHEDULE}.items():
                if name == TRADED_LATER:
                    databases.trade(database, traded(databases.public(database)))
                for program in random.sample(self.programs, len(self.programs)):
                    made = built(self.runner, database, outputs[program], minutes, program)
                    builds.setdefault(name, {}).setdefault(program, []).append(made)
        full = [_seconds([made.taken for made in builds[FULL][one]], idle[at]) for at, one in enumerate(self.programs)]
        for name, by_program in builds.items():
            of_both = [by_program[program] for program in self.programs]
            runs = ([made.taken for made in of_both[0]], [made.taken for made in of_both[1]])
            shares = [f"{ratio(_seconds(took, idle[at]), full[at]):.3f}" for at, took in enumerate(runs)]
            yield _row(f"{markets:,}, `chunks`: {name}", runs, shares, [_puts(made[0]) for made in of_both])

    def _many(self, markets: int) -> Iterator[list[str]]:
        """A build of a large site that finds nothing to do, and takedowns from its target."""
        database = self._database(markets)
        source = {"layout": "chunks", "source__url": databases.url(database)}
        core, extended = ({one: self._site(one, source | more) for one in self.programs} for more in ({}, _EXTENDED))
        for site in (*core.values(), *extended.values()):
            site("build", "--as-of", NOW)
            site("publish", "--allow-demo")
        again = self._each(self.runner.options.rounds, lambda one: core[one]("build", "--as-of", NOW))
        yield _row(f"{markets:,}, `chunks`: {SAME}", again)
        for title, sites in {"core": core, "extended with search": extended}.items():
            chosen = {one: _listed(database) for one in self.programs}
            runs = self._each(_FEW, partial(_takedown, sites, chosen))
            yield _row(f"{markets:,}, {title}: takedown of one", runs)

    def _site(self, program: Path, settings: Mapping[str, object]) -> Site:
        """What runs a command of the program on a site with a folder and a target of its own."""
        output = self.runner.new("beside")
        known = {**settings, "output": output, "publish__target": output.parent / "store"}
        folder = self.runner.root
        return lambda *arguments: self.runner.measured(product(*arguments, folder=folder, **known).of(program))

    def _full(self, markets: int, **settings: object) -> Runs:
        """Full builds into new folders."""
        say(f"full builds of {markets} markets")
        database = self._database(markets)

        def full(program: Path) -> Measured:
            return built(self.runner, database, self.runner.new("full"), 0, program, **settings).taken

        return self._each(self.runner.options.rounds, full)

    def _huge(self, markets: int) -> Iterator[list[str]]:
        """A build of a huge site on PostgreSQL that finds nothing to do; no market is read to check its versions."""
        say(f"full builds of {markets} markets on PostgreSQL")
        with postgres.running() as server:
            name = server.create_database()
            databases.repeat(databases.realistic(self.runner, max(10, markets // 100)), server.connect(name), 100)
            known = {"layout": "chunks", "source__url": server.url(name), "source__audit": 0}
            sites = {one: self._site(one, known) for one in self.programs}

            def again(program: Path) -> Measured:
                return sites[program]("build", "--as-of", NOW)

            yield _row(f"{markets:,}, PostgreSQL: {FULL}", self._each(1, again))
            yield _row(f"{markets:,}, PostgreSQL: {SAME}", self._each(_FEW, again))


def _takedown(sites: Mapping[Path, Site], chosen: Mapping[Path, Iterator[str]], program: Path) -> Measured:
    return sites[program]("takedown", next(chosen[program]), "--yes")


def _listed(database: Path) -> Iterator[str]:
    """The ids of listed markets, in random order, the same every time."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(f"SELECT id FROM markets WHERE {databases.VISIBLE} ORDER BY id").fetchall()
    yield from (str(key) for (key,) in random.Random(1).sample(rows, len(rows)))  # noqa: S311 - the same markets every time


def _seconds(runs: Sequence[Measured], idle: Sequence[Measured]) -> list[float]:
    """CPU seconds without start-up."""
    start = median(run.cpu_s for run in idle)
    return [max(run.cpu_s - start, 0.001) for run in runs]


def _puts(made: Built) -> str:
    size = sum(part.bytes for kind, part in made.written.items() if kind != BESIDE)
    return f"{made.puts:,} ({size / 1e6:.1f} MB)"


def _row(name: str, runs: Runs, shares: Sequence[str] = ("", ""), puts: Sequence[str] = ("", "")) -> list[str]:
    seconds = [[run.cpu_s for run in took] for took in runs]
    memory = [f"{max(run.rss_mib for run in took):.0f}" for took in runs]
    compared = f"{ratio(seconds[1], seconds[0]):.2f}"
    return [name, *(f"{median(took):.2f}" for took in seconds), compared, *shares, *memory, *puts]
