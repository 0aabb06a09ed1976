"""Through faults and while the site changes, no market is lost, repeated or wrong without an error that says so.

CONTRIBUTING.md shows how to play 1,000 walks and 100 followed builds.
"""

from pathlib import Path

import pytest

from tests.clients.typescript.fault_campaign import INJECTED, play

WALKS, BUILDS = 40, 6


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(("edge", "seed"), [("serve", 1), ("nginx", 2), ("worker", 3)])
def test_no_market_is_lost_repeated_or_wrong_without_an_error(client: Path, edge: str, seed: int) -> None:
    counts = play(client, edge, seed, walks=WALKS, builds=BUILDS)
    assert counts["walks of one state"] + counts["walks that began again"] > WALKS / 2
    assert counts["builds followed"] > BUILDS / 2
    assert (
        sum(count for name, count in counts.items() if name.startswith(("walks", "builds", "follows")))
        == WALKS + BUILDS
    )
    assert {name for name in INJECTED if counts[f"fault {name}"]} == {*INJECTED}
