"""A withdrawal or takedown leaves no row of the market in any Parquet file of any generation, or no such file."""

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

import pytest

from generator.api import keys
from generator.api.downloads import TABLES, DumpHead
from tests.publish.explorer.downloads import attached
from tests.support.readers.parquet import owners, rows
from tests.support.sites.builds import files
from tests.support.sites.publishing import EVERY, FX, OPEN, RESOLVED, PublishedSite, fill_parquet, hour
from tests.support.sites.rows import fill_id, insert_fill, insert_point, market_id

HEAD: Final = keys.head(keys.DUMPS)
LISTED: Final = {market_id(number) for number in EVERY if number != FX}
PERIODS: Final = {
    "history": ["2024", "2025", "2026-01"], "fills": ["2025", "2026-01", "2026-01"],
    "candles/day": ["2024", "2025", "2026-01"], "candles/hour": ["2025-12", "2026-01", "2026-01"], "closes": ["2024"],
}  # fmt: skip
DAYS: Final = ("2026-01-30T12:00:00Z", "2026-01-31T12:00:00Z", "2026-02-01T12:00:00Z")


@pytest.fixture(params=[True, False], ids=["fills", "no fills"])
def filed(published_site: PublishedSite, request: pytest.FixtureRequest) -> PublishedSite:
    """A published site with histories of two years, and two parts of the running month."""
    fill_parquet(published_site)
    published_site.settings["dumps.fills"] = request.param
    traded(published_site, 0, "2025-12-05 00:00:00.000000")
    published_site.done("rebuild", "--as-of", DAYS[0])
    traded(published_site, 1, "2026-01-31 00:00:00.000000")
    published_site.done("rebuild", "--as-of", DAYS[1])
    # A day with trades and without points has a candle only where trades are published.
    of_points = {**PERIODS, "fills": [], "candles/day": ["2024", "2025"], "candles/hour": ["2025-12", "2026-01"]}
    assert periods(published_site.objects()) == (PERIODS if request.param else of_points)
    return published_site


def traded(site: PublishedSite, turn: int, at: str) -> None:
    for number in EVERY:
        insert_point(site.database, at, market_id=market_id(number))
        insert_fill(site.database, 1000 + 100 * turn + number, market_id=market_id(number), created_at=at)


def periods(objects: Mapping[str, bytes]) -> dict[str, list[str]]:
    head = head_of(objects)
    return {table: [file.period for file in head.table(table)] for table in TABLES}


def head_of(objects: Mapping[str, bytes]) -> DumpHead:
    found = DumpHead.found_by(objects.get)
    assert found
    return found


def holders(objects: Mapping[str, bytes]) -> dict[str, set[str]]:
    """The markets that each Parquet file has rows of, retired ones included."""
    return {key: owners(body) for key, body in objects.items() if key.endswith(".parquet")}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("has_folder", [True, False])
def test_a_takedown_removes_the_market_from_every_file(filed: PublishedSite, *, has_folder: bool) -> None:
    gone, before, named = market_id(OPEN[0]), holders(filed.objects()), periods(filed.objects())
    assert sum(gone in ids for ids in before.values()) >= 9
    if not has_folder:
        filed.forget_output()
    filed.done("takedown", gone)
    states = [filed.objects(), *([files(filed.folder / "output")] if has_folder else [])]
    for objects in states:
        after = holders(objects)
        assert set[str]().union(*after.values()) == LISTED - {gone}
        assert periods(objects) == named
        in_head = {file.key for file in head_of(objects).files()}
        assert in_head >= after.keys()
        assert attached(objects)
        assert in_head.intersection(objects) >= {*attached(objects)}
    if has_folder:
        filed.check()


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_takedown_takes_the_market_out_of_the_record_of_accuracy(
    published_site: PublishedSite, *, has_folder: bool
) -> None:
    fill_parquet(published_site)
    published_site.settings["history.public"] = "true"
    published_site.done("rebuild", "--as-of", hour(1))
    assert counted(published_site.objects()) == (1, 0, [1, 1])
    if not has_folder:
        published_site.forget_output()
    published_site.done("takedown", market_id(RESOLVED))
    states = [published_site.objects(), *([files(published_site.folder / "output")] if has_folder else [])]
    assert [counted(objects) for objects in states] == [(0, 0, [0, 0])] * len(states)
    if has_folder:
        published_site.check()


