"""A build looks at the files of a folder that changed, and at another share of all others each time."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.progress import Silent
from generator.tree.fingerprints import TURNS, is_in_turn
from tests.builder.test_part_staging import VersionedSite, assert_as_fresh
from tests.support.campaigns import IS_FULL
from tests.support.sites.rows import insert_market

#: Ids in as many folders.
IDS: Final = [f"{number:02x}000000-0000-4000-8000-000000000000" for number in range(0, 250, 10)]


@pytest.fixture(params=["rows too", *["details alone"] * IS_FULL])
def site(database: sqlite3.Connection, tmp_path: Path, request: pytest.FixtureRequest) -> VersionedSite:
    site = VersionedSite(database, tmp_path)
    database.execute("DELETE FROM markets")
    for market_id in IDS:
        insert_market(database, id=market_id, detail_version=1)
    if request.param == "rows too":
        database.execute("ALTER TABLE markets ADD COLUMN market_version DEFAULT 1")
    site.build()
    site.build()  # looks at all that the first one put into place
    return site


@contextmanager
def looked_at() -> Iterator[list[str]]:
    """The markets whose details the block looks at."""
    found = list[str]()
    real = os.stat

    def noted(path: Any, **options: Any) -> os.stat_result:
        if isinstance(path, str) and path.endswith(".json") and keys.DETAILS in path:
            found.append(Path(path).stem)
        return real(path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", noted)
        yield found


@pytest.mark.campaign(short=0)
def test_each_file_is_looked_at_once_in_twelve_builds(site: VersionedSite) -> None:
    found = list[str]()
    for _ in range(TURNS):
        with looked_at() as now:
            site.build()
        assert len(now) < len(IDS) / 2
        found += now
    assert sorted(found) == IDS


def test_a_build_of_the_same_instant_has_the_same_turn(site: VersionedSite) -> None:
    with looked_at() as first:
        site.build()
    with looked_at() as second:
        site.build(later=0)
    assert first == second


@pytest.mark.campaign(short=0)
def test_all_files_of_a_folder_are_looked_at_where_one_was_lost_or_replaced(site: VersionedSite) -> None:
    path = site.output / keys.detail(IDS[3])
    for body in (None, b"{}"):
        path.unlink()
        if body:
            path.write_bytes(body)
        with looked_at() as found:
            site.build()
        assert IDS[3] in found
        assert_as_fresh(site)


class Losing(Silent):
    """Loses a file while what follows the details is made."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def expect(self, steps: int) -> None:  # noqa: ARG002 - any
        self._path.unlink(missing_ok=True)


def test_a_file_that_was_lost_while_a_build_ran_is_missed_by_the_next_one(site: VersionedSite) -> None:
    path = site.output / keys.detail(IDS[3])
    site.build(progress=Losing(path))
    assert not path.exists()
    site.build()
    assert_as_fresh(site)


def test_a_file_that_was_written_to_is_found_in_its_turn_and_then_all_are_looked_at(site: VersionedSite) -> None:
    wrong = [IDS[3], IDS[4]]
    for market_id in wrong:
        (site.output / keys.detail(market_id)).write_bytes(b"{}")
    for turn in (*range(2, TURNS), 0, 1):
        with looked_at() as found:
            site.build()
        if any(is_in_turn(market_id, turn) for market_id in wrong):
            break
        assert not {*wrong} & {*found}
    assert {*found} >= {*IDS}
    assert_as_fresh(site)


def test_a_folder_whose_own_rights_changed_and_one_in_place_of_it_are_looked_at(site: VersionedSite) -> None:
    folder = (site.output / keys.detail(IDS[3])).parent
    folder.chmod(0o755)
    with looked_at() as found:
        site.build()
    assert IDS[3] in found
    folder.rename(folder.with_name("aside"))
    folder.symlink_to("aside")
    with pytest.raises(Exception, match="link"):
        site.build()
