"""A first publish that did not end has published nothing: no command counts what it put, no guard defends it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from generator import process_identity
from generator.publish import record
from tests.support.sites.publishing import OPEN, PublishedSite, hour, tamper
from tests.support.sites.rows import market_id
from tests.support.stores.s3.behaviour import DENIED, Fault
from tests.support.stores.s3.wire import Request

NAME = "s3://markets/api"
UNENDED = f"{NAME}: the first publish did not end; run `public-markets rebuild`"


@pytest.fixture
def cut_short(empty: PublishedSite) -> PublishedSite:
    """A site whose first publish was killed on this machine when some lists were up."""
    lists = list[str]()

    def deny(request: Request) -> Fault | None:
        if request.operation == "PutObject" and "/lists/open/" in request.key and request.key.endswith("first/2.json"):
            lists.append(request.key)
        return DENIED if len(lists) > 2 or "build.json" in request.key else None

    empty.server.before = deny
    assert empty.run("publish").exit_code == 1
    empty.server.before = None
    assert any("/detail/" in key for key in empty.objects())
    assert "v1/build.json" not in empty.objects()
    die(empty)
    return empty


def die(site: PublishedSite) -> None:
    """Let another process have been at work, which has ended."""
    words = "from generator import process_identity; print(process_identity.identity())"
    dead = subprocess.run([sys.executable, "-c", words], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    root: dict[str, Any] = json.loads(site.stored()[record.KEY])
    assert root["work"]["process"] != dead
    root["work"]["process"] = dead
    site.put(record.KEY, json.dumps(root).encode())


def test_monitor_and_check_say_that_it_did_not_end(cut_short: PublishedSite) -> None:
    assert cut_short.refused(1, "check", "--published") == UNENDED
    lines = [line for line in cut_short.run("check").stdout.splitlines() if NAME in line]
    assert f"warning: {UNENDED}" in lines
    assert not [line for line in lines if "published as of" in line or "is publishing there" in line]
    cut_short.done("publish")
    assert "11 markets are published as of" in cut_short.run("check").stdout
    cut_short.check()


def test_a_publisher_that_is_still_alive_is_at_work(cut_short: PublishedSite) -> None:
    root = json.loads(cut_short.stored()[record.KEY])
    root["work"]["process"] = process_identity.identity()
    cut_short.put(record.KEY, json.dumps(root).encode())
    assert "the first publish has not ended yet: process " in cut_short.refused(1, "check", "--published")
    assert " is publishing there, until " in cut_short.run("check").stdout
    assert "did not end" not in cut_short.run("check").stdout


def test_no_guard_defends_what_it_put(cut_short: PublishedSite) -> None:
    for number in OPEN[1:]:
        cut_short.edit(number, is_listed=0)
    cut_short.done("rebuild", "--accept=demo", "--as-of", "2024-01-30T00:00:00Z", output="anew")
    cut_short.check("anew")
    assert cut_short.traces(OPEN[1], output=False) == []


def test_after_a_takedown_nothing_is_published_yet_either(cut_short: PublishedSite) -> None:
    cut_short.done("takedown", market_id(1))
    assert cut_short.traces(1) == []
    assert cut_short.refused(1, "check", "--published") == UNENDED
    cut_short.done("publish")
    cut_short.check()
    assert cut_short.traces(1) == []
    assert cut_short.traces(2)


@pytest.mark.parametrize("with_current", [False, True])
def test_a_first_build_that_was_killed_is_no_build(published_site: PublishedSite, *, with_current: bool) -> None:
    """Nor what a takedown left of it, which is complete, and has no list."""
    place = Path("output/manifest.json")
    built = {**json.loads(place.read_bytes()), "complete": with_current, "current": {}, "retired": []}
    tamper(place, json.dumps(built).encode())
    no_target = {"publish__target": "", "publish__endpoint_url": ""}
    assert published_site.refused(1, "check", "--published", **no_target) == (
        "output/: the first build did not end; run `public-markets build`"
    )
    assert "the last build there was killed" in published_site.refused(3, "publish")
    for number in OPEN[1:]:
        published_site.edit(number, is_listed=0)
    published_site.done("build", "--as-of", hour(1))
    assert [trace for trace in published_site.traces(2) if trace.startswith("output")] == []
