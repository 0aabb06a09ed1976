"""A withdrawal from a dump that cannot be read ends dump and change feed, and says so."""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from tests.support.builds import files
from tests.support.kills import dying_before
from tests.support.publishing import Site, hour, tamper
from tests.support.rows import insert_market, market_id
from tests.support.s3.wire import Request
from tests.support.waiting import wait_until

DUMP: Final = keys.head(keys.DUMPS)
HEADS: Final = {keys.head(name) for name in keys.DOWNLOADS}
ENDED: Final = "deleted the dump and its change feed: "
#: What may have become of a dump: it is missing, torn, or another one that can be read.
DAMAGES: Final[Mapping[str, Callable[[bytes], bytes | None]]] = {
    "missing": lambda _: None,
    "torn": lambda body: body[:-20],
    "another": lambda body: gzip.compress(gzip.decompress(body).replace(b"Question 2?", b"Forged?")),
}


def dump_of(objects: Mapping[str, bytes]) -> str:
    """The key of the only dump."""
    (key,) = (key for key in objects if key.startswith("v1/dumps/markets/"))
    return key


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_dump_that_cannot_be_read_in_the_store_ends_with_a_takedown(
    site: Site, damage: Callable[[bytes], bytes | None]
) -> None:
    key = dump_of(site.objects())
    body = damage(site.objects()[key])
    site.remove(key) if body is None else site.put(key, body)
    site.forget_output()
    result = site.done("takedown", market_id(1))
    assert result.stderr.count(ENDED) == 1
    assert not {key for key in site.objects() if key.startswith(("v1/dumps/", "v1/changes/"))}
    site.done("rebuild", "--as-of", hour(2))
    assert site.objects().keys() >= HEADS
    assert site.traces(1) == []
    site.check()


def test_a_takedown_says_that_the_dump_of_the_folder_ended(site: Site) -> None:
    key = dump_of(site.built())
    tamper(Path("output", key), b"torn")
    result = site.done("takedown", market_id(1))
    assert f"output: {ENDED}" in result.stderr
    assert f"publish: {ENDED}" not in result.stderr
    assert site.objects().keys() >= HEADS
    assert HEADS.isdisjoint(files(Path("output")))


def test_a_publish_without_a_market_blocked_elsewhere_says_that_the_dump_ended(site: Site) -> None:
    kept = Path("output").rename("kept")
    site.done("takedown", market_id(1))
    key = dump_of(files(kept))
    kept.rename("output")
    tamper(Path("output", key), b"torn")
    assert ENDED in site.done("publish").stderr
    assert site.traces(1) == []
    assert HEADS.isdisjoint(site.objects())


def test_a_takedown_after_a_killed_publish_begins_a_session_that_no_follower_is_in(site: Site) -> None:
    head = keys.head(keys.CHANGES)
    before = json.loads(site.objects()[head])
    insert_market(site.database, 50)

    def is_next(request: Request) -> bool:
        if request.operation != "PutObject" or not request.key.endswith(DUMP):
            return False
        wait_until(lambda: json.loads(site.objects()[head]) != before)  # both heads are put at once
        return True

    with dying_before(site.server, is_next):
        assert site.run("rebuild", "--as-of", hour(1)).exit_code == 1
    moved = json.loads(site.objects()[head])
    assert (moved["session"], moved["serial"]) == (before["session"], 2), "only the head of the feed was replaced"
    site.server.behaviour.clock_offset_s += 600
    site.forget_output()
    site.done("takedown", market_id(50))
    after = json.loads(site.objects()[head])
    assert after["state"] == before["state"]
    assert after["session"] != before["session"]
