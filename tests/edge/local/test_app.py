"""What `public-markets serve`, run as a process, answers over HTTP, also while builds replace what it serves."""

import gzip
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from itertools import cycle, repeat
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract
from generator.api.contract import Variant
from generator.edge import responses
from tests.support.edges.cases import mismatches, on_the_wire
from tests.support.edges.servers import Client, connected
from tests.support.edges.serving import MARKETS, OWN_PAGES, UNLIMITED, ids, in_order, page, served, target, walk
from tests.support.sites.builds import AS_OF, OTHER_BUILDS, Outputs, build_now, make_config

CASES: Final[Mapping[Variant, int]] = {"core": 660, "extended": 820}


def wrong_answers(output: Path, client: Client) -> list[str]:
    """Run the whole table, but for the pages that `serve` alone has."""
    cases = on_the_wire(output)
    assert len(cases) >= CASES[cases[0].variant]
    shared = [case for case in cases if (case.method, case.path) not in OWN_PAGES]
    assert len(cases) - len(shared) == len(OWN_PAGES)
    return mismatches(shared, (client.send(case.method, case.target) for case in shared), output)


@pytest.mark.campaign(short=0)
def test_every_case_of_the_table(demo_output: Path, client: Client) -> None:
    assert wrong_answers(demo_output, client) == []


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("build", OTHER_BUILDS)
def test_every_case_of_other_builds(build: str, outputs: Outputs) -> None:
    output = outputs(*build.split("-"))
    with served(output.parent, *UNLIMITED) as server, connected(server.port) as client:
        assert wrong_answers(output, client) == []


def test_what_is_unchanged_is_not_sent_again(client: Client) -> None:
    first = client.send("GET", MARKETS)
    etag = first.headers["etag"]
    assert etag.startswith('"')
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        for method in ("GET", "HEAD"):
            again = client.send(method, MARKETS, If_None_Match=known)
            assert (again.status, again.body) == (304, b""), known
            kept = ("etag", "cache-control", "vary", *responses.COMMON)
            assert {name: again.headers[name] for name in kept} == {name: first.headers[name] for name in kept}
    for unknown in ('"other"', "garbage", "," * 5000):
        assert client.send("GET", MARKETS, If_None_Match=unknown).body == first.body


def test_objects_are_compressed_for_those_who_ask(client: Client) -> None:
    plain = client.send("GET", MARKETS)
    for wish in ("gzip", "deflate, GZIP;q=0.5", "*", "br, *;q=0.1"):
        packed = client.send("GET", MARKETS, Accept_Encoding=wish)
        assert packed.headers["content-encoding"] == "gzip", wish
        assert gzip.decompress(packed.body) == plain.body
        assert packed.headers["etag"] != plain.headers["etag"]
        assert client.send("GET", MARKETS, Accept_Encoding=wish, If_None_Match=packed.headers["etag"]).status == 304
    for wish in ("identity", "br", "gzip;q=0", "gzip;q=0, *", "gzip;q=nonsense", ";;;,,,"):
        answer = client.send("GET", MARKETS, Accept_Encoding=wish)
        assert (answer.body, "content-encoding" in answer.headers) == (plain.body, False), wish
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", [MARKETS, f"{MARKETS}?limit=x", f"{MARKETS}/snapshot", "/nowhere", "/", "/inspect/"])
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_head_is_get_without_the_body(client: Client, path: str, encoding: str) -> None:
    full, head = (client.send(method, path, Accept_Encoding=encoding) for method in ("GET", "HEAD"))
    assert (head.status, head.body) == (full.status, b"")
    assert {**head.headers, "date": ""} == {**full.headers, "date": ""}
    assert full.headers["content-length"] == str(len(full.body))


def test_browsers_never_guess_the_type_of_a_page(client: Client) -> None:
    found = [client.send("GET", path) for path in ("/", "/inspect/", "/inspect/v1/build.json", "/inspect/api.html")]
    found += [client.send("GET", "/inspect/", Host="rebound.example.com")]
    assert [answer.status for answer in found] == [302, 200, 200, 200, 421]
    assert {answer.headers.get("x-content-type-options") for answer in found} == {"nosniff"}


def test_a_body_is_no_reason_to_hang(client: Client) -> None:
    assert client.send("POST", MARKETS, Content_Length="0").status == 405
    assert client.send("POST", MARKETS, Content_Length="5000", Expect="100-continue").status == 405
    assert client.send("GET", MARKETS, Transfer_Encoding="chunked").status == 200


def test_an_api_below_a_path_is_served_below_that_path(tmp_path: Path, database: sqlite3.Connection) -> None:
    build_now(make_config(tmp_path, base_url="https://example.org/api"))
    with served(tmp_path, "--set", "base_url=https://example.org/api") as server, connected(server.port) as client:
        assert f"/api{MARKETS}" in server.said[0]
        assert client.send("GET", f"/api{MARKETS}").status == 200
        assert client.send("GET", MARKETS).status == 404
        assert f'value="/api{MARKETS}"'.encode() in client.send("GET", "/inspect/").body


# ── while builds replace what it serves ───────────────────────────────────────────────────────────────────────────────


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "markets.db")) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount


REORDER: Final = (
    "UPDATE markets SET trader_count = (trader_count * 7919) % 1009, volume = (volume * 31.0) % 1000.0",
    "UPDATE markets SET question = question || '!' WHERE rowid % 3 = 0",
)


@pytest.mark.campaign(short=0)
def test_a_walk_survives_rebuilds_and_a_new_one_sees_them(folder: Path) -> None:
    database = folder / "markets.db"
    before = in_order(database, "all", "popular")
    with served(folder, *UNLIMITED) as server, connected(server.port) as client:
        first = page(client, status="all", limit=5)
        old = client.send("GET", target(status="all", limit=5))
        for minutes in (1, 2, 3):
            change(folder, *REORDER)
            build_now(make_config(folder), AS_OF + timedelta(minutes=minutes), volumes=True)
        after = in_order(database, "all", "popular")
        assert after != before
        rest = walk(client, cycle([5, 5, 10]), first["nextCursor"], status="all")
        assert [*ids(first), *rest] == before
        assert walk(client, repeat(5), status="all") == after
        new = client.send("GET", target(status="all", limit=5), If_None_Match=old.headers["etag"])
        assert (new.status, new.headers["etag"] != old.headers["etag"]) == (200, True)


@pytest.mark.campaign(short=0)
def test_a_walk_whose_generation_was_purged_has_to_start_again(folder: Path) -> None:
    with served(folder, *UNLIMITED) as server, connected(server.port) as client:
        cursor = page(client, limit=5)["nextCursor"]
        for hours in (1, 8, 9):
            change(folder, *REORDER)
            build_now(make_config(folder), AS_OF + timedelta(hours=hours), volumes=True)
        gone = client.send("GET", target(limit=5, cursor=cursor))
        assert (gone.status, gone.body) == (400, contract.encode(contract.invalid("cursor.gone")))
        assert walk(client, repeat(5)) == in_order(folder / "markets.db", "open", "popular")


def test_a_router_that_was_built_anew_is_used_at_once(folder: Path) -> None:
    with served(folder) as server, connected(server.port) as client:
        assert client.send("GET", MARKETS).status == 200
        build_now(make_config(folder, base_url="https://example.org/api"))
        assert client.send("GET", MARKETS).status == 404
        assert client.send("GET", f"/api{MARKETS}").status == 200
