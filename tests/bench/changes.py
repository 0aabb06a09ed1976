"""How a rebuild grows with the site, and with the markets that changed; a part of `tests.bench.growth`.

Five minutes after the build before, in `chunks`, with both versions and `fills_window_step`: once each, as the trend
matters. Lists with few chunks would not show how PUTs grow, because 50 markets change most of their chunks. So even the
smallest site has more chunks per list than markets that change, and what a model expects is shown beside the PUTs.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import linear_regression
from typing import Final

from generator.tree import borders
from tests.bench import change, changing, databases
from tests.bench.changing import CHUNKS, DETAILS, HEADS, INDEXES, OTHERS, Built
from tests.bench.runner import Runner, say, start_up
from tests.bench.tables import Goal, table

#: Sizes of sites in which a fixed number of markets changes; the largest database is that of the goals of `change`.
SIZES: Final = (12_500, 25_000, 50_000, 100_000)
#: Numbers of markets that change in the largest site, one build after the other.
TRADED: Final = (change.TRADED, 5, 500)
#: Statuses whose lists show markets that can be traded.
_STATUSES: Final = ("all", "open")
_MINUTES: Final = 5
_MOST: Final = {"wall time": 0.5, "wall time without reading markets": 0.5, "PUTs": 0.3}
_READ: Final = "read"


@dataclass(frozen=True)
class Change:
    """A rebuild of a site with that many markets, of which some were traded."""

    markets: int
    traded: int
    built: Built
    start_up_s: float

    @property
    def work_s(self) -> float:
        """The seconds of the build without the start of Python."""
        return max(self.built.taken.wall_s - self.start_up_s, 0.001)

    @property
    def read_s(self) -> float:
        """The part of them spent reading the rows of markets, as the build itself reports."""
        return float(self.built.report["run"]["seconds"][_READ])

    @property
    def counts(self) -> list[int]:
        """The lengths of the lists that show markets that can be traded."""
        lists: Mapping[str, Mapping[str, int]] = self.built.report["lists"]
        return [found["count"] for name, found in lists.items() if name.partition("/")[0] in _STATUSES]

    @property
    def expected(self) -> float:
        """The chunks that change if each traded market changes one chunk of each list, all equally likely."""
        return sum(touched(borders.estimate(count), self.traded) for count in self.counts)


def touched(chunks: int, markets: int) -> float:
    """How many of the chunks have at least one of the markets, on average."""
    return chunks * (1 - (1 - 1 / chunks) ** markets) if chunks else 0.0


def run(runner: Runner) -> Iterator[str]:
    """Rebuild every site once, and the largest once more for each number of markets."""
    sizes = [runner.options.markets(number) for number in SIZES]
    grown = [each for markets in sizes[:-1] for each in _changes(runner, markets, sizes[-1], TRADED[:1])]
    busy = [*_changes(runner, sizes[-1], sizes[-1], TRADED)]
    grown.append(busy[0])
    busy.sort(key=lambda each: each.traded)
    yield "## Growth of a rebuild five minutes later"
    yield ""
    yield from _table([*grown[:-1], *busy])
    yield ""
    yield from _puts([*grown[:-1], *busy])
    yield ""
    over_size = _exponents([each.markets for each in grown], grown)
    for kind, value in over_size.items():
        yield Goal(f"growth exponent of {kind} over size, {TRADED[0]} markets traded", value, _MOST[kind]).line()
    over_number = _exponents([each.traded for each in busy], busy)
    for kind, value in over_number.items():
        yield f"- growth exponent of {kind} over the markets traded, of {sizes[-1]:,}: {value:.2f}"


def _changes(runner: Runner, markets: int, most: int, numbers: Sequence[int]) -> Iterator[Change]:
    """The rebuilds of one site after so many of its markets were traded, each five minutes after the one before."""
    say(f"  {markets} markets, of which {', '.join(map(str, numbers))} are traded")
    runner.rest_if_full()
    database, output = runner.root / "growing.db", runner.new("growing")
    whole = databases.realistic(runner, most)
    if markets == most:
        shutil.copyfile(whole, database)
    else:
        databases.copy_first(whole, markets, database)
    databases.add_versions(database)
    databases.add_row_versions(database)
    idle = runner.measured(start_up(runner.root).command(output)).wall_s
    changing.built(runner, database, output, 0, fills_window_step="1 h")
    for number, wanted in enumerate(numbers, 1):
        traded = databases.trade(database, change.traded(databases.public(database), wanted), seed=number)
        made = changing.built(runner, database, output, _MINUTES * number, fills_window_step="1 h")
        say(f"    {traded} traded: {made.taken.wall_s:.1f} s, {made.taken.cpu_s:.1f} s of CPU, {made.puts} PUTs")
        yield Change(markets, traded, made, idle)


def _exponents(sizes: Sequence[int], changes: Sequence[Change]) -> dict[str, float]:
    values = {
        "wall time": [each.work_s for each in changes],
        "wall time without reading markets": [max(each.work_s - each.read_s, 0.001) for each in changes],
        "PUTs": [float(each.built.puts) for each in changes],
    }
    return {kind: exponent(sizes, found) for kind, found in values.items()}


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The exponent of the growth: the slope of a linear regression through the logarithms."""
    return linear_regression([log(size) for size in sizes], [log(value) for value in values]).slope


def _table(changes: Sequence[Change]) -> Iterator[str]:
    rows = [
        [
            f"{each.markets:,}", f"{each.traded:,}", f"{each.built.puts:,}", f"{each.work_s:.2f}", f"{each.read_s:.2f}",
            f"{each.built.taken.cpu_s:.2f}", f"{each.built.taken.rss_mib:.0f}",
        ]
        for each in changes
    ]  # fmt: skip
    heads = ["traded", "PUTs", "s without start-up", "s of them reading markets", "CPU s", "peak MiB of a process"]
    yield from table(["markets", *heads], rows)


def _puts(changes: Sequence[Change]) -> Iterator[str]:
    """The PUTs by kind, and what the model expects of chunks."""
    rows = []
    for each in changes:
        lists, written = each.counts, each.built.written
        chunks = sum(map(borders.estimate, lists)) / max(1, len(lists))
        kinds = [f"{written[kind].objects:,}" for kind in (INDEXES, HEADS, DETAILS, OTHERS)]
        found, expected = (number / max(1, len(lists)) for number in (written[CHUNKS].objects, each.expected))
        rows.append(
            [f"{each.markets:,}", f"{each.traded:,}", f"{chunks:.0f}", f"{found:.1f}", f"{expected:.1f}", *kinds]
        )
    heads = ["traded", "chunks per list", "new chunks per list", "by the model", INDEXES, HEADS, DETAILS, OTHERS]
    yield from table(["markets", *heads], rows)
    yield ""
    yield f"Lists are those of {' and '.join(_STATUSES)}; no other shows what was traded. By the model, each market"
    yield "changes one chunk of a list, and all are equally likely; a market that moves changes two."
