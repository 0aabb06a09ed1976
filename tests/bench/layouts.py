"""The two layouts side by side: objects, and the PUT requests of a rebuild after some of the markets were traded.

`make bench ONLY=layouts`. Every file that a rebuild writes under `v1/` is a PUT of the publish that follows.
"""

import shutil
from collections.abc import Iterator
from typing import Final

from generator.tree.layouts import LAYOUTS
from tests.bench import databases
from tests.bench.changing import built
from tests.bench.runner import Runner, say
from tests.bench.tables import table
from tests.support.sites.publishing import link_or_copy

MARKETS: Final = (1_000, 5_000)
_SHARES: Final = (0.01, 0.05, 0.2)


def run(runner: Runner) -> Iterator[str]:
    """Build each size once in each layout, as counts are the same in every round."""
    yield "## Layouts"
    yield ""
    sizes = dict.fromkeys(map(runner.options.markets, MARKETS))
    heads = [f"PUTs, {share:.0%} traded" for share in _SHARES]
    rows = [_row(runner, markets, layout) for markets in sizes for layout in LAYOUTS]
    yield from table(["markets", "layout", "objects", *heads], rows)
    yield "\nA trade changes the market's item in every list that shows it, and its position in three sorts."


def _row(runner: Runner, markets: int, layout: str) -> list[str]:
    say(f"  {markets} markets in {layout}")
    original, database = databases.realistic(runner, markets), runner.root / "traded.db"
    runner.rest_if_full()
    output = runner.new(layout)
    counts = [built(runner, original, output, 0, layout=layout).puts]
    for share in _SHARES:
        shutil.copyfile(original, database)
        databases.trade(database, share)
        traded = runner.new(f"{layout}-{share}")
        shutil.copytree(output, traded, copy_function=link_or_copy)
        counts.append(built(runner, database, traded, 0, layout=layout).puts)
    return [f"{markets:,}", layout, *(f"{count:,}" for count in counts)]
