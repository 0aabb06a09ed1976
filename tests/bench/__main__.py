"""All benchmarks, or some: `python -m tests.bench [PART…]`. Tables go to stdout, progress to stderr."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.bench import build, change, layouts, machine, publish, record, search, serving
from tests.bench.runner import Options, Runner, opened
from tests.support.project import ROOT

_FOLDER: Final = ROOT / ".bench"
_AWS: Final = str(ROOT / ".venv-bench" / "bin" / "aws")
Part = Callable[[Runner], Iterator[str]]

#: In the order in which they run.
PARTS: Final[dict[str, Part]] = {
    "build": build.run,
    "change": change.run,
    "publish": publish.run,
    "record": record.run,
    "serving": serving.run,
    "layouts": layouts.run,
    "search": search.run,
}


def report(parts: Sequence[Part], options: Options) -> None:
    """Run the parts in turn and print each line as soon as it is known."""
    with opened(options) as runner:
        _print("# Benchmarks", "", *machine.described(runner.root))
        _print(f"- medians of {options.rounds} rounds, competitors in random order; ratios are of runs in one round")
        if options.scale != 1:
            _print(f"- **scaled to {options.scale:g} times the published numbers of markets: not comparable**")
        for part in parts:
            _print("")
            for line in part(runner):
                _print(line)
        if runner.created_s:
            _print("", f"File system: {runner.disk_state()}.")
        if runner.missing:
            _print("", "## Not measured", "", *(f"- {sentence}" for sentence in runner.missing))


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
    parser.add_argument("--long", dest="is_long", action="store_true", help="also run the slowest measurements")
    parser.add_argument("--databases", type=Path, help="a folder that keeps the demo's databases for the next run")
    parser.add_argument("--aws", default=_AWS, help="path of the AWS CLI (default: the one in .venv-bench)")
    options = vars(parser.parse_args())
    names = options.pop("part") or PARTS
    report([PARTS[name] for name in names], Options(**options))


if __name__ == "__main__":
    main()
