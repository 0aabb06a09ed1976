"""A folder and a store in the form of an earlier version: `lists`, `search` and `downloads` instead of `current`."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from generator.api import keys
from generator.publish import record
from generator.publish.record import Published
from generator.tree.families import object_keys
from generator.tree.manifest import Manifest
from tests.support.sites.builds import files
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.sites.searchable_site import in_one_layout
from tests.support.stores import records
from tests.support.stores.records import sharded

MANIFEST = Path("output/manifest.json")


@pytest.fixture(params=[False, True], ids=["whole", "in-shards"])
def earlier(searched: PublishedSite, request: pytest.FixtureRequest) -> Iterator[PublishedSite]:
    """A published site with retired generations and two steps of its change feed, all in the earlier form."""
    with sharded() if request.param else nullcontext():
        for number in (1, 2):
            searched.edit(2, volume=70.0 + number)
            searched.done("rebuild", "--as-of", hour(number))
        content = json.loads(searched.stored()[record.KEY])
        assert bool(content["built"].get("shardNames")) == request.param
        searched.put(record.KEY, json.dumps({**content, "built": in_earlier_form(content["built"])}).encode())
        MANIFEST.write_text(json.dumps(in_earlier_form(json.loads(MANIFEST.read_text("utf-8")))), "utf-8")
        yield searched


def in_earlier_form(content: dict[str, Any]) -> dict[str, Any]:
    current = content["current"]
    assert current.keys() > {keys.SEARCH, keys.DUMPS, keys.CHANGES}
    return {
        **{name: value for name, value in content.items() if name != "current"},
        "lists": {name: entry for name, entry in current.items() if name not in keys.INDEXED},
        "search": current[keys.SEARCH],
        "downloads": {name: current[name] for name in (keys.DUMPS, keys.CHANGES)},
    }


def head(site: PublishedSite) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(site.read(keys.head(keys.CHANGES)) or b"")
    return found


def whole(site: PublishedSite) -> Published:
    found = records.whole(site.stored())
    assert found
    return found


def immutable(built: Manifest) -> set[str]:
    """The keys of the objects of all generations."""
    return {key for (name, _), entry in built.generations().items() for key in object_keys(name, entry)}


def check(site: PublishedSite) -> None:
    """The store and the folder hold exactly what the record says."""
    built = whole(site).built
    assert built.complete
    assert site.objects().keys() == site.built().keys() == built.objects.keys() | immutable(built)


@pytest.mark.campaign(short=0)
def test_a_rebuild_keeps_walks_and_session_and_uploads_only_what_changed(earlier: PublishedSite) -> None:
    before, feed, stored = whole(earlier).built, head(earlier), earlier.stored()
    existing = immutable(before)
    assert len(before.retired) > 2
    assert before.current.keys() == {entry.list for entry in before.retired} | before.lists().keys()
    earlier.edit(3, volume=99.0)
    requests = earlier.requests("rebuild", "--as-of", hour(3))
    after, now = whole(earlier).built, earlier.stored()
    assert existing <= now.keys() & stored.keys(), "a walk goes on, in whatever generation it is"
    assert {entry.pair for entry in before.retired} <= {entry.pair for entry in after.retired}
    assert before.generations().keys() <= after.generations().keys()
    assert (head(earlier)["session"], head(earlier)["serial"]) == (feed["session"], feed["serial"] + 1)
    assert not [request for request in requests if request.removeprefix("PutObject ") in existing]
    assert json.loads(now[record.KEY])["built"].keys() & {"lists", "search", "downloads", "current"} == {"current"}
    assert json.loads(MANIFEST.read_bytes()).keys() & {"lists", "search", "downloads", "current"} == {"current"}
    check(earlier)


@pytest.mark.campaign(short=0)
def test_a_build_of_the_same_data_changes_no_published_byte(earlier: PublishedSite) -> None:
    built, stored = files(earlier.folder / "output"), earlier.objects()
    earlier.done("rebuild", "--as-of", hour(2))
    assert (files(earlier.folder / "output"), earlier.objects()) == (built, stored)


@pytest.mark.campaign(short=0)
@in_one_layout
def test_a_takedown_removes_a_market_without_a_build_before_it(earlier: PublishedSite) -> None:
    earlier.done("takedown", market_id(1))
    assert not [key for key in earlier.objects() if market_id(1) in key]
    assert market_id(1) not in whole(earlier).built.markets
    check(earlier)
