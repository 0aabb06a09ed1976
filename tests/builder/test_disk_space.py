"""`check` says beforehand what a disk has too little of for the next build, by what that build would write."""

import os
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from generator.builder.preflight import BuildCheck
from generator.errors import OutputError
from generator.progress import SILENT
from tests.support.disks import Disk
from tests.support.sites.builds import AS_OF, build_now, files, make_config
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


def taken(output: Path) -> tuple[int, int]:
    """The disk usage of a build's objects: files and folders, and bytes in whole blocks."""
    found = [output / "v1", *(output / "v1").rglob("*")]
    return len(found), sum(path.stat().st_blocks * 512 for path in found)


def refused(folder: Path, output: Path) -> None:
    with pytest.raises(OutputError, match="no space left on device; free some space, or choose another folder"):
        build_now(make_config(folder, output=output))


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("lacking", ["files (df -i)", "MB (df -h)"])
def test_check_names_what_is_lacking_and_a_build_fails_without_it(
    markets_folder: Path, disk: Disk, lacking: str
) -> None:
    build_now(make_config(markets_folder))
    files_, bytes_ = taken(markets_folder / "output")
    is_of_files = lacking.startswith("files")
    disk.mount(f"size=1g,nr_inodes={files_ * 8 // 10}" if is_of_files else f"size={bytes_ // 2}")
    output = disk.path / "output"
    message = of_folder(markets_folder, output)
    assert message.startswith(f"error: {disk.path}: no space left on device for this build: it needs ")
    remedy = "free some space, choose another folder with --set output=…, or set `layout: chunks`"
    assert message.endswith(f"{lacking}; {remedy}")
    (needed,) = re.findall(r"([\d,]+) files and", message)
    assert files_ * 0.85 < int(needed.replace(",", "")) <= files_
    refused(markets_folder, output)
    assert not list(output.glob("[!.]*")), "nothing is left"
    enough = f"nr_inodes={files_ * 11 // 10 + 100}" if is_of_files else f"size={bytes_ * 11 // 10 + 10_000_000}"
    disk.mount(f"remount,{enough}")
    assert of_folder(markets_folder, output) == f"fine: {output}: writable"
    build_now(make_config(markets_folder, output=output))


@pytest.mark.campaign(short=0)
def test_the_next_build_needs_space_for_new_files_only(
    markets_folder: Path, database: sqlite3.Connection, disk: Disk
) -> None:
    disk.mount("size=1g")
    output = disk.path / "output"
    build_now(make_config(markets_folder, output=output))
    before = files(output)
    free = shutil.disk_usage(disk.path).free
    with (disk.path / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - 2_000_000)
    assert of_folder(markets_folder, output) == f"fine: {output}: writable"
    build_now(make_config(markets_folder, output=output))
    assert files(output) == before
    database.execute("UPDATE markets SET trader_count = trader_count + 1")
    database.commit()
    assert "no space left on device for this build" in of_folder(markets_folder, output)
    refused(markets_folder, output)
    assert files(output) == before


def test_categories_are_a_remedy_where_there_are_any(markets_folder: Path, disk: Disk) -> None:
    disk.mount("size=1m")
    assert of_folder(markets_folder, disk.path / "output", variant="extended").endswith(
        ", restrict `categories`, or set `layout: chunks`"
    )
