"""A build learns from their names that details are in place: it asks nothing else of the files of those that it keeps.

It opens the details and the dump only where something changed; the audit of versions is left out here.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.builder.inspection import excerpts
from generator.errors import OutputError
from tests.builder.test_part_staging import MARKETS, VersionedSite, assert_as_fresh
from tests.support.campaigns import IS_FULL
from tests.support.opened_files import opened_below
from tests.support.sites.builds import dump_head
from tests.support.sites.rows import insert_market, market_id

#: Ids in as many folders.
IDS: Final = [f"{number:02x}000000-0000-4000-8000-000000000000" for number in range(0, 250, 10)]
EXCERPTED: Final = [market_id(number) for number in range(1_000, 1_000 + excerpts.EXCERPTS)]
SETTINGS: Final[dict[str, Any]] = {"dumps__ndjson": True, "feeds__enabled": True}


@pytest.fixture(params=["rows too", *["details alone"] * IS_FULL])
def site(database: sqlite3.Connection, tmp_path: Path, request: pytest.FixtureRequest) -> VersionedSite:
    site = VersionedSite(database, tmp_path)
    database.execute("DELETE FROM markets")
    for one in IDS:
        insert_market(database, id=one, slug=f"m-{one}", detail_version=1)
    if request.param == "rows too":
        database.execute("ALTER TABLE markets ADD COLUMN market_version DEFAULT 1")
    site.build()
    return site


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("variant", ["core", "extended"])
@pytest.mark.parametrize("is_whole", [True, False], ids=["a folder", "a file"])
def test_what_was_lost_is_made_again(site: VersionedSite, variant: str, *, is_whole: bool) -> None:
    settings: dict[str, Any] = {"variant": variant, "search": "title"}
    site.build(**settings)
    path = site.output / (keys.detail(IDS[3]) if variant == "core" else keys.detail_by_slug(f"m-{IDS[4]}"))
    lost = len([*path.parent.iterdir()]) if is_whole else 1
    shutil.rmtree(path.parent) if is_whole else path.unlink()
    assert site.build(**settings).details.read == lost
    assert_as_fresh(site, **settings)


def test_a_link_in_place_of_a_folder_of_details_is_refused(site: VersionedSite) -> None:
    folder = (site.output / keys.detail(IDS[3])).parent
    folder.rename(folder.with_name("aside"))
    folder.symlink_to("aside")
    with pytest.raises(OutputError, match="link"):
        site.build()


# ── what is opened ────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def opened(site: VersionedSite) -> Iterator[list[str]]:
    """The details (as ids of their markets) and the dumps that the block opens, each once, in order.

    Those that the page excerpts anew in each build are left out.
    """
    found = list[str]()
    with opened_below(site.output) as names:
        yield found
    known = [keys.market_id(name) or name for name in names if keys.market_id(name) or name.endswith(".ndjson.gz")]
    found += [name for name in known if name not in EXCERPTED]


@pytest.fixture
def whole_site(database: sqlite3.Connection, tmp_path: Path) -> VersionedSite:
    """With a dump and feeds; others are so popular that the page excerpts none of its markets."""
    site = VersionedSite(database, tmp_path)
    for one in EXCERPTED:
        insert_market(database, id=one, detail_version=1, trader_count=999)
    with opened(site) as found:
        site.build(**SETTINGS)
    assert len(found) == MARKETS, "each detail is looked for"
    return site


def test_what_changed_is_opened_alone_and_nothing_where_nothing_did(whole_site: VersionedSite) -> None:
    dump = dump_head(whole_site.output).ndjson.key
    for is_touched in (False, True):
        if is_touched:
            (whole_site.output / dump).write_bytes((whole_site.output / dump).read_bytes())
        with opened(whole_site) as found:
            whole_site.build(**SETTINGS)
        assert (found, dump_head(whole_site.output).ndjson.key) == ([], dump)
    whole_site.trade(1)
    whole_site.edit(1, volume=99.0)
    with opened(whole_site) as found:
        whole_site.build(**SETTINGS)
    assert {*found} == {market_id(1), dump}
    assert dump_head(whole_site.output).ndjson.key != dump
