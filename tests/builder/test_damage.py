"""A bit flips in a file of `output/`: a full build makes the file again, and nothing wrong is made of it before."""

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.config.settings import Config
from generator.tree import files as names
from generator.tree import generations
from tests.support import limits
from tests.support.campaigns import every_pair
from tests.support.sites.builds import AS_OF, build_now, files, make_config, manifest_in
from tests.support.sites.publishing import link_or_copy, tamper
from tests.support.sites.rows import (
    create_database,
    insert_category,
    insert_fill,
    insert_fx_member,
    insert_point,
    insert_whole_market,
    market_id,
    tell_row_versions,
)

MARKETS: Final = 3
FX: Final = 2
LAST: Final = AS_OF + timedelta(hours=25)
#: What says how long a build took.
TIMED: Final = {names.REPORT, names.INSPECTION, names.UNCHANGED}
#: Kinds of files that a site has at least.
LEAST_KINDS: Final = 45
#: What the loss of the first changes.
PARTS: Final = {names.DUMP_PARTS, names.MANIFEST}


def site(folder: Path, layout: str, form: str) -> Config:
    """A site of two days with all kinds of files; its last build changed one market."""
    with closing(create_database(folder / "markets.db")) as database:
        database.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
        for number in range(MARKETS):
            insert_whole_market(database, number, slug=f"m-{number}", description=f"Text {number}")
            insert_category(database, "Politics", market_id=market_id(number))
        insert_fx_member(database, market_id=market_id(FX))
        tell_row_versions(database)
        settings = make_config(
            folder,
            layout=layout,
            variant="extended",
            source__audit=0,
            dumps__parquet=form == "parquet",
            dumps__fills=form == "parquet",
        )
        build_now(settings)
        change(database)
        build_now(settings, LAST)
    return settings


def change(database: sqlite3.Connection) -> None:
    """A trade in a market, and another question."""
    row = {"market_id": market_id(1)}
    insert_fill(database, 7, created_at="2026-02-01 12:30:00.000000", **row)
    insert_point(database, "2026-02-01 12:30:00.000000", 0.7, **row)
    now = "prob = 0.7, question = 'Else?', last_activity_at = '2026-02-01 12:30:00.000000'"
    database.execute(f"UPDATE markets SET {now}, detail_version = detail_version + 1 WHERE id = ?", [market_id(1)])


def kind(key: str, retired: set[str]) -> str:
    """What files of this kind have in common."""
    is_old = any(f"/{name}/" in key for name in retired)
    found = re.sub(r"/first/\d+|/lists/[^/]+/[^/]+/", "/…/", key)
    found = re.sub(r"[pcsd]?[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f-]{27}", "…", found)
    found = re.sub(r"\d+-\d+/\d+", "N", re.sub(r"/[0-9a-f]{2}/", "/…/", found))
    return f"{found} {'retired' if is_old else ''}"


def flip(path: Path) -> None:
    """Flip a bit in the middle of a file, and of no other link to it."""
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    tamper(path, bytes(body))


def one_of_each_kind(output: Path) -> dict[str, str]:
    """The key of a file, by its kind."""
    retired = {entry.generation for entry in manifest_in(output).retired}
    assert retired
    return {kind(key, retired): key for key in files(output, "") if key != names.MANIFEST}


@pytest.fixture(scope="module", autouse=True)
def _few_limits() -> Iterator[None]:
    """A folder is restored, built in full and compared for each kind of file."""
    with limits.only(limits.FEW):
        yield


@pytest.fixture(scope="module", params=every_pair(("pages", "chunks"), ("parquet", "ndjson")), ids=" ".join)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Config:
    settings = site(tmp_path_factory.mktemp("site"), *request.param)
    shutil.copytree(settings.output, settings.output.with_name("whole"))
    return settings


def restored(settings: Config, copy: Callable[..., object]) -> Config:
    """The site as it was built, whatever a test did to it."""
    shutil.rmtree(settings.output)
    shutil.copytree(settings.output.with_name("whole"), settings.output, copy_function=copy)
    return settings


@pytest.fixture
def settings(built: Config) -> Config:
    return restored(built, shutil.copy2)  # tests write into these files


def comparable(output: Path) -> dict[str, bytes]:
    """All files but those that say how long builds took."""
    return {key: body for key, body in files(output, "").items() if key not in TIMED}


def ends_with(output: Path, key: str) -> set[str]:
    """The files that may be others or none once this one was damaged: what made it is no longer there."""
    retired = [{*generations.object_keys(entry.list, entry)} for entry in manifest_in(output).retired]
    found = set[str]().union(*(own for own in retired if key in own))
    of_changes = f"{keys.list_prefix(keys.CHANGES)}/"
    if key.startswith(of_changes):
        found |= {name for name in files(output) if name.startswith(of_changes)}
    if key == keys.feed("new", "json"):  # it alone knows when a text was edited
        found |= {key, keys.feed("new", "atom")}
    # Which files of earlier dumps need not be made again, a full build does not remember.
    return {*found, names.DUMP_PARTS, *([names.MANIFEST] if found else [])}


def is_untold(key: str, output: Path) -> bool:
    """Whether this is the second item of a retired generation: only this page has it, so nothing tells what it was."""
    retired = manifest_in(output).retired
    return key.endswith("/1-0/1.json") and any(f"/{entry.generation}/" in key for entry in retired)


@pytest.mark.campaign(short=0)
def test_a_full_build_makes_every_damaged_file_again(settings: Config) -> None:
    output, whole = settings.output, settings.output.with_name("whole")
    control = comparable(whole)
    kinds = one_of_each_kind(whole)
    assert len(kinds) > LEAST_KINDS
    for key in kinds.values():
        restored(settings, link_or_copy)
        flip(output / key)
        damaged = (output / key).read_bytes()
        with limits.on_one_processor():
            build_now(settings, LAST, full=True)
        is_as_damaged = (output / key).exists() and (output / key).read_bytes() == damaged
        assert key in TIMED or not is_as_damaged or is_untold(key, whole), key
        found = comparable(output)
        differing = {name for name in control.keys() | found.keys() if control.get(name) != found.get(name)}
        new = {name for name in differing - control.keys() if name.startswith(f"{keys.list_prefix(keys.CHANGES)}/")}
        assert differing - new <= ends_with(whole, key), key


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("is_full", [True, False])
def test_a_damaged_detail_is_in_nothing_that_is_made(settings: Config, *, is_full: bool) -> None:
    key = keys.detail(market_id(0))
    detail = settings.output / key
    whole = detail.read_bytes()
    detail.write_bytes(whole.replace(b"Question 0?", b"Question 3?"))
    assert detail.read_bytes() != whole
    lost = settings.output / names.DUMP_PARTS
    lost.unlink()  # so that lines are made of details
    report = build_now(settings, LAST, full=is_full)
    assert detail.read_bytes() == whole
    found = comparable(settings.output)
    control = comparable(settings.output.with_name("whole"))
    assert {name for name in control if name not in PARTS and found.get(name) != control[name]} == set()
    # Without what Parquet files hold, every detail is read anyway.
    is_read = is_full or settings.has_parquet
    assert [remark.key for remark in report.remarks] == ([] if is_read else [key])
