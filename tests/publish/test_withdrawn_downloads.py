"""A withdrawal from a dump that cannot be read makes it again, from the details."""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys
from tests.support.builds import files
from tests.support.kills import dying_before
from tests.support.publishing import EVERY, FIRST, Site, hour, tamper, walk
from tests.support.rows import insert_market, market_id
from tests.support.s3.wire import Request
from tests.support.waiting import wait_until

LEFT_OUT: Final = "left out 1 market, whose details are missing or damaged; run `public-markets rebuild --verify`"
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


def tamper_with_dump(output: Path) -> None:
    tamper(output / dump_of(files(output)), b"torn")


def check_as_built_without(site: Site, number: int) -> None:
    """The site is what a build without the market makes."""
    site.check()
    site.database.execute("DELETE FROM markets WHERE id = ?", [market_id(number)])
    site.done("build", "--as-of", FIRST, output="fresh")
    assert site.objects() == site.built("fresh")


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_dump_that_cannot_be_read_in_the_store_is_made_again_by_a_takedown(
    site: Site, damage: Callable[[bytes], bytes | None]
) -> None:
    key = dump_of(site.objects())
    body = damage(site.objects()[key])
    site.remove(key) if body is None else site.put(key, body)
    result = site.done("takedown", market_id(1))
    assert "left out" not in result.stderr
    check_as_built_without(site, 1)


def test_a_dump_that_cannot_be_read_in_the_folder_is_made_again_by_a_takedown(site: Site) -> None:
    tamper_with_dump(Path("output"))
    result = site.done("takedown", market_id(1))
    assert "left out" not in result.stderr
    check_as_built_without(site, 1)


def test_a_dump_that_cannot_be_read_is_made_again_by_a_publish_without_a_market_blocked_elsewhere(site: Site) -> None:
    kept = Path("output").rename("kept")
    site.done("takedown", market_id(1))
    tamper_with_dump(kept)
    kept.rename("output")
    assert "left out" not in site.done("publish").stderr
    assert site.traces(1) == []
    check_as_built_without(site, 1)


def test_what_neither_the_dump_nor_a_detail_tells_is_left_out_and_the_takedown_says_so(site: Site) -> None:
    site.remove(dump_of(site.objects()))
    site.put(keys.detail(market_id(2)), site.objects()[keys.detail(market_id(3))])
    site.forget_output()
    assert LEFT_OUT in site.done("takedown", market_id(1)).stderr
    assert site.traces(1, output=False) == site.traces(2, output=False) == []
    assert len(walk(site, "all/new", 100)) == len(EVERY) - 3, "one of them is in no list anyway"
    site.done("rebuild", "--as-of", hour(2), "--verify")
    assert len(walk(site, "all/new", 100)) == len(EVERY) - 2
    site.check()


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("damage", [None, b"", b'{"items":[{}]}'], ids=["missing", "empty", "damaged"])
def test_without_a_dump_lists_that_cannot_be_read_are_made_again(site: Site, damage: bytes | None) -> None:
    site.settings["dumps.ndjson"] = "false"
    site.done("rebuild", "--as-of", FIRST)
    for sort in contract.SORTS:
        key = keys.first_page(keys.list_name("all", sort), 100)
        site.remove(key) if damage is None else site.put(key, damage)
    assert "left out" not in site.done("takedown", market_id(1)).stderr
    check_as_built_without(site, 1)


def test_without_a_dump_lists_stay_as_they_were_before_a_publish_that_was_killed_among_details(site: Site) -> None:
    site.settings["dumps.ndjson"] = "false"
    site.done("rebuild", "--as-of", FIRST)
    before = walk(site, "all/new", 100)
    for number in (2, 3):
        site.edit(number, question=f"Edited {number}?")

    def is_next(request: Request) -> bool:
        if request.operation != "PutObject" or not request.key.endswith(keys.detail(market_id(3))):
            return False
        wait_until(lambda: b"Edited 2?" in site.objects()[keys.detail(market_id(2))])  # details are put at once
        return True

    with dying_before(site.server, is_next):
        assert site.run("rebuild", "--as-of", hour(1)).exit_code == 1
    site.server.behaviour.clock_offset_s += 600
    site.forget_output()
    site.done("takedown", market_id(1))
    assert walk(site, "all/new", 100) == [question for question in before if question != "Question 1?"]
    assert site.traces(1, output=False) == []


def test_a_takedown_after_a_killed_publish_begins_a_session_that_no_follower_is_in(site: Site) -> None:
    head = keys.head(keys.CHANGES)
    before = json.loads(site.objects()[head])
    insert_market(site.database, 50)

    def is_next(request: Request) -> bool:
        return request.operation == "PutObject" and request.key.endswith(keys.BUILD)

    with dying_before(site.server, is_next):
        assert site.run("rebuild", "--as-of", hour(1)).exit_code == 1
    moved = json.loads(site.objects()[head])
    assert (moved["session"], moved["serial"]) == (before["session"], 2)
    site.server.behaviour.clock_offset_s += 600
    site.forget_output()
    site.done("takedown", market_id(50))
    after = json.loads(site.objects()[head])
    assert after["state"] == before["state"]
    assert after["session"] != before["session"]
