"""Figures → Markdown: medians, ratios of runs in the same round, goals. Pure."""

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


@dataclass(frozen=True)
class Goal:
    """The bound of a figure: `limit` is its maximum, or its minimum if `is_least`."""

    sentence: str
    found: float
    limit: float
    is_least: bool = False

    def line(self) -> str:
        """The goal as a line of Markdown."""
        is_reached = self.found >= self.limit if self.is_least else self.found <= self.limit
        bound = "at least" if self.is_least else "at most"
        verdict = "reached" if is_reached else "**MISSED**"
        return f"- {self.sentence}: {shown(self.found)}, goal {bound} {shown(self.limit)}: {verdict}"


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


def shown(value: float) -> str:
    """A figure with three significant digits and thousands separators."""
    for bound, form in ((0.095, ".3f"), (9.95, ".2f"), (99.5, ".1f")):
        if abs(value) < bound:
            return f"{value:{form}}"
    return f"{value:,.0f}"
