"""A site that another version of this program made: what a takedown does there, and what brings it over."""

import json
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.publish import record
from generator.tree import files, state
from tests.support.campaigns import every_pair
from tests.support.sites.publishing import PublishedSite, hour, tamper
from tests.support.sites.rows import market_id
from tests.support.stores.records import split

MANIFEST: Final = Path("output/manifest.json")
#: What brings a site over.
REMEDY: Final = "`public-markets rebuild --verify`"
#: By what differs in a manifest: how it is changed, and what is said of it.
OTHERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "newer": ({"version": "99.0.0", "shiny": 1}, "(99.0.0, newer than this, "),
    "older": ({"version": "0.0.9", "variant": None}, "(0.0.9, older than this, "),
    "unreleased": ({"version": "snapshot", "current": 1}, "(snapshot, this is "),
    "same number": ({"shiny": 1}, "(unknown: shiny)"),
}
pytestmark = pytest.mark.usefixtures("one_processor")


def change(site: PublishedSite, fields: dict[str, Any], places: str) -> None:
    """Let another version have written the record, the folder's manifest, or both."""
    if "store" in places:
        root = json.loads(site.stored()[record.KEY])
        site.put(record.KEY, json.dumps({**root, "built": {**root["built"], **fields}}).encode())
    if "folder" in places:
        tamper(MANIFEST, json.dumps({**json.loads(MANIFEST.read_bytes()), **fields}).encode())


def details_of(site: PublishedSite, number: int) -> list[str]:
    return [trace for trace in site.traces(number) if "/detail/" in trace]


@pytest.fixture
def site(published_site: PublishedSite, kind: str) -> Iterator[PublishedSite]:
    """A published site with retired generations and a step of its change feed, its record whole or split."""
    with split() if kind == "split" else nullcontext():
        published_site.edit(2, volume=70.0)
        published_site.done("rebuild", "--as-of", hour(1))
        yield published_site


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize(
    ("other", "places", "kind"), every_pair(OTHERS, ["store and folder", "store", "folder"], ["whole", "split"])
)
def test_a_takedown_says_how_far_it_got_and_names_the_command_that_finishes_it(
    site: PublishedSite, other: str, places: str
) -> None:
    fields, words = OTHERS[other]
    change(site, fields, places)
    result = site.run("takedown", market_id(1))
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if "written by another version" in line]
    assert len(told) == places.count("store") + places.count("folder")
    for line in told:
        assert words in line
        assert "the details of blocked markets were deleted, but lists may still show them" in line
        assert REMEDY in line
    assert details_of(site, 1) == []
    assert not Path("output/index.html").exists()
    site.done("rebuild", "--verify", "--as-of", hour(2))
    assert site.traces(1) == []
    assert site.traces(2)
    assert " 0 objects uploaded" in site.done("publish", "--verify").stdout


@pytest.mark.parametrize("command", [("publish",), ("check", "--published"), ("rebuild",)])
def test_commands_that_read_the_record_name_what_brings_it_over(
    published_site: PublishedSite, command: tuple[str, ...]
) -> None:
    change(published_site, OTHERS["older"][0], "store and folder")
    message = published_site.refused(1, *command)
    assert "written by another version (0.0.9, older than this, " in message
    assert REMEDY in message


# Formats


def test_a_record_of_an_unknown_format_is_replaced_by_nobody_but_details_go(published_site: PublishedSite) -> None:
    root = {**json.loads(published_site.stored()[record.KEY]), "format": 3}
    published_site.put(record.KEY, json.dumps(root).encode())
    result = published_site.run("takedown", market_id(1))
    assert result.exit_code == 1
    assert "upgrade this program; the details of blocked markets were deleted, but lists may still" in result.stderr
    assert [trace for trace in details_of(published_site, 1) if trace.startswith("store")] == []
    assert "upgrade this program" in published_site.refused(1, "rebuild", "--verify")
    assert json.loads(published_site.stored()[record.KEY]) == root


@pytest.mark.parametrize("number", [0, 3])
def test_a_folder_of_an_unknown_format_is_made_anew(published_site: PublishedSite, number: int) -> None:
    change(published_site, {"format": number}, "folder")
    result = published_site.run("takedown", market_id(1))
    assert f"format {number}, this program knows 2" in result.stderr
    assert ("upgrade this program" in result.stderr) == (number == 3)
    assert "make the folder anew with `public-markets build --full`" in result.stderr
    published_site.done("build", "--full", "--as-of", hour(2))
    assert published_site.traces(1) == []


# States


def rewritten_state() -> None:
    """Another shape of a state in the folder, whose name is right."""
    root = json.loads(MANIFEST.read_bytes())
    body = zlib.compress(b'{"rows":[]}')
    root["state"] = state.digest(body)
    Path("output", files.STATES, root["state"]).write_bytes(body)
    tamper(MANIFEST, json.dumps(root).encode())


def test_a_state_of_another_shape_is_another_version_s(published_site: PublishedSite) -> None:
    with split():
        published_site.edit(2, volume=70.0)
        published_site.done("rebuild", "--as-of", hour(1))
        rewritten_state()
        result = published_site.run("takedown", market_id(1))
        assert (result.exit_code, "bug" in result.stderr) == (1, False)
        assert "state: written by another version" in result.stderr
        published_site.done("rebuild", "--verify", "--as-of", hour(2))
        assert published_site.traces(1) == []


def test_a_folder_of_a_former_program_with_shards_is_made_anew(published_site: PublishedSite) -> None:
    root = {**json.loads(MANIFEST.read_bytes()), "rowShards": {"names": ["a" * 24]}}
    tamper(MANIFEST, json.dumps(root).encode())
    shard = Path("output", files.FORMER_STATES, "a" * 24)
    shard.parent.mkdir()
    shard.touch()
    assert "written by another version (unknown: rowShards)" in published_site.refused(1, "rebuild", "--as-of", hour(1))
    published_site.done("rebuild", "--verify", "--as-of", hour(1))
    published_site.check()
    assert not shard.exists()


# An archive of days


@pytest.mark.parametrize("command", [("rebuild", "--as-of", hour(1)), ("takedown", market_id(1))])
def test_the_archive_of_a_former_program_goes_with_the_next_run(
    published_site: PublishedSite, command: tuple[str, ...]
) -> None:
    root = json.loads(published_site.stored()[record.KEY])
    former = {**root, "format": 1, "built": {**root["built"], "format": 1}}
    published_site.put(record.KEY, json.dumps(former).encode())
    left = {f"{keys.ARCHIVE_PREFIX}2024-01-30.json", keys.chunk(keys.DUMPS, "markets/f.ndjson.gz")}
    for key in left:
        published_site.put(key, b"Question 1?")
    published_site.done(*command)
    assert not left & published_site.objects().keys()
    assert not any(request.startswith("List") for request in published_site.requests("publish")), "nobody looks again"
