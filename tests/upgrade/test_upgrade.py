"""Sites of earlier versions: today's program goes on with what releases left in a target, and brings over the rest."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from tests.support.edges.serving import UNLIMITED, served
from tests.support.readers.pages import section, typed
from tests.support.readers.parquet import owners
from tests.support.sites.builds import AS_OF, files, lasting, text_of
from tests.upgrade.make_site import BUILDS, TAKEN_DOWN, run

RELEASED: Final = sorted(Path(__file__).parent.glob("site-*.*.*.tar.xz"))
#: Of commits before the first release.
SITES: Final = sorted({*Path(__file__).parent.glob("site-*.tar.xz")} - {*RELEASED})
#: Builds after the last one of the kept sites.
LATER, NEXT_DAY = ((AS_OF + BUILDS[-1] + timedelta(hours=hours)).isoformat() for hours in (5, 25))
#: What former programs left of the archive of days.
ARCHIVED: Final = re.compile(r"v1/dumps/archive/")
#: What the first build says where an earlier version published trades.
TRADES: Final = "points are whole now, and trades need dumps.fills: true"


@pytest.fixture(params=SITES, ids=[site.name.removesuffix(".tar.xz") for site in SITES])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of an operator who has just installed today's program."""
    return unpacked(request.param, tmp_path)


def unpacked(site: Path, folder: Path) -> Path:
    with tarfile.open(site) as packed:
        packed.extractall(folder, filter="data")
    return folder


def shows(folder: Path, text: str) -> list[str]:
    """The published objects that contain a text, compressed or not."""
    return [key for key, body in files(folder).items() if text.encode() in text_of(key, body)]


def remarks(site: Path) -> list[str]:
    found: list[str] = json.loads((site / "output/report.json").read_bytes())["remarks"]
    return found


def edit(site: Path) -> None:
    """Take the section `archive` out of the configuration."""
    config = site / "config.yaml"
    config.write_text(re.sub(r"(?m)^archive: .*\n", "", config.read_text()))


def bring_over(site: Path) -> str:
    """Do what the docs say; returns what the command printed."""
    (command,) = typed(section("docs/operations.md", "Bring over a site from before 0.1.0"))
    edit(site)
    return run(site, *command.split()[1:], "--as-of", LATER)


def test_kept_sites_are_named_by_commit_and_have_what_is_gone_by_now() -> None:
    assert [path.name for path in SITES] == ["site-cc5399b4.tar.xz", "site-e0e81c9d.tar.xz"]
    for path in SITES:
        with tarfile.open(path) as packed:
            settings = packed.extractfile("./config.yaml")
            assert settings is not None
            assert b"archive: {days: 3}" in settings.read()
            for folder in ("output", "target"):
                assert len([name for name in packed.getnames() if folder in name and ARCHIVED.search(name)]) >= 3


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("is_folder_lost", [False, True])
@pytest.mark.parametrize("released", RELEASED, ids=[path.name.removesuffix(".tar.xz") for path in RELEASED])
def test_what_a_release_left_in_a_target_is_gone_on_with(
    released: Path, tmp_path: Path, *, is_folder_lost: bool
) -> None:
    site = unpacked(released, tmp_path)
    if is_folder_lost:
        shutil.rmtree(site / "output")
    taken, before = (site / TAKEN_DOWN).read_text(), files(site / "target")
    run(site, "rebuild", "--as-of", LATER)
    after = files(site / "target")
    details = {key: body for key, body in before.items() if key.startswith(f"{keys.DETAILS}/")}
    assert len(details) > 1_000
    assert {key: body for key, body in after.items() if key.startswith(f"{keys.DETAILS}/")} == details
    assert {key for key in before if keys.is_immutable(key)} <= after.keys(), "walks go on"
    another = Path(next(iter(details))).stem
    run(site, "takedown", "--yes", another)
    run(site, "takedown", "--yes", "--undo", taken)
    run(site, "rebuild", "--as-of", NEXT_DAY)
    assert shows(site / "target", another) == []
    assert shows(site / "target", taken)
    assert " 0 objects uploaded" in run(site, "publish", "--verify")


@pytest.mark.campaign(short=0)
def test_a_kept_site_is_rebuilt_published_taken_from_and_verified(site: Path) -> None:
    taken = (site / TAKEN_DOWN).read_text()
    bring_over(site)
    assert "error" not in run(site, "check", "--accept=demo")
    assert sum(TRADES in remark for remark in remarks(site)) == 1
    assert "fills" not in json.loads((site / "target/v1/dumps/head.json").read_bytes())
    for folder in (site / "output", site / "target"):
        assert not [*filter(ARCHIVED.search, files(folder))]
        assert shows(folder / "v1", taken) == []
    another = next(key for key in files(site / "target") if "/detail/" in key)
    name = Path(another).stem
    assert shows(site / "target", name)
    run(site, "takedown", "--yes", name)
    assert shows(site / "target", name) == []
    run(site, "takedown", "--yes", "--undo", taken)
    assert "dumps.fills" not in run(
        site, "rebuild", "--as-of", NEXT_DAY
    )  # from when on the market is in the histories again
    assert shows(site / "target", taken)
    assert shows(site / "target", name) == []
    assert " 0 objects uploaded" in run(site, "publish", "--verify")
    with served(site, *UNLIMITED, "--set", f"source.url=sqlite:///{site / 'markets.db'}") as running:
        verified = run(site, "verify", f"http://127.0.0.1:{running.port}/", "--rate", "1000000", "--wait", "0")
    assert "answers as it must" in verified


@pytest.mark.campaign(short=0)
def test_it_gives_the_bytes_that_a_site_made_anew_has(site: Path) -> None:
    bring_over(site)
    run(site, "takedown", "--yes", "--undo", (site / TAKEN_DOWN).read_text())
    run(site, "rebuild", "--as-of", NEXT_DAY)
    run(site, "build", "--as-of", NEXT_DAY, "--set", "output=anew")
    old, new = lasting(files(site / "output")), lasting(files(site / "anew"))
    assert {key for key in old.keys() & new.keys() if old[key] != new[key]} == set()
    # The market that came back is in files of its own beside those that were there.
    tables = {f"v1/dumps/{name}" for name in ("candles", "closes", "history")}
    assert {"/".join(key.split("/")[:3]) for key in new.keys() - old.keys()} <= tables


@pytest.mark.campaign(short=0)
def test_a_takedown_before_any_build_leaves_no_file_of_the_market(site: Path) -> None:
    """Not even of tables, or days, that only the earlier version had."""
    edit(site)
    before = files(site / "target")
    name = next(
        Path(key).stem
        for key in before
        if "/detail/" in key and len(shows(site / "target", Path(key).stem)) > 5  # in lists, details and files
    )
    holding = [key for key, body in before.items() if key.endswith(".parquet") and name in owners(body)]
    assert holding
    command = [sys.executable, "-m", "generator", "takedown", "--yes", name]
    told = subprocess.run(command, cwd=site, check=True, capture_output=True, text=True).stderr
    is_divided = "histories: full" not in (site / "config.yaml").read_text()
    assert ("deleted the files of histories and fills" in told) == is_divided
    after = files(site / "target")
    assert shows(site / "target", name) == []
    assert [key for key, body in after.items() if key.endswith(".parquet") and name in owners(body)] == []
    assert not [*filter(ARCHIVED.search, after)]
