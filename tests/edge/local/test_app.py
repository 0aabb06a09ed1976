"""What `public-markets serve`, run as a process, answers over HTTP, also while builds replace what it serves."""

import gzip
import sqlite3
from pathlib import Path

import pytest

from tests.support.edges.servers import Client, connected
from tests.support.edges.serving import MARKETS, served
from tests.support.sites.builds import build_now, make_config


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


def test_a_router_that_was_built_anew_is_used_at_once(folder: Path) -> None:
    with served(folder) as server, connected(server.port) as client:
        assert client.send("GET", MARKETS).status == 200
        build_now(make_config(folder, base_url="https://example.org/api"))
        assert client.send("GET", MARKETS).status == 404
        assert client.send("GET", f"/api{MARKETS}").status == 200
