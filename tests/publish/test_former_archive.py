"""A former program's archive of days: whoever brings the site over deletes it, and a takedown right after details."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.publish import record
from generator.tree import manifest
from generator.tree.generations import object_keys
from tests.support.deaths import Kill, dying_before
from tests.support.sites.builds import files
from tests.support.sites.publishing import FIRST, PREFIX, PublishedSite, hour, tamper
from tests.support.sites.rows import market_id
from tests.support.stores.records import named_states, state_keys, whole
from tests.support.stores.s3.wire import Request

MANIFEST: Final = Path("output/manifest.json")
DETAIL: Final = keys.detail(market_id(1))
TEXT: Final = f'{{"id":"{market_id(1)}","question":"Question 1?"}}\n'.encode()
FILE: Final = gzip.compress(TEXT)
#: A file of dumps that only days name, two generations, of which one is retired, the index, and a day.
NAME: Final = f"markets/{sha256(FILE).hexdigest()[:32]}.ndjson.gz"
CURRENT, RETIRED = (f"d{letter * 19}" for letter in "0a")
MUTABLE: Final = {f"{keys.ARCHIVE_PREFIX}index.json": TEXT, f"{keys.ARCHIVE_PREFIX}2024-01-30.json": TEXT}
ARCHIVE: Final = MUTABLE | {f"{keys.ARCHIVE_PREFIX}{name}/index.json": TEXT for name in (CURRENT, RETIRED)}
LEFT: Final = ARCHIVE | {keys.chunk(keys.DUMPS, NAME): FILE}


def as_before(state: dict[str, Any]) -> None:
    """Make a manifest one of a former program."""
    entry = {"count": 1, "bytes": len(FILE) + len(TEXT), "chunks": [NAME]}
    state["format"] = 1
    state["settings"]["archive.days"] = 5
    state["current"][keys.ARCHIVE] = {"generation": CURRENT, **entry}
    state["retired"].append({"list": keys.ARCHIVE, "generation": RETIRED, "retiredAt": FIRST, **entry})
    state["objects"] |= {key: manifest.digest(key, body) for key, body in MUTABLE.items()}


def leave(site: PublishedSite) -> None:
    """Let a former program have made store and folder, with an archive."""
    root = json.loads(site.stored()[record.KEY])
    root["format"] = 1
    as_before(root["built"])
    entries = [{**root["built"]["current"][keys.ARCHIVE], "list": keys.ARCHIVE, "retiredAt": FIRST}]
    root["due"] = entries
    root["abandoned"] = [
        {"until": FIRST, "touched": [*MUTABLE], "generations": entries, "due": entries, "immutable": [*LEFT]}
    ]
    for key, body in LEFT.items():
        site.put(key, body)
        Path("output", key).parent.mkdir(parents=True, exist_ok=True)
        Path("output", key).write_bytes(body)
    root["etags"] |= {key: site.server.bucket.get(PREFIX + key).etag for key in MUTABLE}
    site.put(record.KEY, json.dumps(root).encode())
    state = json.loads(MANIFEST.read_bytes())
    as_before(state)
    tamper(MANIFEST, json.dumps(state).encode())


def left_in(objects: dict[str, bytes]) -> set[str]:
    return {key for key in objects if key in LEFT or key.startswith(keys.ARCHIVE_PREFIX)}


def check(site: PublishedSite) -> None:
    """The store holds exactly the build and the retired generations."""
    found = whole(site.stored())
    assert found
    generations = found.built.generations().items()
    wanted = {key for (name, _), entry in generations for key in object_keys(name, entry)}
    assert site.objects().keys() == found.built.objects.keys() | wanted
    assert state_keys(site.stored()) == named_states(site.stored())
    assert (found.work, found.due, found.built.may_have_archive) == (None, (), False)


@pytest.fixture
def site(published_site: PublishedSite) -> PublishedSite:
    """A site with what a former program left."""
    leave(published_site)
    return published_site


# ── a publish ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("option", [(), ("--verify",)])
def test_the_first_rebuild_deletes_it_in_folder_and_store(site: PublishedSite, option: tuple[str, ...]) -> None:
    Path("purge.sh").write_text("touch purged")
    site.done("rebuild", "--as-of", hour(2), *option, publish__purge_command="sh purge.sh")
    assert left_in(site.objects()) == left_in(files(Path("output"))) == set()
    assert Path("purged").exists(), "a CDN may have copies"
    check(site)
    assert keys.ARCHIVE.encode() not in site.stored()[record.KEY]
    requests = site.requests("publish")
    assert len(requests) <= 5
    assert not any(request.startswith("List") for request in requests), "nobody looks for it again"


def test_a_build_alone_deletes_it_in_the_folder(site: PublishedSite) -> None:
    site.done("build", "--as-of", hour(2))
    assert left_in(files(Path("output"))) == set()
    assert left_in(site.objects()) == LEFT.keys()
    site.done("publish")
    assert left_in(site.objects()) == set()
    check(site)


def test_a_dry_run_names_what_would_be_deleted(site: PublishedSite) -> None:
    told = site.done("rebuild", "--dry-run", "--as-of", hour(2)).stdout
    assert {*re.findall(r"delete (v1/dumps/\S+):", told)} >= LEFT.keys()
    assert left_in(site.objects()) == left_in(files(Path("output"))) == LEFT.keys()


def test_a_publish_that_is_killed_leaves_it_to_the_next(site: PublishedSite) -> None:
    with dying_before(site.server, lambda request: request.operation == "DeleteObjects"):
        assert site.run("rebuild", "--as-of", hour(2)).exit_code == 1
    assert left_in(site.objects()) == LEFT.keys()
    site.server.behaviour.clock_offset_s += 600
    site.done("publish")
    assert left_in(site.objects()) == set()
    check(site)


# ── a takedown ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def at_first_put(site: PublishedSite) -> Iterator[list[dict[str, bytes]]]:
    """What readers find when the first object is put."""
    found: list[dict[str, bytes]] = []

    def look(request: Request) -> None:
        if is_first_put(request) and not found:
            found.append(site.objects())

    site.server.before = look
    yield found
    site.server.before = None
    assert found


def is_first_put(request: Request) -> bool:
    return request.operation == "PutObject" and request.key.startswith(f"{PREFIX}v1/")


@pytest.mark.parametrize("has_output", [True, False])
def test_a_takedown_deletes_it_right_after_the_details(site: PublishedSite, *, has_output: bool) -> None:
    if not has_output:
        site.forget_output()
    with at_first_put(site) as found:
        site.done("takedown", market_id(1))
    assert found[0].keys().isdisjoint({DETAIL, *ARCHIVE})
    assert site.traces(1, output=has_output) == []
    assert left_in(site.objects()) == set()
    check(site)


def is_deletion_of_archive(request: Request) -> bool:
    return request.operation == "DeleteObjects" and keys.ARCHIVE_PREFIX.encode() in request.body


def is_deletion_of_file(request: Request) -> bool:
    return request.operation == "DeleteObjects" and NAME.encode() in request.body


@pytest.mark.campaign(short=4)
@pytest.mark.parametrize("is_next", [is_deletion_of_archive, is_first_put, is_deletion_of_file])
@pytest.mark.parametrize("command", [("takedown", market_id(1)), ("rebuild", "--as-of", hour(2))], ids=lambda it: it[0])
def test_after_a_takedown_that_was_killed_the_next_run_deletes_it(
    site: PublishedSite, is_next: Callable[[Request], bool], command: tuple[str, ...]
) -> None:
    """The next run is on a machine that has no folder."""
    with dying_before(site.server, is_next):
        assert site.run("takedown", market_id(1)).exit_code == 1
    assert DETAIL not in site.objects()
    site.server.behaviour.clock_offset_s += 600
    site.forget_output()
    site.done(*command)
    assert site.traces(1, output=False) == []
    assert left_in(site.objects()) == set()


def test_a_takedown_in_a_folder_deletes_it_before_it_makes_anything(site: PublishedSite) -> None:
    site.target = ""
    with Kill(14).over(site.server):
        site.run("takedown", market_id(1))
    assert ARCHIVE.keys().isdisjoint(files(Path("output")))
    site.done("takedown", market_id(1))
    assert left_in(files(Path("output"))) == set()
    assert [place for place in site.traces(1) if place.startswith("output ")] == []


@pytest.mark.parametrize("is_damaged", [True, False])
def test_without_a_record_a_takedown_deletes_it_and_names_what_finishes(
    site: PublishedSite, *, is_damaged: bool
) -> None:
    if is_damaged:
        site.put(record.KEY, b"{")
        MANIFEST.write_bytes(MANIFEST.read_bytes().replace(b'"layout"', b'"outlay"'))
    else:
        site.remove(record.KEY)
    result = site.run("takedown", market_id(1))
    assert result.exit_code == 1
    assert "`public-markets rebuild --verify`" in result.stderr
    assert site.objects().keys().isdisjoint({DETAIL, *ARCHIVE})
    assert files(Path("output")).keys().isdisjoint({DETAIL, *ARCHIVE})
    site.done("rebuild", "--verify", "--as-of", hour(2))
    assert site.traces(1) == []
    assert left_in(site.objects()) == left_in(files(Path("output"))) == set()
