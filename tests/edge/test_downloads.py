"""Files of downloads, and the documents beside them, on every edge that can serve them by itself."""

import gzip
import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection
from typing import Final

import pytest

from generator.api import contract, keys
from generator.edge import responses
from tests.support.campaigns import full_tier
from tests.support.edges.edge_sites import EDGES, EdgeSite, edge_site
from tests.support.edges.in_process import render
from tests.support.edges.servers import Answer, connected, folder_for_anybody, free_port, nginx
from tests.support.readers import lists
from tests.support.sites.builds import NOW, make_config
from tests.support.waiting import PATIENCE_S

BYTES: Final = random.Random(1).randbytes(100_000)  # noqa: S311 - no secret
SIZE: Final = len(BYTES)


def named(folder: str, extension: str, body: bytes = BYTES) -> str:
    return f"{folder}/{hashlib.sha256(body).hexdigest()[:32]}{extension}"


NDJSON: Final = named("v1/dumps/markets", ".ndjson.gz")
FILES: Final = (
    NDJSON,
    named("v1/dumps/markets", ".parquet"),
    named("v1/dumps/history/period=2026-10", ".parquet"),
    named("v1/dumps/candles/day/period=2026", ".parquet"),
    named("v1/changes", ".ndjson.gz"),
)
#: The key of each document by its path.
DOCUMENTS: Final = {
    "/v1/": keys.SITE_INDEX,
    **{
        f"/{key}": key
        for key in (
            *(keys.LLMS, keys.CHANGELOG, keys.head(keys.DUMPS), keys.head(keys.CHANGES)),
            *(keys.feed(name, kind) for name in ("new", "resolved") for kind in ("atom", "json")),
        )
    },
}
CONTROL: Final = keys.headers(NDJSON)["Cache-Control"]
GONE: Final = named("v1/dumps/markets", ".ndjson.gz", b"")


@pytest.fixture(scope="module", params=full_tier(EDGES, short=["nginx", "serve", "worker"]))
def edge(request: pytest.FixtureRequest) -> Iterator[EdgeSite]:
    with edge_site(request.param, "chunks", dumps__parquet="true") as running:
        for key in FILES:
            lists.write(running.output / key, BYTES)
        for key in DOCUMENTS.values():
            lists.write(running.output / key, contract.encode({"key": key, "text": "é" * 1000}))
        running.upload([*FILES, *DOCUMENTS.values()])
        yield running


def ask(edge: EdgeSite, key: str, method: str = "GET", **headers: str) -> Answer:
    answer = edge.client.send(method, f"/{key}", **headers)
    assert responses.COMMON.items() <= answer.headers.items()
    return answer


