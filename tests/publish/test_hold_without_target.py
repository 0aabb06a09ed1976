"""`hold` without a target: it stops builds in the output folder, which is what is served; takedowns pass."""

from pathlib import Path

import pytest

from generator.tree import blocklist
from generator.tree.blocklist import Hold
from generator.tree.folder import locked
from tests.publish.test_hold import metric
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.rows import market_id

REASON = "Prices of 2 June are wrong"
STOPPED = "no build is made until `public-markets hold --release`"


@pytest.fixture
def folder(published_site: PublishedSite) -> PublishedSite:
    """A build that is served from its folder, and metrics of every run."""
    published_site.target = ""
    published_site.settings["metrics"] = "run.prom"
    return published_site


def hold() -> Hold:
    with locked(Path("output")) as output:
        found = blocklist.load(output).hold
    assert found
    return found


def test_a_hold_refuses_builds_until_it_is_released(folder: PublishedSite) -> None:
    assert folder.done("hold").stdout == "output: is not on hold\n"
    assert folder.done("hold", "--release").stdout == "output: is not on hold\n"
    told = folder.done("hold", REASON).stdout
    assert told == f"output: {hold()}; what is published as of 2024-01-31T12:00:00.000Z stays\n"
    assert folder.done("hold").stdout == folder.done("hold", REASON).stdout == told
    before = folder.built()
    assert folder.refused(3, "build", "--as-of", hour(1)) == f"output: {hold()}; {STOPPED}"
    ((labels, since),) = metric(folder)
    assert (labels, since > 0) == ({"who": hold().who, "reason": REASON}, True)
    assert folder.built() == before
    assert f"warning: output: {hold()}; {STOPPED}" in folder.done("check").stdout.splitlines()
    released = folder.done("hold", "--release").stdout
    assert released.startswith("output: released, builds can be made again; it was on hold since ")
    folder.done("build", "--as-of", hour(1))
    assert metric(folder) == [({}, 0)]


def test_the_monitor_s_check_says_so(folder: PublishedSite) -> None:
    folder.done("hold", REASON)
    assert folder.refused(1, "check", "--published").endswith(f"; {hold()}; {STOPPED}")


def test_another_hold_replaces_it_and_says_so(folder: PublishedSite) -> None:
    folder.done("hold", REASON)
    before = hold()
    assert folder.done("hold", "Names, too").stderr == f"output: this replaces an earlier hold: {before}\n"
    assert hold().reason == "Names, too"


def test_a_takedown_passes_and_keeps_the_hold(folder: PublishedSite) -> None:
    folder.done("hold", REASON)
    before = hold()
    folder.done("takedown", market_id(1))
    assert not [key for key in folder.traces(1) if key.startswith("output ")]
    folder.done("takedown", "--undo", market_id(1))
    assert hold() == before
    assert REASON in folder.refused(3, "build")


def test_a_folder_without_a_build_cannot_be_held(folder: PublishedSite) -> None:
    folder.forget_output()
    assert folder.refused(1, "hold", REASON) == "output: holds no build yet, so there is nothing to put on hold"
    assert folder.done("hold", "--release").stdout == "output: is not on hold\n"
    folder.done("build")


def test_with_a_target_the_hold_of_the_folder_stops_nothing(folder: PublishedSite) -> None:
    folder.done("hold", REASON)
    folder.target = "s3://markets/api/"
    folder.done("rebuild", "--as-of", hour(1))
    assert folder.done("hold").stdout == "s3://markets/api: is not on hold\n"
