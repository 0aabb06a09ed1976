"""A build opens the details and the dump only where something changed; the audit of versions is left out here."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.api.downloads import DumpHead
from generator.tree import files
from tests.builder.test_part_staging import MARKETS, VersionedSite
from tests.support.opened_files import opened_below
from tests.support.sites.rows import market_id

SETTINGS: Final[dict[str, Any]] = {"dumps__ndjson": True, "feeds__enabled": True}


@contextmanager
def opened(site: VersionedSite) -> Iterator[list[str]]:
    """The details (as ids of their markets) and the dumps that the block opens, each once, in order."""
    found = list[str]()
    with opened_below(site.output) as names:
        yield found
    found += [keys.market_id(name) or name for name in names if keys.market_id(name) or name.endswith(".ndjson.gz")]


@pytest.fixture
def site(database: sqlite3.Connection, tmp_path: Path) -> VersionedSite:
    site = VersionedSite(database, tmp_path)
    with opened(site) as found:
        site.build(**SETTINGS)
    assert len(found) == MARKETS, "each detail is looked for, or excerpted"
    return site


def dump_of(site: VersionedSite) -> str:
    return DumpHead.model_validate_json((site.output / keys.head(keys.DUMPS)).read_bytes()).ndjson.key


def page(site: VersionedSite) -> bytes:
    return (site.output / files.INSPECTION).read_bytes()


def test_nothing_is_opened_where_nothing_changed(site: VersionedSite) -> None:
    for _ in range(2):
        with opened(site) as found:
            site.build(**SETTINGS)
        assert found == []
        assert b'"of":"' in page(site)


def test_what_changed_is_opened_alone(site: VersionedSite) -> None:
    dump = dump_of(site)
    site.trade(1)
    site.edit(1, volume=99.0)
    with opened(site) as found:
        site.build(**SETTINGS)
    assert {*found} == {market_id(1), dump}
    assert dump_of(site) != dump


def test_a_full_build_opens_everything_and_the_page_is_the_same(site: VersionedSite) -> None:
    before, dump = page(site), dump_of(site)
    (site.output / dump).write_bytes(bytes((site.output / dump).stat().st_size))
    with opened(site) as found:
        site.build(later=0, full=True, **SETTINGS)
    assert {*found} == {*map(market_id, range(MARKETS)), dump}
    assert page(site).partition(b'"program"')[2] == before.partition(b'"program"')[2]


def test_a_dump_that_was_touched_is_read_again(site: VersionedSite) -> None:
    dump = dump_of(site)
    (site.output / dump).write_bytes((site.output / dump).read_bytes())
    with opened(site) as found:
        site.build(**SETTINGS)
    assert found == [dump]
    assert dump_of(site) == dump


def test_a_market_that_goes_or_comes_is_told_though_no_detail_changed(site: VersionedSite) -> None:
    dumps = [dump_of(site)]
    for is_listed in (False, True):
        site.edit(2, is_listed=is_listed)
        site.build(**SETTINGS, guards__max_shrink=1)
        dumps.append(dump_of(site))
    assert dumps[0] == dumps[2] != dumps[1]