@pytest.mark.parametrize("path", DOCUMENTS)
def test_documents_have_their_types_and_the_headers_of_others(edge: EdgeSite, path: str) -> None:
    key = DOCUMENTS[path]
    first = ask(edge, path[1:])
    assert (first.status, first.body) == (200, (edge.output / key).read_bytes())
    assert {name: first.headers[name.lower()] for name in keys.headers(key)} == keys.headers(key)
    assert edge.edge == "bucket" or first.headers["x-as-of"] == NOW
    etag = first.headers["etag"].removeprefix("W/")
    for known in [first.headers["etag"]] if edge.edge == "bucket" else [etag, f"W/{etag}", f'"other",W/{etag}', "*"]:
        again = ask(edge, path[1:], If_None_Match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"]), known
    assert ask(edge, path[1:], If_None_Match='"other"').status == 200
    if edge.edge != "worker":  # Cloudflare's network does it
        packed = ask(edge, path[1:], Accept_Encoding="gzip")
        assert gzip.decompress(packed.body) == first.body
        assert packed.headers["content-encoding"] == "gzip"
    head = ask(edge, path[1:], "HEAD")
    assert (head.status, head.body, head.headers["content-type"]) == (200, b"", first.headers["content-type"])


@pytest.mark.parametrize("key", FILES)
def test_a_file_is_sent_as_it_is(edge: EdgeSite, key: str) -> None:
    whole = ask(edge, key, Accept_Encoding="gzip, br")
    assert (whole.status, whole.body) == (200, BYTES)
    stored = keys.headers(key)
    assert whole.headers["content-type"] == stored["Content-Type"]
    assert whole.headers["cache-control"] == CONTROL
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["content-length"] == str(SIZE)
    assert not {"content-encoding", "vary", "x-as-of", "transfer-encoding"} & whole.headers.keys()
    assert whole.headers["etag"].startswith('"'), "a strong one, or no range could be asked for by it"
    head = ask(edge, key, "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert [ask(edge, key, method, Content_Length="0").status for method in ("POST", "OPTIONS")] == [405, 204]
    shown = ("content-type", "cache-control", "accept-ranges", "content-length", "etag", "last-modified")
    assert {name: head.headers[name] for name in shown} == {name: whole.headers[name] for name in shown}


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=0-0", 0, 1),
        ("bytes=99990-", 99_990, SIZE),
        ("bytes=-5", SIZE - 5, SIZE),
        ("bytes=-999999", 0, SIZE),
        ("bytes=99999-999999", SIZE - 1, SIZE),
    ],
)
def test_a_range_is_a_part_of_the_file(edge: EdgeSite, asked: str, start: int, end: int) -> None:
    part = ask(edge, NDJSON, Range=asked, Accept_Encoding="gzip")
    assert (part.status, part.body) == (206, BYTES[start:end])
    assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{SIZE}"
    assert part.headers["content-length"] == str(end - start)
    whole = ask(edge, NDJSON, "HEAD").headers
    for name in ("etag", "last-modified", "cache-control", "content-type"):
        assert part.headers[name] == whole[name]
    for several in ("bytes=0-1,5-6", "lines=0-9"):
        assert ask(edge, NDJSON, Range=several).status == 200


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=999999-1000000"])
def test_a_range_outside_the_file_is_a_416_in_json(edge: EdgeSite, asked: str) -> None:
    answer = ask(edge, NDJSON, Range=asked)
    assert (answer.status, json.loads(answer.body)["error"]) == (416, "invalid request")
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == (keys.CONTENT_TYPE, "no-store")
    if edge.edge != "bucket":  # what the bucket says about its size is not passed on
        assert answer.headers["content-range"] == f"bytes */{SIZE}"
    with closing(HTTPConnection("127.0.0.1", edge.client.port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", f"/{NDJSON}", headers={"Range": asked})
        names = [name.lower() for name, _ in connection.getresponse().getheaders()]
    assert len(names) == len({*names}), f"browsers refuse headers that come twice: {names}"


def test_a_reader_who_has_the_file_gets_304(edge: EdgeSite) -> None:
    etag = ask(edge, NDJSON, "HEAD").headers["etag"]
    for headers in ({}, {"Range": "bytes=0-9"}):
        for known in [etag] if edge.edge == "bucket" else [etag, f"W/{etag}", f'"other", {etag}', "*"]:
            again = ask(edge, NDJSON, If_None_Match=known, **headers)
            assert (again.status, again.body) == (304, b"")
            assert (again.headers["etag"], again.headers["cache-control"]) == (etag, CONTROL)
    assert ask(edge, NDJSON, If_None_Match='"other"').status == 200


def test_a_range_of_another_file_is_the_whole_of_this_one(edge: EdgeSite) -> None:
    head = ask(edge, NDJSON, "HEAD").headers
    dates = {} if edge.edge == "bucket" else {head["last-modified"]: 206}
    for known, status in {head["etag"]: 206, '"other"': 200, **dates}.items():
        answer = ask(edge, NDJSON, Range="bytes=0-9", If_Range=known)
        assert (answer.status, answer.body) == (status, BYTES[:10] if status == 206 else BYTES)


@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=0-9"}, {"If_None_Match": "*"}, {"If_Range": '"x"'}])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_file_that_is_gone_is_not_found(edge: EdgeSite, method: str, headers: Mapping[str, str]) -> None:
    for key in (GONE, GONE.replace("markets", "history/period=2026-99").replace(".ndjson.gz", ".parquet")):
        answer = ask(edge, key, method, **headers)
        assert (answer.status, answer.headers["content-type"]) == (404, keys.CONTENT_TYPE)
        assert answer.body == (b"" if method == "HEAD" else contract.encode(contract.FIXED_ERRORS[404]))
        assert answer.headers["cache-control"] == "public, max-age=10"


def test_what_is_not_named_like_a_file_is_not_found(edge: EdgeSite) -> None:
    digest = NDJSON.rpartition("/")[2]
    for path in (
        *(f"v1/dumps//markets/{digest}", f"v1/dumps/x/../markets/{digest}", f"v1/dumps/./markets/{digest}"),
        *(
            f"v1/%64umps/markets/{digest}",
            f"v1/dumps/markets/{digest.upper()}",
            f"x/{NDJSON}",
            f"{NDJSON}/",
            f"/{NDJSON}",
        ),
    ):
        if edge.edge == "worker" and "/." in path:
            continue  # the platform resolves them first
        assert ask(edge, path).status == 404, path
    assert ask(edge, f"{NDJSON}?limit=0&x=%zz").body == BYTES, "a query makes no difference"


# ── broken variants ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("base", ["/a/b", "/it's/%7B%7D/a:b&c$d"])
def test_nginx_serves_files_below_a_path(base: str) -> None:
    with folder_for_anybody() as folder:
        port = free_port()
        config = make_config(folder, base_url=f"http://127.0.0.1:{port}{base}", dumps__parquet="true")
        render(config)
        lists.write(config.output / keys.BUILD, contract.encode({"asOf": NOW}))
        for key in (*FILES, *DOCUMENTS.values()):
            lists.write(config.output / key, BYTES)
        with nginx(config.output, port), connected(port) as client:
            for key in FILES:
                part = client.send("GET", f"{base}/{key}?x=1", Range="bytes=0-3")
                assert (part.status, part.headers["content-type"]) == (206, keys.content_type(key))
                assert client.send("GET", f"/{key}").status == 404
            for path, key in DOCUMENTS.items():
                whole = client.send("GET", f"{base}{path}")
                assert (whole.status, whole.headers["content-type"]) == (200, keys.content_type(key))
