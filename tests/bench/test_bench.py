"""The benchmarks run as the docs say, and figures are what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from generator.tree.state import LEAST
from tests.bench import change, record
from tests.bench.__main__ import PARTS
from tests.bench.runner import Options, opened
from tests.bench.tables import Goal, Measured, ratio, shown, walls
from tests.support.project import ROOT
from tests.support.sites.builds import make_config

#: How much smaller the sites of a part are than for its published figures; `change` has a test of its own.
SCALES = {"build": 0.002, "publish": 0.06, "record": 0.0005, "serving": 0.02, "layouts": 0.002, "search": 0.0005}


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(("part", "scale"), SCALES.items())
def test_a_part_measures_something_and_whatever_it_compares_has_the_same_files(
    part: str, scale: float, tmp_path: Path
) -> None:
    options = ("--rounds", "1", "--scale", str(scale), "--folder", str(tmp_path))
    command = [sys.executable, "-m", "tests.bench", part, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\| .*\d.* \|$", done.stdout, re.MULTILINE) or "NOT MEASURED" in done.stdout, done.stdout
    assert [*tmp_path.iterdir()] == []


@pytest.mark.campaign(short=0)
def test_a_rebuild_is_measured_with_what_it_asks_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A market that is drawn may have most of all rows.
    monkeypatch.setenv("PUBLIC_MARKETS_SOURCE__AUDIT", "0")
    assert PARTS.keys() - SCALES.keys() == {"change"}
    with opened(Options(tmp_path, rounds=1, scale=0.003)) as runner:
        lines = [line for line in change.in_chunks(runner, ["the same with market_version"]) if line.startswith("| ")]
    of_time, of_work, of_objects = (lines[:5], lines[5:10], lines[10:])
    assert [len(part) for part in (of_time, of_work, of_objects)] == [5, 5, 3]
    cells = (line.replace(",", "").split(" | ")[2:6] for line in of_work[1:])
    full, idle, later, traded = ([*map(int, each)] for each in cells)
    statements, rows, opened_files, written = zip(full, idle, later, traded, strict=True)
    assert 60 < later[1] < rows[0] / 5
    assert statements[0] > statements[2] > 5
    assert rows[2] < rows[3] < rows[0]
    assert written[0] > written[3] > written[2] > 0
    assert opened_files[1] > 0


@pytest.mark.campaign(short=0)
def test_the_record_is_measured_for_every_kind_of_publish(tmp_path: Path) -> None:
    config = make_config(tmp_path, layout="chunks", publish__single_writer=True, cursor__lifetime=86_400)
    found = record.measured(LEAST, config)
    idle = [found["nothing changed"].bytes, found["nothing changed, after a day"].bytes]
    assert all(each["GET"] > 0 and "PUT" not in each for each in idle)
    # A folder that was lost has no copy of the state.
    lost, kept = (found[f"{record.CHANGED} changed{rest}"].requests for rest in (", folder lost", ""))
    assert lost["GET"] > kept["GET"] > 0
    assert lost["PUT"] == kept["PUT"]


def test_figures_are_of_runs_in_the_same_round_without_start_up() -> None:
    assert ratio([1.0, 10.0, 3.0], [2.0, 20.0, 1.0]) == 0.5
    runs = [Measured(seconds, seconds, 50) for seconds in (3.0, 1.0, 0.5, 9.0, 1.0)]
    assert walls(runs[:2], runs[2:]) == [2.0, 0.001]
    assert [*map(shown, (0.0123, 1.234, 12.34, 1234.5))] == ["0.012", "1.23", "12.3", "1,234"]
    assert Goal("ours ÷ theirs", 0.8, 0.8).line() == "- ours ÷ theirs: 0.80, goal at most 0.80: reached"
    assert Goal("theirs ÷ ours", 9, 10, is_least=True).line().endswith("9.00, goal at least 10.0: **MISSED**")
