"""Withdrawal of markets from a folder or a store, without a database."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from generator.api import keys
from generator.publish import withdrawal
from generator.publish.lease import Lease
from generator.tree.folder import locked
from generator.tree.manifest import Manifest
from tests.support.sites.builds import files
from tests.support.sites.publishing import CANCELLED, EVERY, FIRST, FX, OPEN, PublishedSite, tamper
from tests.support.sites.rows import market_id

LIFETIME = timedelta(hours=6)


def withdraw(place: Path, *numbers: int) -> Manifest:
    with locked(place) as folder:
        withdrawal.from_folder(folder, [market_id(number) for number in numbers], LIFETIME)
        found = folder.manifest()
    assert found
    return found


def rebuilt_without(site: PublishedSite, *numbers: int) -> dict[str, bytes]:
    """What a build without the markets gives, except for the session of its change feed."""
    for number in numbers:
        for relation, column in (("markets", "id"), ("fx_members", "market_id")):
            site.database.execute(f"DELETE FROM {relation} WHERE {column} = ?", [market_id(number)])
    site.done("build", "--as-of", FIRST, output="fresh")
    return without_feed(site.built("fresh"))


def without_feed(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    return {key: body for key, body in objects.items() if not key.startswith("v1/changes/")}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("numbers", [(1,), (1, CANCELLED, FX), OPEN, EVERY])
def test_a_withdrawal_from_a_folder_equals_a_build_without_the_markets(
    published_site: PublishedSite, numbers: tuple[int, ...]
) -> None:
    made = withdraw(Path("output"), *numbers)
    assert made.complete
    expected = rebuilt_without(published_site, *numbers)
    found = files(Path("output"))
    assert without_feed(found) == expected
    assert json.loads(found[keys.head(keys.CHANGES)])["steps"] == []
    assert made.markets.keys() == {market_id(number) for number in EVERY if number not in numbers}


def test_a_withdrawal_from_a_store_equals_a_build_without_the_markets(
    published_site: PublishedSite, tmp_path: Path
) -> None:
    published_site.forget_output()
    store = published_site.store()
    lease = Lease(store, timedelta(minutes=5))
    published = lease.read()
    assert published
    with locked(tmp_path / "scratch") as folder:
        state, gone = withdrawal.StoredState(store, published), frozenset({market_id(1), market_id(FX)})
        withdrawal.from_store(state, gone, folder, LIFETIME, lease)
        made = folder.manifest()
    assert made
    expected = rebuilt_without(published_site, 1, FX)
    changed = without_feed(files(tmp_path / "scratch"))
    mutable = {key for key in expected if not keys.is_immutable(key)}
    assert made.objects.keys() == {*mutable, keys.head(keys.CHANGES)}
    assert changed == {key: expected[key] for key in changed}
    assert published_site.server.count("PutObject") == published_site.server.count("DeleteObjects") == 0


def test_a_folder_without_a_build_stays_without(tmp_path: Path) -> None:
    with locked(tmp_path / "output") as folder:
        withdrawal.from_folder(folder, [market_id(1)], LIFETIME)
        assert folder.manifest() is None


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("harm", ["missing", "damaged"])
@pytest.mark.parametrize("what", ["first page", "page", "build record", "feed", "head of the dump"])
def test_what_cannot_be_read_is_made_again(published_site: PublishedSite, harm: str, what: str) -> None:
    key = {
        "first page": keys.first_page("open/new", 100),
        "page": keys.first_page("closed/new", 100),
        "build record": keys.BUILD,
        "feed": keys.feed("new", "json"),
        "head of the dump": keys.head(keys.DUMPS),
    }[what]
    if harm == "missing":
        Path("output", key).unlink()
    else:
        tamper(Path("output", key), b'{"items":[{')
    withdraw(Path("output"), 1)
    found = without_feed(files(Path("output")))
    assert found == rebuilt_without(published_site, 1)
