"""Sites of earlier releases: today's program goes on with what each of them left behind."""

import json
import re
import tarfile
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.support.edges.serving import UNLIMITED, served
from tests.support.readers.parquet import owners
from tests.support.sites.builds import AS_OF, files, lasting, text_of
from tests.upgrade.make_site import TAKEN_DOWN, run

SITES: Final = sorted(Path(__file__).parent.glob("site-*.tar.xz"))
#: A build after the last one of the kept sites.
LATER: Final = (AS_OF + timedelta(hours=5)).isoformat()
#: What the first build says where an earlier version published Parquet.
TRADES: Final = "points are whole now, and trades need dumps.fills: true"
NEXT_DAY: Final = (AS_OF + timedelta(hours=25)).isoformat()


@pytest.fixture(params=SITES, ids=[site.name.removesuffix(".tar.xz") for site in SITES])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of an operator who has just installed today's program."""
    with tarfile.open(request.param) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def shows(folder: Path, text: str) -> list[str]:
    """The published objects that contain a text, compressed or not."""
    return [key for key, body in files(folder).items() if text.encode() in text_of(key, body)]


def remarks(site: Path) -> list[str]:
    found: list[str] = json.loads((site / "output/report.json").read_bytes())["remarks"]
    return found


def state(site: Path) -> tuple[str, int]:
    """Session and serial of the change feed."""
    head = json.loads((site / "target/v1/changes/head.json").read_bytes())
    return head["session"], head["serial"]


def test_the_first_release_is_among_the_kept_sites() -> None:
    assert "site-0.1.0.tar.xz" in [path.name for path in SITES]


@pytest.mark.campaign(short=0)
def test_a_kept_site_is_rebuilt_published_taken_from_and_verified(site: Path) -> None:
    taken = (site / TAKEN_DOWN).read_text()
    assert "error" not in run(site, "check", "--accept=demo")
    before, serial = files(site / "target"), state(site)
    told = run(site, "rebuild", "--as-of", LATER)
    assert sum(TRADES in remark for remark in remarks(site)) == 1
    # It reads what the earlier version left: what did not change is neither written nor uploaded again.
    (uploaded,) = re.findall(r"(\d+) objects? uploaded", told)
    assert 0 < int(uploaded) < len(before) / 2, told
    assert shows(site / "target", taken) == []
    assert "fills" not in json.loads((site / "target/v1/dumps/head.json").read_bytes())
    session, number = state(site)
    assert (session, number) == (serial[0], serial[1] + 1), "the change feed goes on"
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
    run(site, "takedown", "--yes", "--undo", (site / TAKEN_DOWN).read_text())
    run(site, "build", "--as-of", LATER)
    run(site, "build", "--as-of", LATER, "--set", "output=anew")
    old, new = lasting(files(site / "output")), lasting(files(site / "anew"))
    assert {key for key in old.keys() & new.keys() if old[key] != new[key]} == set()
    # The market that came back is in the histories from the next day on.
    assert {key.rsplit("/", 3)[0] for key in new.keys() - old.keys()} <= {"v1/dumps/fills", "v1/dumps/history"}


@pytest.mark.campaign(short=0)
def test_a_takedown_before_any_build_leaves_no_file_of_the_market(site: Path) -> None:
    """Not even of tables that only the earlier version had."""
    before = files(site / "target")
    name = next(
        Path(key).stem
        for key in before
        if "/detail/" in key and len(shows(site / "target", Path(key).stem)) > 5  # in lists, details and files
    )
    holding = [key for key, body in before.items() if key.endswith(".parquet") and name in owners(body)]
    assert holding
    run(site, "takedown", "--yes", name)
    after = files(site / "target")
    assert shows(site / "target", name) == []
    assert [key for key, body in after.items() if key.endswith(".parquet") and name in owners(body)] == []
