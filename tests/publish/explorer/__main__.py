"""Plays one placement and prints every write: `python -m tests.publish.explorer NAME`, the name as a test prints it.

Without a name, explores every scenario and prints what is broken, and how many placements there are.
"""

import sys
import time

from tests.publish.explorer import stand_ins
from tests.publish.explorer.exploration import Explorer, Placement, Played, explore
from tests.publish.explorer.scenarios import SCENARIOS


def main(names: list[str]) -> None:
    explorer = Explorer()
    with stand_ins.in_place():
        for name in names or SCENARIOS:
            if "/" in name:
                played = explorer.play(Placement.parsed(name), print)
                print(played.described() if played else "an actor ends before it is struck")  # noqa: T201
            else:
                _explore(explorer, name)
    print(f"{explorer.played} placements")  # noqa: T201


def _explore(explorer: Explorer, name: str) -> None:
    scenario = SCENARIOS[name]
    for layout, first in scenario.games:
        begun, before = time.perf_counter(), explorer.played
        broken: dict[str, list[Played]] = {}
        for played in explore(explorer, scenario, layout, first):
            for text in played.broken:
                broken.setdefault(text, []).append(played)
        seconds = time.perf_counter() - begun
        print(f"{name} {layout} {first}: {explorer.played - before} placements, {seconds:.1f} s")  # noqa: T201
        for text, found in sorted(broken.items()):
            shortest = min(found, key=lambda played: (-played.placement.strikes.count(None), str(played.placement)))
            print(f"    {len(found)} times: {text}: {shortest.described().partition('):')[0]})")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
