"""A withdrawal or takedown leaves no row of the market in any Parquet file, or no Parquet file at all."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from generator.api import keys
from tests.support.readers.parquet import owners, rows
from tests.support.sites.builds import files
from tests.support.sites.publishing import EVERY, FX, OPEN, RESOLVED, PublishedSite, fill_parquet, hour
from tests.support.sites.rows import market_id

HEAD = keys.head(keys.DUMPS)
LISTED = {market_id(number) for number in EVERY if number != FX}


@pytest.fixture
def filed(published_site: PublishedSite) -> PublishedSite:
    """A published site with Parquet files."""
    fill_parquet(published_site)
    published_site.done("rebuild", "--as-of", hour(1))
    return published_site


def in_files(objects: Mapping[str, bytes]) -> dict[str, set[str]]:
    """The markets that each Parquet file has rows of, by its key."""
    return {key: owners(body) for key, body in objects.items() if key.endswith(".parquet")}


def head_of(objects: Mapping[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(objects[HEAD])
    return found


def folder_of(key: str) -> str:
    return key.removeprefix("v1/dumps/").rpartition("/")[0]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("number", [1, RESOLVED])
def test_a_takedown_rewrites_just_the_files_that_hold_the_market(filed: PublishedSite, number: int) -> None:
    before = in_files(filed.objects())
    holding = {folder_of(key) for key, ids in before.items() if market_id(number) in ids}
    assert sorted(folder.partition("/")[0] for folder in holding) == ["fills", "history", "markets"]
    filed.done("takedown", market_id(number))
    for objects in (filed.objects(), files(filed.folder / "output")):
        after = in_files(objects)
        assert set[str]().union(*after.values()) == LISTED - {market_id(number)}
        assert {folder_of(key) for key in before.keys() ^ after.keys()} == holding
        named = [file["url"].partition("/v1/")[2] for name in ("markets", "history", "fills")
                 for file in head_of(objects)[name] if file["url"].endswith("parquet")]  # fmt: skip
        assert sorted(f"v1/{key}" for key in named) == sorted(after)
    filed.check()


def test_a_takedown_makes_the_files_of_a_build_without_the_market(filed: PublishedSite) -> None:
    filed.done("takedown", market_id(1), market_id(OPEN[-1]))
    made = {key: body for key, body in filed.objects().items() if key.endswith(".parquet")}
    for number in (1, OPEN[-1]):
        filed.database.execute("DELETE FROM markets WHERE id = ?", [market_id(number)])
    filed.done("build", "--as-of", hour(1), output="fresh")
    fresh = {key: body for key, body in filed.built("fresh").items() if key.endswith(".parquet")}
    # A partition that lost its last market stays until the next day, without rows.
    assert {key: body for key, body in made.items() if rows(body) or key in fresh} == fresh


def test_without_the_extra_a_takedown_deletes_all_parquet_files_and_says_so(
    filed: PublishedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "arro3", None)
        result = filed.done("takedown", market_id(1))
        assert "pip install 'public-markets[parquet]'" in result.stderr
        for objects in (filed.objects(), files(filed.folder / "output")):
            assert in_files(objects) == {}
            assert head_of(objects).keys() == {"asOf", "count", "state", "markets"}
        filed.check()
    filed.done("rebuild", "--as-of", hour(2))
    assert set[str]().union(*in_files(filed.objects()).values()) == LISTED - {market_id(1)}
