"""A site whose archive has a few days, and what the objects of such a site say."""

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

import pytest

from generator.api import keys
from generator.api.archive import ArchivedDay, ArchiveHead
from tests.support import limits
from tests.support.sites.publishing import EVERY, FX, Original, PublishedSite, copied, populate, published_once
from tests.support.sites.rows import market_id
from tests.support.stores.s3.server import S3Server

INDEX: Final = keys.head(keys.ARCHIVE)
SETTINGS: Final = {"archive.days": "5", "dumps.parquet": "true"}
#: The markets (ids) that lists show.
LISTED: Final = {market_id(number) for number in EVERY if number != FX}


def day(number: int, hour: int = 12) -> str:
    """An hour of a day after the first publish."""
    return f"2024-02-{number:02}T{hour:02}:00:00Z"


def date(number: int) -> str:
    return f"2024-02-{number:02}"


@pytest.fixture(scope="session")
def original_of_days(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    """A site whose archive has two days that are over, and a third one."""
    with ExitStack() as stack:
        with limits.only(limits.FEWEST):
            made = stack.enter_context(published_once(tmp_path_factory.mktemp("archived"), populate, {}, fill_days))
        yield made


def fill_days(site: PublishedSite) -> None:
    site.settings |= SETTINGS
    for number in (1, 2, 3):
        site.edit(1, volume=float(100 + number), question=f"Question 1? On day {number}")
        site.done("rebuild", "--as-of", day(number))


@pytest.fixture
def archived(
    original_of_days: Original, site_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PublishedSite]:
    """A copy of it."""
    with limits.only(limits.FEWEST), copied(original_of_days, site_server, monkeypatch) as site:
        site.settings |= SETTINGS
        yield site


def head_in(objects: Mapping[str, bytes]) -> ArchiveHead:
    return ArchiveHead.model_validate_json(objects[INDEX])


def dates(objects: Mapping[str, bytes]) -> tuple[list[str], str]:
    """The days that are over, and the one that is not."""
    head = head_in(objects)
    return [one.date for one in head.days], head.today.date if head.today else ""


def days_of(objects: Mapping[str, bytes]) -> dict[str, list[dict[str, Any]]]:
    """The markets of each day, by its date; everything that is said of a file must be true of it."""
    head, found = head_in(objects), {}
    pointers = {key for key in objects if keys.is_archived_day(key)}
    assert pointers == {keys.archived_day(one.date) for one in head.all_days()}
    for entry in head.all_days():
        pointer = ArchivedDay.model_validate_json(objects[keys.archived_day(entry.date)])
        assert (pointer.date, pointer.state, pointer.count) == (entry.date, entry.state, entry.count)
        for file in pointer.markets:
            body = objects[file.key]
            assert (hashlib.sha256(body).hexdigest(), len(body)) == (file.sha256, file.size)
            assert file.url.endswith(file.key)
        text = gzip.decompress(objects[pointer.markets[0].key])
        assert hashlib.sha256(text).hexdigest() == entry.state
        found[entry.date] = [json.loads(line) for line in text.splitlines()]
        assert len(found[entry.date]) == entry.count
    return found


def volumes(objects: Mapping[str, bytes]) -> dict[str, float]:
    """The volume of the first market by day."""
    return {
        when: market["volume"]
        for when, markets in days_of(objects).items()
        for market in markets
        if market["id"] == market_id(1)
    }
