"""All benchmarks, or some: `python -m tests.bench [PART…]`. Tables go to stdout, progress to stderr."""

import argparse
from typing import Final

from tests.bench import build, change, layouts, parts, publish, record, search, serving
from tests.bench.runner import Options

#: In the order in which they run.
PARTS: Final[dict[str, parts.Part]] = {
    "build": build.run,
    "change": change.run,
    "publish": publish.run,
    "record": record.run,
    "serving": serving.run,
    "layouts": layouts.run,
    "search": search.run,
}


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
    parts.add_options(parser)
    options = vars(parser.parse_args())
    names = options.pop("part") or PARTS
    parts.report([PARTS[name] for name in names], Options(**options))


if __name__ == "__main__":
    main()
