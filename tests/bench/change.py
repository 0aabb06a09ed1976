"""Builds every five minutes of a large site in `chunks`, in which little happens, and what their publishes cost.

Without `detail_version`, with it, and with it and `fills_window_step` of an hour. `python -m tests.bench.change`; with
`--scale 5` of 100,000 markets.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from generator.cost import estimate, prices
from tests.bench import databases, parts
from tests.bench.changing import Built, Written, built
from tests.bench.runner import Runner, say
from tests.bench.tables import TOOK, Goal, figures, table
from tests.support.builds import make_config

MARKETS: Final = 20_000
TRADED: Final = 50
#: The size that the goals are for.
GOAL_MARKETS: Final = 100_000
SCHEDULE: Final = 5
_FULL: Final = "full build"
_SAME: Final = "nothing changed, same as-of"
_LATER: Final = "five minutes later, nothing traded"
_TRADED: Final = f"five minutes later, {TRADED} markets traded"


@dataclass(frozen=True)
class _Kind:
    has_versions: bool
    step: str = "0"


_WITHOUT: Final = "without detail_version"
_WITH: Final = "with it"
_STEP: Final = "with it and fills_window_step: 1 h"
_KINDS: Final = {
    _WITHOUT: _Kind(has_versions=False),
    _WITH: _Kind(has_versions=True),
    _STEP: _Kind(has_versions=True, step="1 h"),
}
#: The builds of one round, by their name.
_Round = Mapping[str, Built]


def run(runner: Runner) -> Iterator[str]:
    """Measure the same four builds in every round, each after the one before, of each kind of site."""
    markets = runner.options.markets(MARKETS)
    found: dict[str, list[_Round]] = {kind: [] for kind in _KINDS}
    for number in range(runner.options.rounds):
        for name, rounds in found.items():
            say(f"round {number + 1} of {runner.options.rounds}: builds of {markets} markets, {name}")
            runner.rest_if_full()
            rounds.append(_round(runner, markets, _KINDS[name]))
    yield f"## Builds of {markets:,} markets that change little"
    yield ""
    yield from _times(found)
    yield ""
    yield from _objects(runner, found)
    yield ""
    if markets == GOAL_MARKETS:
        yield from _goals(found)


def _round(runner: Runner, markets: int, kind: _Kind) -> dict[str, Built]:
    database = runner.root / "changing.db"
    shutil.copyfile(databases.realistic(runner, markets), database)
    if kind.has_versions:
        databases.add_versions(database)
    output = runner.new("change")
    made = {}
    for name, minutes in {_FULL: 0, _SAME: 0, _LATER: 5, _TRADED: 10}.items():
        if name == _TRADED:
            databases.trade(database, traded(databases.public(database)))
        made[name] = built(runner, database, output, minutes, fills_window_step=kind.step)
    return made


def traded(public: int, number: int = TRADED) -> float:
    """The share of the public markets that is so many of them, or a tenth of few."""
    return min(number / public, 0.1)


def _times(found: Mapping[str, Sequence[_Round]]) -> Iterator[str]:
    rows = []
    for build in (_FULL, _SAME, _LATER, _TRADED):
        for name, rounds in found.items():
            read = rounds[0][build].read
            took = figures([builds[build].taken for builds in rounds])
            rows.append([build, name, "-" if read is None else f"{read:,}", *took])
    yield from table(["", "", "details read", *TOOK], rows)


def _objects(runner: Runner, found: Mapping[str, Sequence[_Round]]) -> Iterator[str]:
    """What changed, which is the same in every round, and what publishing so much every time would cost."""
    known = prices.load(make_config(runner.root))
    rows = []
    for build in (_LATER, _TRADED):
        for name, rounds in found.items():
            made = rounds[0][build]
            puts = made.puts + estimate.RECORD_PUTS
            monthly = puts * estimate.MINUTES_PER_MONTH / SCHEDULE
            usd = [f"{monthly / 1e6 * place.per_million_puts:.2f}" for place in known.places]
            rows.append([build, name, *map(_shown, (made.lists, made.details, made.others)), f"{puts:,}", *usd])
    places = [f"USD a month, {place.name}" for place in known.places]
    yield from table(["", "", "objects of lists", "details", "others", "PUTs", *places], rows)
    yield f"\nPUTs are those of a publish, the store's record included; a month has one every {SCHEDULE} minutes."


def _shown(written: Written) -> str:
    return f"{written.objects:,} ({written.bytes / 1e6:.1f} MB)"


def _goals(found: Mapping[str, Sequence[_Round]]) -> Iterator[str]:
    def seconds(kind: str, build: str) -> float:
        return median(builds[build].taken.wall_s for builds in found[kind])

    def puts(kind: str, build: str) -> int:
        return found[kind][0][build].puts

    yield Goal("s, full build", seconds(_WITHOUT, _FULL), 30).line()
    yield Goal(f"s, {_SAME}", seconds(_WITH, _SAME), 6).line()
    yield Goal(f"s, {_LATER}", seconds(_WITH, _LATER), 8).line()
    yield Goal(f"s, {_TRADED}", seconds(_WITH, _TRADED), 10).line()
    yield Goal(f"objects, {_LATER}", puts(_WITH, _LATER), 3_000).line()
    yield Goal(f"objects, {_LATER}, {_STEP}", puts(_STEP, _LATER), 60).line()
    yield Goal(f"objects, {_TRADED}, {_STEP}", puts(_STEP, _TRADED), 1_300).line()


if __name__ == "__main__":
    parts.main(run)
