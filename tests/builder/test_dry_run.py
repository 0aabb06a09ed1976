"""A dry run makes what a build would make: its figures are exact, and the output folder stays as it is."""

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.builder.dry_run import DryRun
from generator.config.settings import Config
from generator.errors import OutputError
from generator.tree.folder import locked
from generator.tree.layouts import LAYOUTS
from tests.support.sites.builds import AS_OF, EXTENDED, block, build_now, dry_run_of, files, make_config
from tests.support.sites.rows import insert_order, insert_whole_market, market_id

SETTINGS: Final = {**EXTENDED, "search": "title"}


@pytest.fixture
def rows(database: sqlite3.Connection) -> sqlite3.Connection:
    for number in range(30):
        insert_whole_market(database, number, question=f"Will number{number} win?")
    database.commit()
    return database


def exact(made: DryRun, layout: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The objects and bytes of a site, and those that a build writes."""
    return made.site.total(layout), made.prepared.made.rendered.written()


def stamps(folder: Path) -> dict[str, tuple[float, ...]]:
    """Everything that changes when somebody touches a file or a folder."""
    found = ((path, path.lstat()) for path in [folder, *folder.rglob("*")])
    return {
        str(path): (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        for path, status in found
    }


def check_forecast(config: Config, made: DryRun) -> None:
    """Build, and compare with what a dry run said of it."""
    before = {path: path.stat().st_ino for path in config.output.rglob("*") if path.is_file()}
    report = build_now(config, AS_OF + timedelta(hours=1))
    total, written = exact(made, config.layout)
    objects = files(config.output)
    kept = {path.as_posix() for path, inode in before.items() if path.is_file() and path.stat().st_ino == inode}
    new = {key: body for key, body in objects.items() if (config.output / key).as_posix() not in kept}
    assert written == (report.written, report.written_bytes) == (len(new), sum(map(len, new.values())))
    if not report.retained:
        assert total == (len(objects), sum(map(len, objects.values())))


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("settings", [{}, SETTINGS], ids=["core", "extended"])
def test_sizes_are_those_of_the_build_that_follows(
    tmp_path: Path, rows: sqlite3.Connection, layout: str, settings: dict[str, Any]
) -> None:
    config, later = make_config(tmp_path, layout=layout, **settings), AS_OF + timedelta(hours=1)
    check_forecast(config, dry_run_of(config, later))
    rows.execute("UPDATE markets SET volume = 4321 WHERE id = ?", [market_id(7)])
    insert_order(rows, market_id=market_id(9))
    made = dry_run_of(config, later)
    assert made.prepared.change.objects == 5, "two details, prices, and what names the files of the dump"
    check_forecast(config, made)
    assert exact(dry_run_of(config, later), layout)[1] == (0, 0)


def test_sizes_of_parquet_files_are_exact(tmp_path: Path, rows: sqlite3.Connection) -> None:
    pytest.importorskip("pyarrow")
    config = make_config(tmp_path, layout="chunks", dumps__parquet=True, dumps__fills=True)
    made = dry_run_of(config, AS_OF + timedelta(hours=1))
    assert made.site.downloads.daily.objects > 0
    check_forecast(config, made)


def test_a_dry_run_touches_nothing_and_needs_no_folder(tmp_path: Path, rows: sqlite3.Connection) -> None:
    config = make_config(tmp_path, **SETTINGS)
    dry_run_of(config)
    assert not config.output.exists()
    build_now(config)
    rows.execute("UPDATE markets SET volume = volume + 1 WHERE id < ?", [market_id(9)])
    (config.output / "v1").chmod(0o750)
    for path in [*(config.output / "v1").rglob("*.json")][:5]:
        path.chmod(0o600)
    before = stamps(config.output)
    dry_run_of(config)
    assert stamps(config.output) == before


def test_a_dry_run_leaves_no_temporary_file(
    tmp_path: Path, rows: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    dry_run_of(make_config(tmp_path))
    rows.execute("DROP TABLE fills")
    with pytest.raises(Exception, match="relation fills is missing"):
        dry_run_of(make_config(tmp_path))
    assert not [*place.iterdir()]


def test_a_temporary_folder_that_cannot_be_used_is_named(
    tmp_path: Path, rows: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(OutputError, match=r"missing.*set TMPDIR to another folder"):
        dry_run_of(make_config(tmp_path))


def test_blocked_markets_are_left_out_even_while_another_process_runs(tmp_path: Path, rows: sqlite3.Connection) -> None:
    config = make_config(tmp_path)
    build_now(config)
    block(config.output, market_id(3))
    with locked(config.output):
        assert dry_run_of(config).catalog.ids() == {market_id(number) for number in range(30) if number != 3}
