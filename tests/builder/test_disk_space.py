"""A build that does not fit on the disk is refused before anything is written; one that fits is not."""

import hashlib
import os
import re
import shutil
import sqlite3
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest

from generator import filesystem
from generator.api import cursors, keys
from generator.api.contract import SORTS
from generator.builder import disk_space
from generator.builder.disk_space import Need
from generator.config.settings import Config
from generator.cost.sizes import Change, ListSize, Site
from generator.errors import OutputError
from generator.site import search_index
from generator.site.catalog import Catalog
from generator.tree import pages, row_shards
from generator.tree.generation import ItemList
from generator.tree.layouts import LAYOUTS
from generator.tree.manifest import Manifest
from tests.support.builds import NOW, build_now, files, make_config
from tests.support.disks import Disk
from tests.support.rows import insert_market, insert_order, market_id, public_market

MARKETS = 120


@pytest.fixture
def site(database: sqlite3.Connection, tmp_path: Path) -> Path:
    for number in range(MARKETS):
        insert_market(database, number)
    database.commit()
    return tmp_path


def taken(output: Path) -> tuple[int, int]:
    """The disk usage of a build's objects: files and folders, and bytes in whole blocks."""
    found = [output / "v1", *(output / "v1").rglob("*")]
    return len(found), sum(path.stat().st_blocks * 512 for path in found)


def refused(folder: Path, output: Path, **settings: Any) -> str:
    with pytest.raises(OutputError, match="no space left on device for this build") as caught:
        build_now(make_config(folder, output=output, **settings))
    assert not list(output.glob("[!.]*")), "nothing was written"
    return str(caught.value)


def test_a_disk_with_too_few_files_left_is_refused_and_one_with_enough_is_not(site: Path, disk: Disk) -> None:
    build_now(make_config(site))
    wanted, _ = taken(site / "output")
    disk.mount(f"size=1g,nr_inodes={wanted * 9 // 10}")
    message = refused(site, disk.path / "output")
    assert message.endswith(
        "files (df -i); free some space, choose another folder with --set output=…, or set `layout: chunks`"
    )
    (needed,) = re.findall(r"([\d,]+) files and", message)
    assert wanted * 0.95 < int(needed.replace(",", "")) <= wanted
    disk.mount(f"remount,nr_inodes={wanted * 11 // 10 + 100}")
    build_now(make_config(site, output=disk.path / "output"))


def test_a_disk_with_too_few_bytes_left_is_refused_and_one_with_enough_is_not(site: Path, disk: Disk) -> None:
    build_now(make_config(site))
    _, wanted = taken(site / "output")
    disk.mount(f"size={wanted // 2}")
    assert "MB (df -h); free some space" in refused(site, disk.path / "output")
    disk.mount(f"remount,size={wanted * 11 // 10 + 10_000_000}")
    build_now(make_config(site, output=disk.path / "output"))


def test_a_rebuild_needs_space_for_new_files_only(site: Path, database: sqlite3.Connection, disk: Disk) -> None:
    disk.mount("size=1g")
    output = disk.path / "output"
    build_now(make_config(site, output=output))
    before = files(output)
    free = shutil.disk_usage(disk.path).free
    with (disk.path / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - 2_000_000)
    build_now(make_config(site, output=output))
    assert files(output) == before
    database.execute("UPDATE markets SET volume = volume + 1")
    database.commit()
    with pytest.raises(OutputError, match="no space left on device for this build"):
        build_now(make_config(site, output=output))
    assert files(output) == before


def test_categories_are_a_remedy_where_there_are_any(site: Path, disk: Disk) -> None:
    disk.mount("size=1m")
    assert refused(site, disk.path / "output", variant="extended").endswith(
        ", restrict `categories`, or set `layout: chunks`"
    )


@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
def test_the_space_of_a_list_is_estimated_exactly(count: int) -> None:
    bodies = [public_market(number).body for number in range(count)]
    made = pages.Generation(ItemList("all/new", bodies))
    folders = [[body for _, body in folder.pages] for folder in made.folders()]
    written = [*map(made.first, pages.LIMITS), *chain.from_iterable(folders)]
    names = frozenset(["all/new"])
    site = Site((ListSize("all/new", count, sum(map(len, bodies))),), 0, 0)
    need = disk_space.needed(site, Change(names, names, 0, 0), pages.LAYOUT)
    assert need.files == len(written) + len(folders)
    assert need.bytes == pytest.approx(sum(map(len, written)), rel=0.01)


@pytest.mark.parametrize("known", [0, 4_000])
def test_the_shards_of_a_large_manifest_need_space_too(known: int) -> None:
    ids = [market_id(number) for number in range(5_000)]
    digests = {market: hashlib.sha256(market.encode()).hexdigest()[:32] for market in ids}
    before, after = (_named({market: digests[market] for market in part}) for part in (ids[:known], ids))
    new = set(row_shards.split(after)) - set(row_shards.split(before))
    site = Site((ListSize("all/new", len(ids), 0),), len(ids), 0)
    changed = len(ids) - known
    need = disk_space.needed(site, Change(frozenset(), frozenset(), changed, 0), "chunks")
    assert len(new) / 3 <= need.files - changed <= len(new)
    assert 0.9 * sum(map(len, new)) <= need.bytes <= sum(map(len, new))
    small = Site((ListSize("all/new", 900, 0),), 5_000, 0)
    assert disk_space.needed(small, Change(frozenset(), frozenset(), changed, 0), "chunks") == Need(changed, 0)


