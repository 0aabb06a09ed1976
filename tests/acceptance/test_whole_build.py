"""A whole build of the demo, file by file: valid, complete, in order, private, reproducible."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from generator.api import keys
from generator.api.contract import SORTS, STATUS_FILTERS
from generator.demo.database import METADATA, QUESTIONS, seed
from generator.source.relations import ALL_RELATIONS
from generator.tree.manifest import Manifest
from tests.support.readers import lists
from tests.support.sites.builds import AS_OF, Outputs, build_now, files, make_config

CANARY = b"CANARY"


@pytest.fixture(scope="module")
def published(demo_output: Path) -> dict[str, bytes]:
    """Every file under v1/ by its key."""
    return files(demo_output)


@pytest.fixture(scope="module")
def chunked(outputs: Outputs) -> Path:
    return outputs("core", "chunks")


# ── privacy ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_byte_of_the_output_is_private(
    demo_folder: Path, demo_output: Path, extended_output: Path, chunked: Path
) -> None:
    assert (demo_folder / "markets.db").read_bytes().count(CANARY) > 1_000
    assert sum(f"/{keys.CHUNKS}/" in name for name in files(chunked)) > 20
    for output in (demo_output, extended_output, chunked):
        everything = files(output, "")
        assert {"manifest.json", "report.json", "v1/build.json"} <= everything.keys()
        assert [name for name, content in everything.items() if CANARY in content or CANARY.lower() in content] == []
        assert [name for name in everything if "CANARY" in name.upper()] == []


def test_what_is_read_is_exactly_what_is_not_private() -> None:
    public = {
        name: {column.name for column in table.columns if not column.info.get("private")}
        for name, table in (METADATA.tables | QUESTIONS.tables).items()
    }
    assert {name: {*columns} for name, columns in ALL_RELATIONS.items()} == public


# ── reproducibility ───────────────────────────────────────────────────────────────────────────────────────────────


def identities(output: Path) -> dict[str, tuple[int, int, int]]:
    """Inode, modification time and size of every file and folder but the lock."""
    found = (path for path in output.rglob("*") if path.name != ".lock")
    return {
        path.relative_to(output).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size)
        for path in found
    }


def test_as_of_alone_changes_nothing_but_the_record_of_the_build(tmp_path: Path) -> None:
    seed(tmp_path / "markets.db", as_of=AS_OF, markets=40)
    with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM fills WHERE created_at > '2026-01-25'")
        connection.execute("UPDATE markets SET close_time = '2027-01-01 00:00:00' WHERE status = 'open'")
    build_now(make_config(tmp_path))
    before = identities(tmp_path / "output")
    build_now(make_config(tmp_path), AS_OF + timedelta(days=1))
    after = identities(tmp_path / "output")
    replaced = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert replaced - {"v1"} == {"v1/build.json", "manifest.json", "report.json", "index.html"}


# ── the other layout ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_layout_changes_how_lists_lie_there_and_nothing_else(published: dict[str, bytes], chunked: Path) -> None:
    ours, theirs = ({key for key in found if "/lists/" not in key} for found in (files(chunked), published))
    assert ours == theirs
    assert {key for key in ours if (chunked / key).read_bytes() != published[key]} == {keys.BUILD, keys.OPENAPI}


def test_a_list_has_the_same_items_in_either_layout(demo_output: Path, chunked: Path) -> None:
    names = Manifest.model_validate_json((chunked / "manifest.json").read_bytes()).lists()
    assert len(names) == len(STATUS_FILTERS) * len(SORTS)
    for name in names:
        assert lists.source(chunked, name) == lists.source(demo_output, name)
