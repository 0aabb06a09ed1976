"""How a site grows with its markets, how a rebuild does with what changed, and the limits of this machine.

`python -m tests.bench.growth`; `--scale` multiplies every number of markets.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench import changes, databases, parts
from tests.bench.build import building
from tests.bench.changes import exponent
from tests.bench.runner import Runner, say, start_up
from tests.bench.tables import Measured, shown, table

MARKETS: Final = (100, 1_000, 5_000, 10_000)


@dataclass(frozen=True)
class MeasuredSite:
    """A build of that many markets. `blocks` is its disk usage in bytes; `puts` are those of a first publish."""

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


def run(runner: Runner) -> Iterator[str]:
    """Build each size once: the trend matters, not the last percent."""
    sites = [_site(runner, runner.options.markets(number)) for number in MARKETS]
    yield "## Growth"
    yield ""
    yield from _table(sites)
    yield ""
    yield from _exponents(sites)
    yield from _end(sites, runner.root)
    yield ""
    yield from changes.run(runner)


def _site(runner: Runner, markets: int) -> MeasuredSite:
    path = databases.realistic(runner, markets)
    runner.rest_if_full()
    runner.wait_for_disk()
    say(f"  building {markets} markets")
    output = runner.new("growth")
    idle = runner.measured(start_up(runner.root).command(output))
    taken = runner.measured(building(runner, databases.url(path), output))
    files, size, blocks = weighed(output)
    puts = json.loads(output.joinpath("report.json").read_bytes())["run"]["written"]
    return MeasuredSite(markets, taken, idle.wall_s, files, puts, size, blocks)


def weighed(tree: Path) -> tuple[int, int, int]:
    """The number of files and folders, the bytes in files, and the disk usage in bytes."""
    inodes = size = blocks = 0
    for folder, _, files in os.walk(tree):
        for name in (".", *files):
            status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - of 600,000 files
            inodes, blocks = inodes + 1, blocks + status.st_blocks * 512
            size += status.st_size if name != "." else 0
    return inodes, size, blocks


def _exponents(sites: Sequence[MeasuredSite]) -> Iterator[str]:
    for name, chosen in (("all sizes", sites), ("the two largest", sites[-2:])):
        values: dict[str, Sequence[float]] = {
            "files": [site.files for site in chosen],
            "bytes": [site.size for site in chosen],
            "seconds": [site.work_s for site in chosen],
            "memory": [site.taken.rss_mib for site in chosen],
        }
        found = (f"{kind} {exponent([site.markets for site in chosen], each):.2f}" for kind, each in values.items())
        yield f"- growth exponents over {name} (1 is proportional): {', '.join(found)}"


def _table(sites: Sequence[MeasuredSite]) -> Iterator[str]:
    rows = [
        [
            f"{site.markets:,}", f"{site.files:,}", f"{site.size / 1e9:.2f}", f"{site.blocks / 1e9:.2f}",
            f"{site.puts:,}",
            f"{site.work_s:.2f}", f"{site.taken.cpu_s:.2f}", f"{site.taken.rss_mib:.0f}",
        ]
        for site in sites
    ]  # fmt: skip
    heads = ["files and folders", "GB", "GB on disk", "PUTs", "s without start-up", "CPU s", "peak MiB of a process"]
    yield from table(["markets", *heads], rows)


def _end(sites: Sequence[MeasuredSite], folder: Path) -> Iterator[str]:
    """How many markets fit on the disk, from the two largest sites; a full rebuild needs twice the space."""
    small, large = sites[-2:]
    state = os.statvfs(folder)
    markets = large.markets - small.markets
    rooms = {
        "inodes": (state.f_favail, (large.files - small.files) / markets),
        "bytes": (state.f_bavail * state.f_frsize, (large.blocks - small.blocks) / markets),
    }
    ends = {name: room / each for name, (room, each) in rooms.items()}
    for name, (room, each) in rooms.items():
        yield f"- {room:,} {name} are free and a market takes {shown(each)}: enough for {ends[name]:,.0f} markets"
    first = min(ends, key=lambda name: ends[name])
    yield f"- this disk runs out of {first} first, at {ends[first]:,.0f} markets, or half of that with a full rebuild"


if __name__ == "__main__":
    parts.main(run)
