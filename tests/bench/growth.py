"""How a site grows with its markets, and where this machine ends: `python -m tests.bench.growth`."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import Final

from tests.bench import databases, parts
from tests.bench.build import building
from tests.bench.tables import Measured, shown, table
from tests.bench.workshop import Workshop, say, start_up

MARKETS: Final = (100, 1_000, 5_000, 10_000)


@dataclass(frozen=True)
class Site:
    """A build of so many markets. `blocks` is what it takes of the disk, in bytes; `puts` are of a first publish."""

    markets: int
    taken: Measured
    start_up_s: float
    files: int
    puts: int
    size: int
    blocks: int

    @property
    def work_s(self) -> float:
        """The seconds of the build without the start of Python."""
        return max(self.taken.wall_s - self.start_up_s, 0.001)


def run(workshop: Workshop) -> Iterator[str]:
    """Build each size once: the trend counts, not the last percent."""
    sites = [_site(workshop, workshop.options.markets(number)) for number in MARKETS]
    yield "## Growth"
    yield ""
    yield from _table(sites)
    yield ""
    yield from _exponents(sites)
    yield from _end(sites, workshop.root)


def _site(workshop: Workshop, markets: int) -> Site:
    path = databases.lifelike(workshop, markets)
    workshop.rest_if_full()
    workshop.settle()
    say(f"  building {markets} markets")
    output = workshop.new("growth")
    idle = workshop.measured(start_up(workshop.root).command(output))
    taken = workshop.measured(building(workshop, databases.url(path), output))
    files, size, blocks = weighed(output)
    puts = json.loads(output.joinpath("report.json").read_bytes())["run"]["written"]
    return Site(markets, taken, idle.wall_s, files, puts, size, blocks)


def weighed(tree: Path) -> tuple[int, int, int]:
    """How many files and folders there are, the bytes in files, and what all of it takes of the disk."""
    inodes = size = blocks = 0
    for folder, _, files in os.walk(tree):
        for name in (".", *files):
            status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - of 600,000 files
            inodes, blocks = inodes + 1, blocks + status.st_blocks * 512
            size += status.st_size if name != "." else 0
    return inodes, size, blocks


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The power of the size that the values grow with, by the best line through the logarithms."""
    return linear_regression([log(one) for one in sizes], [log(one) for one in values]).slope


def _exponents(sites: Sequence[Site]) -> Iterator[str]:
    for name, chosen in (("all sizes", sites), ("the two largest", sites[-2:])):
        values: dict[str, Sequence[float]] = {
            "files": [one.files for one in chosen],
            "bytes": [one.size for one in chosen],
            "seconds": [one.work_s for one in chosen],
            "memory": [one.taken.rss_mib for one in chosen],
        }
        found = (f"{kind} {exponent([one.markets for one in chosen], each):.2f}" for kind, each in values.items())
        yield f"- exponents of the growth over {name} (1 is in proportion): {', '.join(found)}"


def _table(sites: Sequence[Site]) -> Iterator[str]:
    rows = [
        [
            f"{one.markets:,}", f"{one.files:,}", f"{one.size / 1e9:.2f}", f"{one.blocks / 1e9:.2f}", f"{one.puts:,}",
            f"{one.work_s:.2f}", f"{one.taken.cpu_s:.2f}", f"{one.taken.rss_mib:.0f}",
        ]
        for one in sites
    ]  # fmt: skip
    heads = ["files and folders", "GB", "GB on disk", "PUTs", "s without start-up", "CPU s", "peak MiB of a process"]
    yield from table(["markets", *heads], rows)


def _end(sites: Sequence[Site], folder: Path) -> Iterator[str]:
    """Where the disk ends, by what the two largest sites differ in: a rebuild needs room for what it replaces, too."""
    small, large = sites[-2:]
    state = os.statvfs(folder)
    markets = large.markets - small.markets
    rooms = {
        "inodes": (state.f_favail, (large.files - small.files) / markets),
        "bytes": (state.f_bavail * state.f_frsize, (large.blocks - small.blocks) / markets),
    }
    ends = {name: room / each for name, (room, each) in rooms.items()}
    for name, (room, each) in rooms.items():
        yield f"- {room:,} {name} are free and a market takes {shown(each)}: they end at {ends[name]:,.0f} markets"
    first = min(ends, key=lambda name: ends[name])
    yield f"- so the {first} of this disk end first, at {ends[first]:,.0f} markets, or half of that with a full rebuild"


if __name__ == "__main__":
    parts.main(run)
