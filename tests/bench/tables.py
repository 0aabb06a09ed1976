"""Figures → Markdown: medians, ratios of runs in the same round. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Measured:
    """A measured run. Memory is the peak of its largest process."""

    wall_s: float
    cpu_s: float
    rss_mib: float
    stdout: str = ""


#: The runs of every competitor, by round.
Results = Mapping[str, Sequence[Measured]]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table; every column but the first is right-aligned."""
    yield f"| {' | '.join(header)} |"
    yield f"|---|{'---:|' * (len(header) - 1)}"
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row of {len(row)} cells under {len(header)} headings: {row}")
        yield f"| {' | '.join(row)} |"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of runs in the same round: a slow round does not distort it."""
    return median(mine / other for mine, other in zip(ours, theirs, strict=True))


def walls(runs: Sequence[Measured], start_up: Sequence[Measured] = ()) -> list[float]:
    """The wall seconds of each run, less the median of `start_up`."""
    idle = median(run.wall_s for run in start_up) if start_up else 0.0
    return [max(run.wall_s - idle, 0.001) for run in runs]


def figures(runs: Sequence[Measured]) -> list[str]:
    """Wall seconds as median and range, CPU seconds, peak memory: the cells under TOOK."""
    seconds = [run.wall_s for run in runs]
    return [
        f"{median(seconds):.2f}",
        f"{min(seconds):.2f}..{max(seconds):.2f}",
        f"{median(run.cpu_s for run in runs):.2f}",
        f"{max(run.rss_mib for run in runs):.0f}",
    ]


#: The headings over `figures`.
TOOK = ("wall s", "range", "CPU s", "peak MiB of a process")
