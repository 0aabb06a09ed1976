"""What histories in Parquet cost a build: `python -m tests.bench histories`.

The first build, and that of the next day after some trades, without Parquet, with thinned histories and with full ones.
"""

import shutil
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from tests.bench import databases
from tests.bench.changing import Built, built
from tests.bench.runner import Runner, say
from tests.bench.tables import TOOK, Goal, figures, ratio, table
from tests.support.sites.builds import AS_OF

MARKETS: Final = 20_000
_SHARE: Final = 0.01
_FIRST: Final = "first build"
_DAY: Final = f"the next day, {_SHARE:.0%} of the markets traded"
#: The minute of each build: both are of one month, as most days are.
_BUILDS: Final = {_FIRST: -1_440, _DAY: 0}
NONE, THINNED, FULL = "no Parquet", "thinned", "full"
_SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    NONE: {},
    THINNED: {"dumps__parquet": "true"},
    FULL: {"dumps__parquet": "true", "dumps__histories": "full"},
}
#: The builds of one round, by settings and name.
Round = Mapping[str, Mapping[str, Built]]


def run(runner: Runner) -> Iterator[str]:
    """Measure the builds in every round."""
    markets = runner.options.markets(MARKETS)
    rounds = list[Round]()
    for number in range(runner.options.rounds):
        say(f"histories of {markets} markets, round {number + 1}")
        rounds.append({kind: one_round(runner, markets, kind) for kind in _SETTINGS})
    yield f"## Histories of {markets:,} markets in Parquet"
    yield ""
    shown = [(kind, build) for build in _BUILDS for kind in _SETTINGS]
    yield from table(
        ["build", *TOOK],
        ([f"{build}, {kind}", *figures([one[kind][build].taken for one in rounds])] for kind, build in shown),
    )
    yield ""
    yield from (goal.line() for goal in goals(rounds))


def one_round(runner: Runner, markets: int, kind: str) -> dict[str, Built]:
    """Build twice, with trades between."""
    database, output = runner.new("database"), runner.new("output")
    shutil.copyfile(databases.realistic(runner, markets, AS_OF + timedelta(minutes=_BUILDS[_FIRST])), database)
    databases.add_versions(database)
    found = {}
    for name, minutes in _BUILDS.items():
        if name == _DAY:
            databases.trade(database, _SHARE)
        found[name] = built(runner, database, output, minutes, **_SETTINGS[kind])
    return found


def goals(rounds: list[Round]) -> Iterator[Goal]:
    """How much CPU full histories may take, as a share of that of a first build without Parquet."""
    whole = [one[NONE][_FIRST].taken.cpu_s for one in rounds]
    for build, limit in ((_FIRST, 0.25), (_DAY, 0.03)):
        more = [max(0.0, one[FULL][build].taken.cpu_s - one[NONE][build].taken.cpu_s) for one in rounds]
        yield Goal(f"{build}: CPU of full histories ÷ that of a first build", ratio(more, whole), limit)
