"""An output folder in a lower layer of an overlay, as in a container's image: folders there cannot be moved."""

import os
import shlex
import shutil
import sqlite3
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.config.settings import Config
from generator.errors import OutputError
from generator.tree.folder import locked
from tests.support.campaigns import every_pair
from tests.support.commands import fresh
from tests.support.programs import unavailable
from tests.support.sites.builds import AS_OF, build_now, files, make_config, manifest_in
from tests.support.sites.rows import insert_market, market_id

GONE: Final = 1
MARKETS: Final = 3
#: What a run does to folders of the lower layer.
RUNS: Final = {
    "takedown": ("takedown", market_id(GONE)),
    "withdrawal": ("build", "--accept=shrink"),
    "purge": ("build", "--full", "--purge-retired"),
}


def config(folder: Path, layout: str) -> Config:
    return make_config(folder, layout=layout, feeds__enabled=False)


@pytest.fixture
def database(database: sqlite3.Connection) -> sqlite3.Connection:
    for number in range(MARKETS):
        insert_market(database, number)
    return database


def in_overlay(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder's `output` as an overlay shows it above what it was; what it left is in `output`."""
    for name in ("up", "work", "seen"):
        (folder / name).mkdir()
    options = f"lowerdir={folder / 'output'},upperdir={folder / 'up'},workdir={folder / 'work'}"
    place = folder / "seen"
    command = shlex.join([*fresh(), *arguments, "--config", str(folder / "config.yaml")])
    mount, keep = f"mount -t overlay overlay -o {options} {place} || exit 99", f"cp -r {place} {folder}/left"
    script = f"{mount}; {command}; done=$?; {keep}; exit $done"
    rights = "-m" if os.geteuid() == 0 else "-rm"
    result = subprocess.run(["unshare", rights, "sh", "-c", script], capture_output=True, text=True, check=False)
    if not (folder / "left").exists():
        unavailable(f"no overlay can be mounted here ({result.stderr.strip()})")
    return result


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize(("layout", "run"), every_pair(("pages", "chunks"), RUNS))
def test_what_must_go_goes_from_a_lower_layer(
    tmp_path: Path, database: sqlite3.Connection, layout: str, run: str
) -> None:
    settings = config(tmp_path, layout)
    build_now(settings)
    database.execute("UPDATE markets SET volume = volume + id")
    build_now(settings, AS_OF + timedelta(minutes=1))
    before = manifest_in(settings.output)
    assert before.retired
    (settings.output / ".staging-killed").mkdir()
    (settings.output / ".staging-killed" / "rest").write_text(market_id(GONE))
    if run == "withdrawal":
        database.execute("DELETE FROM markets WHERE id = ?", [market_id(GONE)])
    words = [f"output={tmp_path / 'seen'}", f"source.url=sqlite:///{tmp_path / 'markets.db'}", f"layout={layout}"]
    overrides = [word for setting in (*words, "feeds.enabled=false") for word in ("--set", setting)]
    result = in_overlay(tmp_path, *RUNS[run], *overrides)
    assert result.returncode == 0, result.stderr
    left = files(tmp_path / "left", "")
    known = manifest_in(tmp_path / "left")
    assert not [key for key in left if key.startswith(".staging")]
    gone = [keys.generation_prefix(*entry.pair) for entry in before.retired if entry.pair not in known.generations()]
    assert gone
    assert not [key for key in left if key.startswith(tuple(f"{prefix}/" for prefix in gone))]
    shown = [key for key, body in left.items() if key.startswith("v1/") and market_id(GONE).encode() in body]
    assert bool(shown) == (run == "purge")


@pytest.mark.parametrize("layout", ["pages", "chunks"])
def test_a_half_of_a_generation_is_made_whole(tmp_path: Path, database: sqlite3.Connection, layout: str) -> None:
    settings = config(tmp_path, layout)
    build_now(settings)
    whole = files(settings.output)
    before = manifest_in(settings.output)
    prefix = Path(keys.generation_prefix("open/new", before.current["open/new"].generation))
    shutil.copytree(settings.output / prefix, tmp_path / "half")
    database.execute("UPDATE markets SET volume = 7")
    for days in (1, 2):
        build_now(settings, AS_OF + timedelta(days=days))
    assert not (settings.output / prefix).exists()
    # What is left of it when a run is killed that deletes its files one by one.
    shutil.copytree(tmp_path / "half", settings.output / prefix)
    doomed = [path for path in sorted((settings.output / prefix).rglob("*")) if path.is_file()]
    assert doomed
    for path in doomed[: 1 + len(doomed) // 2]:
        path.unlink()
    database.execute("UPDATE markets SET volume = 100.0")
    build_now(settings, AS_OF + timedelta(days=2, minutes=1))
    now = files(settings.output)
    pages = [key for key in whole if key.startswith(f"{prefix}/")]
    assert pages
    assert all(now[key] == whole[key] for key in pages)


@pytest.mark.parametrize("is_begun", [False, True])
def test_what_stops_a_run_is_told_with_what_it_did(tmp_path: Path, *, is_begun: bool) -> None:
    with pytest.raises(OutputError) as told, locked(tmp_path / "output") as folder:  # noqa: PT012 - the second line raises
        if is_begun:
            folder.save("report.json", b"{}")
        raise OSError(5, "Input/output error", "output/v1/x")
    assert ("what is served is unchanged" in str(told.value)) != is_begun
    assert ("run the same command again to finish it" in str(told.value)) == is_begun
