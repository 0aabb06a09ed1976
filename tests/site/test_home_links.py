"""The addresses of markets' pages on the operator's site: in feeds and Parquet, for people; nothing else says a key.

They follow a change of key or setting, and a takedown makes them without the database.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from generator.api import keys
from generator.publish import references
from generator.tree.files import INSPECTION
from generator.tree.layouts import COMPACT
from generator.tree.manifest import Manifest
from tests.site import chosen_sites
from tests.site.chosen_sites import FIRST, rich_site
from tests.site.taken_down import RECORD, Objects, Workplace, changes, keys_told, workplace
from tests.support.readers import parquet
from tests.support.sites.builds import files, make_config
from tests.support.sites.rows import market_id

#: Seven markets, of which the last is a member of a family.
SITE: Final = rich_site(COMPACT, "extended", count=7)
HOME: Final = "https://example.org/m/qk0{}site%2Fk%C3%A4y?from=feed"


@pytest.fixture(scope="module")
def place() -> Iterator[Workplace]:
    """The site, built and published."""
    with workplace(SITE) as found:
        chosen_sites.fill(found.folder, SITE.first)
        found.build(FIRST)
        found.publish(target="store")
        yield found


@pytest.fixture
def output(place: Workplace, request: pytest.FixtureRequest) -> Iterator[str]:
    """A copy of the output folder, for one test, which leaves database and settings as they were."""
    name = request.node.name
    place.copy("output", name)
    shutil.copytree(place.folder / "store", place.folder / f"{name}-store")
    yield name
    place.settings = {}
    chosen_sites.fill(place.folder, SITE.first)


def fill(place: Workplace, number: int, **columns: Any) -> None:
    """Have the database say something else of one market."""
    rows = SITE.first[number]
    edited = {number: replace(rows, columns={**rows.columns, **columns})}
    chosen_sites.fill(place.folder, {**SITE.first, **edited})


def urls_in_feed(objects: Objects) -> dict[str, str]:
    feed = json.loads(objects[keys.feed("new", "json")])
    assert all(item["url"] in objects[keys.feed("new", "atom")].decode() for item in feed["items"])
    return {item["id"].removeprefix("urn:uuid:"): item["url"] for item in feed["items"]}


def urls_in_parquet(objects: Objects) -> dict[str, str | None]:
    (name,) = (
        file["name"] for file in json.loads(objects[keys.head(keys.DUMPS)])["markets"] if file["format"] == "parquet"
    )
    rows = parquet.rows(objects[keys.chunk(keys.DUMPS, name)])
    return {row["id"]: row["url"] for row in rows}


def homes(*numbers: int) -> dict[str, str]:
    return {market_id(number): HOME.format(number) for number in numbers}


def record(place: Workplace, name: str) -> Manifest:
    return Manifest.model_validate(json.loads((place.folder / name / RECORD).read_bytes())["built"])


def test_feeds_parquet_and_the_page_for_people_have_the_addresses_and_nothing_published_has_the_keys(
    place: Workplace,
) -> None:
    found = place.objects("store")
    assert urls_in_feed(found) == urls_in_parquet(found) == homes(1, 2, 3, 4, 5, 6)
    page = files(place.folder / "output", "")[INSPECTION].decode()
    assert all(page.count(url) >= 2 for url in homes(*range(1, 8)).values()), "as a link, and for its scripts"
    assert keys_told(SITE, {**found, INSPECTION: page.encode()}) == []
    assert not [key for key, body in found.items() if b"{key}" in body], "nobody is given a template without its keys"
    assert record(place, "store").site_keys == {market_id(number): f"qk0{number}site/käy" for number in range(1, 8)}


def test_a_key_that_changes_changes_feeds_and_parquet_and_nothing_else(place: Workplace, output: str) -> None:
    before, store = place.objects(output), f"{output}-store"
    fill(place, 3, key=42)
    place.build(FIRST, output=output)
    after = place.objects(output)
    changed = {fault.partition(":")[0] for fault in changes(before, after)}
    assert changed == {"feeds", "dumps", "attach", "dataset"}
    now = {**homes(1, 2, 4, 5, 6), market_id(3): "https://example.org/m/42?from=feed"}
    assert urls_in_feed(after) == urls_in_parquet(after) == now
    place.publish(output=output, target=store)
    assert urls_in_parquet(place.objects(store)) == now
    config = make_config(place.folder)
    for name in ("42", now[market_id(3)]):
        assert references.meant(name, config, record(place, store)) == {market_id(3)}


def test_keys_that_no_link_needs_are_kept_and_published_by_nothing(place: Workplace, output: str) -> None:
    place.settings, store = {"market_url": ""}, f"{output}-store"
    place.build(FIRST, output=output)
    place.publish("--purge-retired", output=output, target=store)
    before = place.objects(store)
    fill(place, 3, key="new key")
    place.build(FIRST, output=output)
    place.publish(output=output, target=store)
    assert place.objects(store) == before
    assert references.meant("new key", make_config(place.folder), record(place, store)) == {market_id(3)}
    plain = replace(SITE, settings={**SITE.settings, "market_url": None})
    assert keys_told(plain, before) == []


def test_markets_that_share_a_key_stay_published_without_a_link_and_a_remark_says_what_to_do(
    place: Workplace, output: str
) -> None:
    fill(place, 3, key="qk04site/käy")
    told = place.done("build", "--as-of", FIRST, output=output).stderr
    assert (
        "key cannot be used: another market has the same (such as "
        f"{market_id(3)}: qk04site/käy, as has {market_id(4)}); no link leads to its page, and no takedown"
    ) in told
    found = place.objects(output)
    assert {market: url for market, url in urls_in_parquet(found).items() if url} == homes(1, 2, 5, 6)
    assert urls_in_parquet(found)[market_id(4)] is None
    assert urls_in_feed(found)[market_id(4)].endswith(f"/{keys.MARKETS}/{market_id(4)}")
    checked = place.run("check", output=output).output
    assert "market_url: has {key}, and 2 of 7 markets have no usable key" in checked
