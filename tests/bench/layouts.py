"""The two layouts side by side: objects, and the PUT requests of a rebuild after some of the markets were traded.

`python -m tests.bench.layouts`. Every file that a rebuild writes under `v1/` is a PUT of the publish that follows.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from generator.tree.layouts import LAYOUTS
from tests.bench import databases, parts
from tests.bench.build import building
from tests.bench.rebuild import counted
from tests.bench.tables import Measured, table
from tests.bench.workshop import Workshop, say

MARKETS: Final = (1_000, 5_000)
#: Too many for pages.
MANY: Final = 100_000
_SHARES: Final = (0.01, 0.05, 0.2)


@dataclass(frozen=True)
class _Site:
    """A first build in a layout, and the PUTs of each later one, by the share of the markets that were traded."""

    markets: int
    layout: str
    full: Measured
    objects: int
    puts: dict[float, int]


def run(workshop: Workshop) -> Iterator[str]:
    """Build each size once in each layout: counts are the same in every round."""
    yield "## Layouts"
    yield ""
    sizes = [(workshop.options.markets(number), LAYOUTS) for number in MARKETS]
    if workshop.options.is_long:
        sizes.append((workshop.options.markets(MANY), ("chunks",)))
    sites = [_site(workshop, markets, layout) for markets, layouts in sizes for layout in layouts]
    heads = [f"PUTs, {share:.0%} traded" for share in _SHARES]
    yield from table(["markets", "layout", "objects", *heads, "build s", "peak MiB of a process"], map(_row, sites))
    yield "\nA market that was traded has another item in every list that shows it, and another place in three sorts."


def _site(workshop: Workshop, markets: int, layout: str) -> _Site:
    say(f"  {markets} markets in {layout}")
    original, database = databases.lifelike(workshop, markets), workshop.root / "traded.db"
    workshop.rest_if_full()
    workshop.settle()
    output = workshop.new(layout)
    full = _built(workshop, original, output, layout)
    puts = {}
    for share in _SHARES:
        shutil.copyfile(original, database)
        databases.trade(database, share)
        puts[share] = counted(_last(_built(workshop, database, output, layout)))["written"]
        # Back to where the next share begins: what was is still there.
        _built(workshop, original, output, layout)
    return _Site(markets, layout, full, counted(_last(full))["written"], puts)


def _built(workshop: Workshop, database: Path, output: Path, layout: str) -> Measured:
    return workshop.measured(building(workshop, databases.url(database), output, layout=layout))


def _last(taken: Measured) -> str:
    return taken.said.splitlines()[-1]


def _row(site: _Site) -> list[str]:
    puts = [f"{site.puts[share]:,}" for share in _SHARES]
    took = [f"{site.full.wall_s:.1f}", f"{site.full.rss_mib:.0f}"]
    return [f"{site.markets:,}", site.layout, f"{site.objects:,}", *puts, *took]


if __name__ == "__main__":
    parts.main(run)
