"""All benchmarks, or some: `python -m tests.bench [PART…]`. Tables go to stdout, progress to stderr."""

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.bench import beside, build, change, layouts, publish, questions, record, search
from tests.bench.runner import Options, Runner, opened
from tests.support.project import ROOT

_GIB: Final = 1 << 30
_FOLDER: Final = ROOT / ".bench"
Part = Callable[[Runner], Iterator[str]]

#: In the order in which they run.
PARTS: Final[dict[str, Part]] = {
    "build": build.run,
    "change": change.run,
    "publish": publish.run,
    "record": record.run,
    "layouts": layouts.run,
    "search": search.run,
    "questions": questions.run,
    "beside": beside.run,
}


def report(parts: Sequence[Part], options: Options) -> None:
    """Run the parts in turn and print each line as soon as it is known."""
    with opened(options) as runner:
        _print("# Benchmarks", "", *_machine(runner.root))
        _print(f"- medians of {options.rounds} rounds, competitors in random order; ratios are of runs in one round")
        if options.scale != 1:
            _print(f"- **scaled to {options.scale:g} times the published numbers of markets: not comparable**")
        for part in parts:
            _print("")
            for line in part(runner):
                _print(line)
        if runner.missing:
            _print("", "## Not measured", "", *(f"- {sentence}" for sentence in runner.missing))


def _machine(folder: Path) -> Iterator[str]:
    """What the figures were measured on, and when."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    free = shutil.disk_usage(folder).free / _GIB
    yield f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f} before the first run"
    yield f"- {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB of memory, {free:.0f} GiB free on the file system"
    yield f"- {platform.system()} {platform.release()}, Python {platform.python_version()}"


def _print(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "part",
        nargs="*",
        choices=[*PARTS, []],
        default=[],
        metavar="PART",
        help=f"one of {', '.join(PARTS)} (default: all)",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="on the file system to measure (default: .bench)")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the markets; 0.1 tries the benchmark")
    parser.add_argument("--commit", default="HEAD^", help="what `beside` compares with (default: the commit before)")
    parser.add_argument("--databases", type=Path, help="a folder that keeps the demo's databases for the next run")
    options = vars(parser.parse_args())
    names = options.pop("part") or PARTS
    report([PARTS[name] for name in names], Options(**options))


if __name__ == "__main__":
    main()