def counted(objects: Mapping[str, bytes]) -> tuple[int, int, list[int]]:
    """How many markets resolved YES and NO by the record of accuracy, and how many had a probability before."""
    found = json.loads(objects[keys.HISTORY])
    return found["resolvedYes"], found["resolvedNo"], [horizon["markets"] for horizon in found["horizons"]]


@pytest.mark.parametrize("filed", [True], indirect=True)
def test_a_file_that_cannot_be_read_goes_and_is_made_again(filed: PublishedSite) -> None:
    gone = market_id(OPEN[0])
    damaged = [key for key in filed.objects() if "/fills/period=2025" in key]
    for key in damaged:
        filed.put(key, b"")
    filed.forget_output()
    filed.done("takedown", gone)
    assert not {*damaged} & filed.objects().keys()
    assert set[str]().union(*holders(filed.objects()).values()) == LISTED - {gone}
    filed.done("rebuild", "--as-of", DAYS[1])
    current = {file.key for file in head_of(filed.objects()).table("fills")}
    found = {row["id"] for key in current for row in rows(filed.objects()[key])}
    assert fill_id(1000 + OPEN[1]) in found
    filed.check()


@pytest.mark.parametrize("library", ["arro3", "numpy"])
def test_without_the_extra_a_takedown_deletes_all_parquet_files_and_says_so(
    published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    fill_parquet(published_site)
    published_site.settings["history.public"] = "true"
    published_site.done("rebuild", "--as-of", hour(1))
    assert keys.HISTORY in published_site.objects()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, library, None)
        result = published_site.done("takedown", market_id(1))
        assert "pip install 'public-markets[parquet]'" in result.stderr
        for objects in (published_site.objects(), files(published_site.folder / "output")):
            assert holders(objects) == {}
            assert keys.HISTORY not in objects, "it was made of these files"
            assert json.loads(objects[HEAD]).keys() == {"asOf", "count", "state", "markets"}
        published_site.check()
    published_site.done("rebuild", "--as-of", hour(2))
    assert set[str]().union(*holders(published_site.objects()).values()) == LISTED - {market_id(1)}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("filed", [True], indirect=True)
@pytest.mark.parametrize("is_staged", [False, True])
def test_a_fill_that_was_gone_before_a_publish_is_in_no_file(filed: PublishedSite, *, is_staged: bool) -> None:
    """Files are made once a day, but not kept if a build made them that was not published, or only elsewhere."""
    filed.done("rebuild", "--as-of", DAYS[1])
    fill: dict[str, Any] = {"number": 5_000, "market_id": market_id(1), "created_at": "2026-02-01 00:00:00.000000"}
    insert_fill(filed.database, **fill)
    filed.done("build", "--as-of", DAYS[2])
    assert has_fill(files(filed.folder / "output"))
    if is_staged:
        filed.done("publish", publish__target="s3://markets/staging/")
    filed.database.execute("DELETE FROM fills WHERE id = ?", [fill_id(5_000)])
    filed.done("rebuild", "--as-of", "2026-02-01T13:00:00Z")
    assert not has_fill(filed.objects())
    insert_fill(filed.database, **fill)
    filed.done("rebuild", "--as-of", "2026-02-01T14:00:00Z")
    assert not has_fill(filed.objects()), "the files are of that day again"


def has_fill(objects: Mapping[str, bytes]) -> bool:
    """Whether any file, also a retired one, has the fill 5,000."""
    found = [row for key, body in objects.items() if "/dumps/fills/" in key for row in rows(body)]
    assert found
    return fill_id(5_000) in {row["id"] for row in found}
