"""The benchmarks run as the docs say, and figures are what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.__main__ import PARTS
from tests.bench.tables import Measured, ratio, walls
from tests.support.project import ROOT

#: How much smaller the sites of a part are than for its published figures.
SCALES = {
    "build": 0.002,
    "change": 0.003,
    "publish": 0.06,
    "record": 0.0005,
    "layouts": 0.002,
    "search": 0.0005,
    "questions": 0.003,
    "beside": 0.0005,
}


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(("part", "scale"), SCALES.items())
def test_a_part_measures_something_and_whatever_it_compares_has_the_same_files(
    part: str, scale: float, tmp_path: Path
) -> None:
    assert PARTS.keys() == SCALES.keys()
    # A clone may have no commit before.
    options = ("--rounds", "1", "--scale", str(scale), "--folder", str(tmp_path), "--commit", "HEAD")
    command = [sys.executable, "-m", "tests.bench", part, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\| .*\d.* \|$", done.stdout, re.MULTILINE) or "NOT MEASURED" in done.stdout, done.stdout
    assert [*tmp_path.iterdir()] == []


def test_figures_are_of_runs_in_the_same_round_without_start_up() -> None:
    assert ratio([1.0, 10.0, 3.0], [2.0, 20.0, 1.0]) == 0.5
    runs = [Measured(seconds, seconds, 50) for seconds in (3.0, 1.0, 0.5, 9.0, 1.0)]
    assert walls(runs[:2], runs[2:]) == [2.0, 0.001]