def _named(digests: dict[str, str]) -> Manifest:
    return Manifest(
        complete=True, as_of="2026-01-31T12:00:00.000Z", version="1", variant="core", layout="chunks", current={},
        retired=(), objects={keys.detail(market): digest for market, digest in digests.items()},
        markets=dict.fromkeys(digests, ("open",)),
    )  # fmt: skip


# ── the search index ──────────────────────────────────────────────────────────────────────────────────────────────

SEARCH: Final = {"variant": "extended", "search": "title+description"}


def stated(output: Path, config: Config, monkeypatch: pytest.MonkeyPatch) -> tuple[int, float]:
    """The files and bytes that a build says it needs where nothing is free."""
    before = files(output) if output.exists() else {}
    output.mkdir(exist_ok=True)
    with monkeypatch.context() as patch:
        patch.setattr(disk_space, "require_details", lambda *_: None)
        patch.setattr(filesystem, "room", lambda _: filesystem.Room(-(10**9), None, 0))
        with pytest.raises(OutputError, match="no space left on device for this build") as caught:
            build_now(config)
    assert files(output) == before, "nothing was written"
    count, size, unit = re.findall(r"needs ([\d,]+) files? and ([\d.]+) (\w+),", str(caught.value))[0]
    return int(count.replace(",", "")), float(size) * {"bytes": 1, "KB": 1e3, "MB": 1e6}[unit]


def written(output: Path, config: Config) -> dict[str, int]:
    """Every file and folder of lists, dump and change feed that a build writes, with its bytes."""
    places = [keys.LISTS, *map(keys.list_prefix, keys.DOWNLOADS)]

    def found() -> dict[Path, os.stat_result]:
        return {path: path.stat() for place in places for path in (output / place).rglob("*")}

    before = {path: status.st_ino for path, status in found().items()}
    build_now(config)
    new = {path: status for path, status in found().items() if before.get(path) != status.st_ino}
    return {path.as_posix(): status.st_size if path.is_file() else 0 for path, status in new.items()}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_space_of_a_build_with_an_index_is_what_it_writes(
    tmp_path: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    for number in range(30):
        insert_market(database, number, description=f"Resolves by source{number:02} of committee{number * 7919:06}.")
    config, output = make_config(tmp_path, layout=layout, **SEARCH), tmp_path / "output"
    for step, edit in enumerate([None, "question = 'A zyzzyva?'", "volume = 5000"]):
        if edit:
            database.execute(f"UPDATE markets SET {edit} WHERE id = ?", [market_id(7)])
        count, size = stated(output, config, monkeypatch)
        made = written(output, config)
        assert any(keys.SEARCH in path for path in made)
        details = [path.stat().st_size for number in range(30) for path in [output / keys.detail(market_id(number))]]
        new = details if step == 0 else details[7:8]
        assert size == pytest.approx(sum(made.values()) + sum(new), rel=0.01)
        assert sum(map(bool, made.values())) <= count - len(new) <= len(made)


def test_a_dump_needs_no_more_than_it_takes_and_nothing_if_it_stays(
    site: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = site / "output"
    config, without = (
        make_config(site, layout="chunks", dumps__ndjson=on, feeds__enabled=False) for on in (True, False)
    )
    count, size = stated(output, config, monkeypatch)
    count_without, size_without = stated(output, without, monkeypatch)
    build_now(config)
    made = [len(body) for key, body in files(output).items() if key.split("/")[1] in keys.DOWNLOADS]
    assert count - count_without == len(made) + 2, "two generations"
    assert 0.6 * sum(made) < size - size_without <= sum(made)
    insert_order(database, market_id=market_id(1))
    assert stated(output, config, monkeypatch)[0] == 1, "the detail alone"
    database.execute("UPDATE markets SET volume = volume + 1 WHERE id = ?", [market_id(7)])
    count, _ = stated(output, config, monkeypatch)
    assert count - stated(output, without, monkeypatch)[0] == 7


@pytest.mark.parametrize(
    "words",
    ["", "same words everywhere", "n{0} of{0}", "選挙 挙 選{0}", "a b c d e f g h i j k l m n o p q r s t u v w x y z"],
    ids=["none", "common", "unique", "unspaced", "short"],
)
@pytest.mark.parametrize("count", [0, 60])
def test_an_index_takes_no_more_than_is_assumed_before_it_is_made(words: str, count: int) -> None:
    markets = [public_market(number)._replace(words=tuple(words.format(number).split())) for number in range(count)]
    catalog = Catalog(markets, as_of=NOW, hidden=0)
    names = {keys.list_name("all", sort): "c" * cursors.GENERATION_LENGTH for sort in SORTS}
    most, made = search_index.at_most(catalog), search_index.make(catalog, ["crypto"], "pages", names).weight()
    assert made.objects <= most.objects
    assert made.bytes <= most.bytes
