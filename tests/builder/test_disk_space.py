"""`check` says beforehand what a disk has too little of for the next build, by what that build would write."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from generator.builder.preflight import BuildCheck
from generator.errors import OutputError
from generator.progress import SILENT
from tests.support.disks import Disk
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.support.sites.rows import insert_market

MARKETS = 120


@pytest.fixture
def markets_folder(database: sqlite3.Connection, tmp_path: Path) -> Path:
    for number in range(MARKETS):
        insert_market(database, number)
    database.commit()
    return tmp_path


def of_folder(folder: Path, output: Path, **settings: Any) -> str:
    """What `check` says of the output folder."""
    check = BuildCheck(make_config(folder, output=output, **settings), AS_OF, SILENT)
    assert not [finding for finding in check.database() if "error" in str(finding)]
    (finding,) = check.folder()
    return str(finding)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("lacking", ["files (df -i)", "MB (df -h)"])
def test_check_names_what_is_lacking_and_a_build_fails_without_it(
    markets_folder: Path, disk: Disk, lacking: str
) -> None:
    build_now(make_config(markets_folder))
    objects = markets_folder / "output/v1"
    taken = [path.stat().st_blocks * 512 for path in (objects, *objects.rglob("*"))]  # in whole blocks
    files_, bytes_ = len(taken), sum(taken)
    is_of_files = lacking.startswith("files")
    disk.mount(f"size=1g,nr_inodes={files_ * 8 // 10}" if is_of_files else f"size={bytes_ // 2}")
    output = disk.path / "output"
    message = of_folder(markets_folder, output)
    assert message.startswith(f"error: {disk.path}: no space left on device for this build: it needs ")
    remedy = "free some space, choose another folder with --set output=…, or set `layout: chunks`"
    assert message.endswith(f"{lacking}; {remedy}")
    (needed,) = re.findall(r"([\d,]+) files and", message)
    assert files_ * 0.85 < int(needed.replace(",", "")) <= files_
    with pytest.raises(OutputError, match="no space left on device; free some space, or choose another folder"):
        build_now(make_config(markets_folder, output=output))
    assert not list(output.glob("[!.]*")), "nothing is left"
    enough = f"nr_inodes={files_ * 11 // 10 + 100}" if is_of_files else f"size={bytes_ * 11 // 10 + 10_000_000}"
    disk.mount(f"remount,{enough}")
    assert of_folder(markets_folder, output) == f"fine: {output}: writable"
    build_now(make_config(markets_folder, output=output))


def test_categories_are_a_remedy_where_there_are_any(markets_folder: Path, disk: Disk) -> None:
    disk.mount("size=1m")
    assert of_folder(markets_folder, disk.path / "output", variant="extended").endswith(
        ", restrict `categories`, or set `layout: chunks`"
    )
