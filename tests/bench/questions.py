"""A site whose markets answer questions, beside the same site without: `make bench ONLY=questions`.

Both have the same markets, with `detail_version`, in `chunks`. All of them are in questions, three or so in each, a few
of which have more than a row shows.
"""

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from tests.bench import databases
from tests.bench.change import FULL, MARKETS, SCHEDULE, TRADED_LATER, traded
from tests.bench.changing import Built, built
from tests.bench.runner import Runner, say, start_up
from tests.bench.tables import Measured, ratio, table

#: Markets in a question, on average.
_MEMBERS: Final = 20 / 6
_WITH: Final = "with questions"
_WITHOUT: Final = "without"
#: The builds of one site, in their order: full, and after some trades.
Builds = Mapping[str, Built]


def run(runner: Runner) -> Iterator[str]:
    """Build both sites in every round, in random order: whole, and after some trades."""
    markets = runner.options.markets(MARKETS)
    questions = round(markets / _MEMBERS)
    found: dict[str, list[Builds]] = {_WITHOUT: [], _WITH: []}
    idle = list[Measured]()
    for number in range(runner.options.rounds):
        say(f"round {number + 1} of {runner.options.rounds}: {markets} markets in {questions} questions, and in none")
        runner.rest_if_full()
        idle.append(runner.measured(start_up(runner.root)))
        for kind in random.sample([*found], len(found)):
            found[kind].append(_builds(runner, markets, questions if kind == _WITH else 0))
    yield f"## {markets:,} markets in {questions:,} questions, in `chunks`"
    yield ""
    yield from table(["", _WITHOUT, _WITH, "ratio", "at most"], _rows(found, idle))
    yield f"\nStart-up, which the CPU seconds do not have: {median(run.cpu_s for run in idle):.2f} s."


def _builds(runner: Runner, markets: int, questions: int) -> Builds:
    """A full build of a site, and one after some of its markets were traded."""
    database, output = runner.root / "questions.db", runner.new("questions")
    shutil.copyfile(databases.realistic(runner, markets), database)
    databases.add_versions(database)
    if questions:
        databases.add_questions(database, questions)
    made = {FULL: built(runner, database, output, 0)}
    databases.trade(database, traded(databases.public(database)))
    made[TRADED_LATER] = built(runner, database, output, SCHEDULE)
    say(f"  {questions} questions: {made[FULL].taken.cpu_s:.1f} s of CPU, {made[TRADED_LATER].puts} PUTs after trades")
    return made


def _rows(found: Mapping[str, Sequence[Builds]], idle: Sequence[Measured]) -> Iterator[list[str]]:
    """What is compared, and the most that questions may cost of it."""
    start = median(run.cpu_s for run in idle)
    for build, limit in ((FULL, "1.45"), (TRADED_LATER, "")):
        seconds = [[max(one[build].taken.cpu_s - start, 0.001) for one in builds] for builds in found.values()]
        yield _row(f"CPU s of a {build}" if build == FULL else f"CPU s, {build}", seconds, limit)
    sizes = [[one[FULL].lists.bytes / 1e6 for one in builds] for builds in found.values()]
    yield _row("MB of lists", sizes, "1.60")
    sizes = [[float(one[TRADED_LATER].puts) for one in builds] for builds in found.values()]
    yield _row(f"objects to put, {TRADED_LATER}", sizes, "2.00")
    memory = [[one[FULL].taken.rss_mib for one in builds] for builds in found.values()]
    yield _row("peak MiB of a process", memory, "")


def _row(name: str, values: Sequence[Sequence[float]], limit: str) -> list[str]:
    without, having = values
    shown = [f"{median(each):,.2f}" for each in values]
    return [name, *shown, f"{ratio(having, without):.2f}", limit]
