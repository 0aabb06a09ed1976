"""The two layouts side by side: objects, and the PUT requests of a rebuild after some of the markets were traded.

`make bench ONLY=layouts`. Every file that a rebuild writes under `v1/` is a PUT of the publish that follows.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from generator.tree.layouts import LAYOUTS
from tests.bench import databases
from tests.bench.build import building
from tests.bench.changing import counted
from tests.bench.runner import Runner, say
from tests.bench.tables import Measured, table
from tests.support.sites.publishing import link_or_copy

MARKETS: Final = (1_000, 5_000)
_SHARES: Final = (0.01, 0.05, 0.2)


@dataclass(frozen=True)
class _Site:
    """A first build in a layout, and the PUTs of each later one, by the share of the markets that were traded."""

    markets: int
    layout: str
    full: Measured
    objects: int
    puts: dict[float, int]


def run(runner: Runner) -> Iterator[str]:
    """Build each size once in each layout, as counts are the same in every round."""
    yield "## Layouts"
    yield ""
    sizes = dict.fromkeys(map(runner.options.markets, MARKETS))
    sites = [_site(runner, markets, layout) for markets in sizes for layout in LAYOUTS]
    heads = [f"PUTs, {share:.0%} traded" for share in _SHARES]
    yield from table(["markets", "layout", "objects", *heads, "build s", "peak MiB of a process"], map(_row, sites))
    yield "\nA trade changes the market's item in every list that shows it, and its position in three sorts."


def _site(runner: Runner, markets: int, layout: str) -> _Site:
    say(f"  {markets} markets in {layout}")
    original, database = databases.realistic(runner, markets), runner.root / "traded.db"
    runner.rest_if_full()
    runner.wait_for_disk()
    output = runner.new(layout)
    full = _built(runner, original, output, layout)
    puts = {}
    for share in _SHARES:
        shutil.copyfile(original, database)
        databases.trade(database, share)
        traded = runner.new(f"{layout}-{share}")
        shutil.copytree(output, traded, copy_function=link_or_copy)
        puts[share] = counted(_last(_built(runner, database, traded, layout)))["written"]
    return _Site(markets, layout, full, counted(_last(full))["written"], puts)


def _built(runner: Runner, database: Path, output: Path, layout: str) -> Measured:
    return runner.measured(building(runner, databases.url(database), output, layout=layout))


def _last(taken: Measured) -> str:
    return taken.stdout.splitlines()[-1]


def _row(site: _Site) -> list[str]:
    puts = [f"{site.puts[share]:,}" for share in _SHARES]
    took = [f"{site.full.wall_s:.1f}", f"{site.full.rss_mib:.0f}"]
    return [f"{site.markets:,}", site.layout, f"{site.objects:,}", *puts, *took]
