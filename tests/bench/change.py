"""Rebuilds after small changes, and what publishing them costs: `make bench ONLY=change`.

In `pages`, a build without a change and one after some trades. In `chunks`, builds every five minutes of a large site:
without `detail_version`, with it, with it and `fills_window_step` of an hour, and with `market_version`, too.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from generator.cost import estimate
from tests.bench import databases
from tests.bench.changing import DETAILS, OTHERS, Built, Written, built
from tests.bench.runner import Runner, say, start_up
from tests.bench.tables import TOOK, Measured, figures, ratio, table, walls

#: Sizes of the sites in `pages`, at most, and in `chunks`.
FEW_MARKETS: Final = 5_000
MARKETS: Final = 20_000
TRADED: Final = 50
_SHARE: Final = 0.01
SCHEDULE: Final = 5
FULL: Final = "full build"
SAME: Final = "nothing changed, same as-of"
LATER: Final = f"{SCHEDULE} minutes later, nothing traded"
TRADED_LATER: Final = f"{SCHEDULE} minutes later, {TRADED} markets traded"
_SHARE_TRADED: Final = f"{_SHARE:.0%} of the markets traded, same as-of"


@dataclass(frozen=True)
class _Kind:
    """A kind of site: what adds its versions to a database, its settings, and the minute of each of its builds."""

    versions: Sequence[Callable[[Path], None]]
    settings: Mapping[str, str]
    builds: Mapping[str, int] = field(
        default_factory=lambda: {FULL: 0, SAME: 0, LATER: SCHEDULE, TRADED_LATER: 2 * SCHEDULE}
    )


_PAGES: Final = _Kind((), {"layout": "pages"}, dict.fromkeys((FULL, SAME, _SHARE_TRADED), 0))
_WITHOUT: Final = "without detail_version"
_WITH: Final = "with it"
_STEP: Final = "with it, and fills leaving on the hour"
_BOTH: Final = "the same with market_version"
#: As if fills left the last 24 hours one by one in chunks, too.
_EXACT: Final = {"fills_window_step": "0 s"}
KINDS: Final = {
    _WITHOUT: _Kind((), _EXACT),
    _WITH: _Kind((databases.add_versions,), _EXACT),
    _STEP: _Kind((databases.add_versions,), {}),
    _BOTH: _Kind((databases.add_versions, databases.add_row_versions), {}),
}
#: The builds of one round, by their name.
Round = Mapping[str, Built]


def run(runner: Runner) -> Iterator[str]:
    """Measure the same builds in every round, each after the one before, of each kind of site."""
    yield from _in_pages(runner, min(FEW_MARKETS, runner.options.markets(FEW_MARKETS)))
    yield ""
    yield from _in_chunks(runner)


def _in_pages(runner: Runner, markets: int) -> Iterator[str]:
    rounds, idle = [], []
    for _ in _each_round(runner, f"builds of {markets} markets in pages"):
        idle.append(runner.measured(start_up(runner.root)))
        rounds.append(one_round(runner, markets, _PAGES))
    yield f"## Rebuilds of {markets:,} markets in `pages` after small changes"
    yield ""
    yield from _shares(rounds, idle)


def _in_chunks(runner: Runner) -> Iterator[str]:
    markets = runner.options.markets(MARKETS)
    found: dict[str, list[Round]] = {name: [] for name in KINDS}
    for _ in _each_round(runner, f"builds of {markets} markets in chunks"):
        for name, rounds in found.items():
            rounds.append(one_round(runner, markets, KINDS[name]))
    yield f"## Rebuilds of {markets:,} markets in `chunks` after small changes"
    yield ""
    yield from _times(found)
    yield ""
    yield from _objects(found)
    yield ""


def _each_round(runner: Runner, what: str) -> Iterator[int]:
    for number in range(runner.options.rounds):
        say(f"round {number + 1} of {runner.options.rounds}: {what}")
        runner.rest_if_full()
        yield number


def one_round(runner: Runner, markets: int, kind: _Kind) -> Round:
    """The builds of a site of that kind, of a database of its own."""
    database, output = runner.root / "changing.db", runner.new("change")
    shutil.copyfile(databases.realistic(runner, markets), database)
    for add in kind.versions:
        add(database)
    made = {}
    for name, minutes in kind.builds.items():
        if name == TRADED_LATER:
            databases.trade(database, traded(databases.public(database)))
        elif name == _SHARE_TRADED:
            databases.trade(database, _SHARE)
        made[name] = built(runner, database, output, minutes, **kind.settings)
        say(f"  {name}: {made[name].taken.wall_s:.1f} s, {made[name].taken.cpu_s:.1f} s of CPU, {made[name].puts} PUTs")
    return made


def traded(public: int, number: int = TRADED) -> float:
    """The share of the public markets that is so many of them, or a tenth of few."""
    return min(number / public, 0.1)


# ── the tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def _shares(rounds: Sequence[Round], idle: Sequence[Measured]) -> Iterator[str]:
    """Compared with the full build: the time, and how many of the files were written."""
    full = walls([builds[FULL].taken for builds in rounds], idle)
    rows = []
    for name, first in rounds[0].items():
        runs = [builds[name].taken for builds in rounds]
        files = f"{first.puts:,} of {first.files:,}"
        rows.append([name, f"{ratio(walls(runs, idle), full):.2f}", files, *figures(runs)])
    yield from table(["", "x full build, without start-up", "files written", *TOOK], rows)
    yield f"\nStart-up: {median(run.wall_s for run in idle):.2f} s."


def _times(found: Mapping[str, Sequence[Round]]) -> Iterator[str]:
    rows = []
    for build in (FULL, SAME, LATER, TRADED_LATER):
        for name, rounds in found.items():
            read = rounds[0][build].read
            took = figures([builds[build].taken for builds in rounds])
            rows.append([build, name, "-" if read is None else f"{read:,}", *took])
    yield from table(["", "", "details read", *TOOK], rows)


def _objects(found: Mapping[str, Sequence[Round]]) -> Iterator[str]:
    """What changed, which is the same in every round."""
    rows = []
    for build in (LATER, TRADED_LATER):
        for name, rounds in found.items():
            made = rounds[0][build]
            cells = map(_shown, (made.lists, made.written[DETAILS], made.written[OTHERS]))
            rows.append([build, name, *cells, f"{made.puts + estimate.RECORD_PUTS:,}"])
    yield from table(["", "", "objects of lists", "details", "others", "PUTs"], rows)
    yield "\nPUTs are those of a publish, the store's record included."


def _shown(written: Written) -> str:
    return f"{written.objects:,} ({written.bytes / 1e6:.1f} MB)"
