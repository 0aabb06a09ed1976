"""`public-markets serve`, run as a process and asked over HTTP."""

import gzip
import json
import random
import shutil
import socket
import sqlite3
import struct
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from itertools import cycle, repeat
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api import contract, keys
from generator.api.contract import SORTS, STATUS_FILTERS, Variant
from generator.demo.database import seed
from generator.edge import deployment, responses
from generator.edge.local.rate_limit import RateLimit
from generator.tree import files
from tests.support.builds import AS_OF, OTHER_BUILDS, VARIANTS, Outputs, build_now, make_config, run
from tests.support.edges import CHANGED_RULES_BY_VARIANT, change_rule, http_mismatch, on_the_wire
from tests.support.servers import Client, connected
from tests.support.serving import MARKETS, UNLIMITED, Served, ids, in_order, page, served, target, walk

CASES: Final[Mapping[Variant, int]] = {"core": 660, "extended": 820}
#: Here `serve` has its own pages where an edge has nothing.
OWN_PAGES: Final = {("GET", "/"), ("GET", "/inspect/")}


@pytest.fixture(scope="module")
def server(demo_output: Path) -> Iterator[Served]:
    with served(demo_output.parent, *UNLIMITED) as server:
        yield server


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with connected(server.port) as client:
        yield client


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    seed(folder / "markets.db", as_of=AS_OF, markets=60)
    build_now(make_config(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path, built: Path) -> Path:
    """A small build of its own, to be changed."""
    return Path(shutil.copytree(built, tmp_path / "own"))


def exchange(port: int, sent: bytes) -> bytes:
    """Send the bytes as they stand and return all that comes back."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while chunk := connection.recv(65536):
            received += chunk
    return received


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "markets.db")) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount


# ── what it answers ───────────────────────────────────────────────────────────────────────────────────────────────


def mismatches(output: Path, client: Client) -> list[str]:
    """Run the whole table, but for the pages that `serve` alone has."""
    cases = on_the_wire(output)
    assert len(cases) >= CASES[cases[0].variant]
    sent = ((case, client.send(case.method, case.target)) for case in cases)
    shared = [(case, got) for case, got in sent if (case.method, case.path) not in OWN_PAGES]
    assert len(cases) - len(shared) == len(OWN_PAGES)
    found = (http_mismatch(case, got.status, got.headers, got.body, output) for case, got in shared)
    return [problem for problem in found if problem]


def test_every_case_of_the_table(demo_output: Path, client: Client) -> None:
    assert mismatches(demo_output, client) == []


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("build", OTHER_BUILDS)
def test_every_case_of_other_builds(build: str, outputs: Outputs) -> None:
    output = outputs(*build.split("-"))
    with served(output.parent, *UNLIMITED) as server, connected(server.port) as client:
        assert mismatches(output, client) == []


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("variant", "rule", "changed"), CHANGED_RULES_BY_VARIANT)
def test_a_changed_rule_is_noticed(
    variant: Variant, rule: str, changed: str, demo_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "markets.db").write_bytes((demo_folder / "markets.db").read_bytes())
    build_now(make_config(tmp_path, **VARIANTS[variant]))
    change_rule(tmp_path / "output" / deployment.ROUTER, rule, changed)
    with served(tmp_path, *UNLIMITED) as server, connected(server.port) as client:
        assert 0 < len(mismatches(tmp_path / "output", client)) < CASES[variant]


def test_every_list_is_walked_in_the_databases_order(demo_folder: Path, client: Client) -> None:
    lengths = []
    for status in STATUS_FILTERS:
        for sort in SORTS:
            expected = in_order(demo_folder / "markets.db", status, sort)
            for limit in (7, 20, 33, 100):
                assert walk(client, repeat(limit), status=status, sort=sort) == expected, (status, sort, limit)
            lengths.append(len(expected))
    assert len(lengths) == 30
    assert max(lengths) > 120
    assert walk(client, repeat(1), sort="new") == in_order(demo_folder / "markets.db", "open", "new")


def test_a_reader_may_change_the_limit_at_every_request(demo_folder: Path, client: Client) -> None:
    expected = in_order(demo_folder / "markets.db", "all", "volume")
    dice = random.Random(1)  # noqa: S311 - no secret
    for limits in (cycle([20, 100]), cycle([100, 7, 1, 33]), iter(lambda: dice.randint(1, 100), 0)):
        assert walk(client, limits, status="all", sort="volume") == expected


def test_what_is_unchanged_is_not_sent_again(client: Client) -> None:
    first = client.send("GET", MARKETS)
    etag = first.headers["etag"]
    assert etag.startswith('"')
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        for method in ("GET", "HEAD"):
            again = client.send(method, MARKETS, If_None_Match=known)
            assert (again.status, again.body) == (304, b""), known
            kept = ("etag", "cache-control", "vary", *responses.CORS)
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


def test_any_page_may_read_every_answer_of_the_api(client: Client, server: Served) -> None:
    etag = client.send("GET", MARKETS).headers["etag"]
    found = [
        client.send("GET", MARKETS),
        client.send("GET", MARKETS, If_None_Match=etag),
        client.send("GET", f"{MARKETS}?limit=0"),
        client.send("GET", "/nowhere"),
        client.send("DELETE", MARKETS),
        client.send("OPTIONS", MARKETS, Origin="https://example.org", Access_Control_Request_Method="GET"),
        client.send("GET", "/ x"),
    ]
    assert [answer.status for answer in found] == [200, 304, 400, 404, 405, 204, 400]
    for answer in found:
        assert responses.CORS.items() <= answer.headers.items(), answer


def test_a_body_is_no_reason_to_hang(client: Client) -> None:
    assert client.send("POST", MARKETS, Content_Length="0").status == 405
    assert client.send("POST", MARKETS, Content_Length="5000", Expect="100-continue").status == 405
    assert client.send("GET", MARKETS, Transfer_Encoding="chunked").status == 200


def test_an_api_below_a_path_is_served_below_that_path(folder: Path) -> None:
    build_now(make_config(folder, base_url="https://example.org/api"))
    with served(folder, "--set", "base_url=https://example.org/api") as server, connected(server.port) as client:
        assert f"/api{MARKETS}" in server.said[0]
        assert client.send("GET", f"/api{MARKETS}").status == 200
        assert client.send("GET", MARKETS).status == 404
        assert f'value="/api{MARKETS}"'.encode() in client.send("GET", "/inspect/").body


# ── only what is published ────────────────────────────────────────────────────────────────────────────────────────

ESCAPES: Final = (
    *("/../manifest.json", "/v1/../manifest.json", "/v1/public/markets/../../../manifest.json", "/manifest.json"),
    *(
        "/%2e%2e/manifest.json",
        "/v1/%2e%2e%2fmanifest.json",
        "/v1/%252e%252e/manifest.json",
        "/v1/..%c0%afmanifest.json",
    ),
    *(
        "/v1\\..\\manifest.json",
        "/v1/..%5cmanifest.json",
        "/v1/..;/manifest.json",
        "//manifest.json",
        "/./manifest.json",
    ),
    *("/v1/build.json/../../manifest.json", "/v1/build.json%00.html", "/v1/public/markets/detail/../../../../manifest"),
    *(
        "http://127.0.0.1/../manifest.json",
        "http:///manifest.json",
        "http://x/v1/../manifest.json",
        "file:///etc/passwd",
    ),
    *(
        "HTTPS://user@x:1/manifest.json",
        "http://[::1/manifest.json",
        "manifest.json",
        "../manifest.json",
        "*",
        "\\",
        "?",
    ),
    *(
        "/edge/router.js",
        "/report.json",
        "/.lock",
        "/inspect/report.json",
        "/inspect/../manifest.json",
        "/inspect/%2e%2e/",
    ),
    *("/index.html", "/etc/passwd", "/../../../../../../etc/passwd", f"/{'../' * 50}etc/passwd", "/v1", "/v1/public"),
    *(
        "/v1/build.json\x00",
        "/v1/\x00/../manifest.json",
        "/v1/errors/404.json",
        f"{MARKETS}/lists/open/popular/first/1.json",
    ),
)


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_leads_to_what_is_not_published(server: Served, path: str) -> None:
    received = exchange(server.port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode("latin-1"))
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] in (b"400", b"404"), received
    assert contract.ErrorResponse.model_validate_json(body).error in ("invalid request", "not found")


def test_no_link_leads_out_of_what_is_published(folder: Path) -> None:
    (folder / "secret.json").write_text("SECRET")
    detail = next(folder.glob("output/v1/public/markets/detail/*/*.json"))
    detail.unlink()
    detail.symlink_to(folder / "secret.json")
    snapshot = folder / "output" / keys.SNAPSHOT
    snapshot.unlink()
    snapshot.symlink_to(snapshot)
    with served(folder) as server, connected(server.port) as client:
        assert client.send("GET", f"{MARKETS}/{detail.stem}").status == 404
        broken = client.send("GET", f"{MARKETS}/snapshot")
        assert broken.status == 500
        assert contract.ErrorResponse.model_validate_json(broken.body).error == "internal error"
        assert responses.CORS.items() <= broken.headers.items()
        assert client.send("GET", MARKETS).status == 200


def test_the_way_in_shows_the_first_calls_until_there_is_an_inspection_page(folder: Path) -> None:
    (folder / "output" / "index.html").unlink()
    with served(folder) as server, connected(server.port) as client:
        front = client.send("GET", "/")
        assert (front.status, front.headers["location"]) == (302, "/inspect/")
        page = client.send("GET", "/inspect/")
        for call in (MARKETS, f"{MARKETS}/snapshot", f"/{keys.OPENAPI}", f"/{keys.BUILD}"):
            assert f'href="{call}"'.encode() in page.body
            assert client.send("GET", call).status == 200
        (folder / "output" / "index.html").write_text("<!doctype html>inspected")
        assert client.send("GET", "/inspect/").body == b"<!doctype html>inspected"
        assert "access-control-allow-origin" not in client.send("GET", "/inspect/").headers


def test_what_the_pages_link_to_is_below_them_as_it_is_on_disk(server: Served, client: Client) -> None:
    first = keys.first_page("open/new", 5)
    for name, content_type in (
        ("api.html", "text/html; charset=utf-8"),
        (files.RENDERER, "text/javascript; charset=utf-8"),
        (f"{files.RENDERER}.LICENSE.txt", "text/plain; charset=utf-8"),
        (first, keys.CONTENT_TYPE),
        (keys.OPENAPI, keys.CONTENT_TYPE),
    ):
        answer = client.send("GET", f"/inspect/{name}")
        assert (answer.status, answer.headers["content-type"]) == (200, content_type)
        assert answer.body
    assert client.send("GET", f"/inspect/{first}").body == client.send("GET", f"{MARKETS}?sort=new&limit=5").body
    assert client.send("HEAD", "/inspect/api.html").body == b""
    assert client.send("POST", "/inspect/").status == 405


@pytest.mark.parametrize(
    "name", ["v1", "v1/", "v1/nothing.json", "edge/router.js", "v1/../report.json", "v1/" + "x" * 999]
)
def test_nothing_else_is_below_the_pages(client: Client, name: str) -> None:
    answer = client.send("GET", f"/inspect/{name}")
    assert (answer.status, json.loads(answer.body)) == (404, {"error": "not found"})


# ── while builds come and go ──────────────────────────────────────────────────────────────────────────────────────

REORDER: Final = (
    "UPDATE markets SET trader_count = (trader_count * 7919) % 1009, volume = (volume * 31.0) % 1000.0",
    "UPDATE markets SET question = question || '!'",
)


def test_a_walk_survives_rebuilds_and_a_new_one_sees_them(folder: Path) -> None:
    database = folder / "markets.db"
    before = in_order(database, "all", "popular")
    with served(folder, *UNLIMITED) as server, connected(server.port) as client:
        first = page(client, status="all", limit=7)
        old = client.send("GET", target(status="all", limit=7))
        for minutes in (1, 2, 3):
            change(folder, *REORDER)
            build_now(make_config(folder), AS_OF + timedelta(minutes=minutes))
        after = in_order(database, "all", "popular")
        assert after != before
        rest = walk(client, cycle([7, 7, 13]), first["nextCursor"], status="all")
        assert [*ids(first), *rest] == before
        assert walk(client, repeat(7), status="all") == after
        new = client.send("GET", target(status="all", limit=7), If_None_Match=old.headers["etag"])
        assert (new.status, new.headers["etag"] != old.headers["etag"]) == (200, True)


def test_a_walk_whose_generation_was_purged_has_to_start_again(folder: Path) -> None:
    with served(folder, *UNLIMITED) as server, connected(server.port) as client:
        cursor = page(client, limit=5)["nextCursor"]
        for hours in (1, 8, 9):
            change(folder, *REORDER)
            build_now(make_config(folder), AS_OF + timedelta(hours=hours))
        gone = client.send("GET", target(limit=5, cursor=cursor))
        assert (gone.status, gone.body) == (400, contract.encode(contract.invalid("cursor")))
        assert walk(client, repeat(5)) == in_order(folder / "markets.db", "open", "popular")


def test_a_list_without_a_first_page_is_unknown(folder: Path) -> None:
    (folder / "output" / keys.first_page("open/popular", 20)).unlink()
    with served(folder) as server, connected(server.port) as client:
        unknown = client.send("GET", MARKETS)
    assert (unknown.status, unknown.body) == (400, contract.encode(contract.invalid("category")))


def test_a_router_that_was_built_anew_is_used_at_once(folder: Path) -> None:
    with served(folder) as server, connected(server.port) as client:
        assert client.send("GET", MARKETS).status == 200
        build_now(make_config(folder, base_url="https://example.org/api"))
        assert client.send("GET", MARKETS).status == 404
        assert client.send("GET", f"/api{MARKETS}").status == 200


# ── the rate limit ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_burst_is_refused_but_a_polite_client_is_not(folder: Path) -> None:
    settings = {"rate_limit__requests": 20, "rate_limit__window": "1 s"}
    build_now(make_config(folder, **settings))
    options = [f"--set={name.replace('__', '.')}={value}" for name, value in settings.items()]
    with served(folder, *options) as server, connected(server.port) as client:
        for _ in range(3):  # a full window's worth at once, as often as the window allows
            begun = time.monotonic()
            assert {client.send("GET", MARKETS).status for _ in range(20)} == {200}
            time.sleep(max(0.0, begun + 1.05 - time.monotonic()))
        burst = [client.send(method, MARKETS) for method in ["GET"] * 30 + ["HEAD", "POST"]]
        refused = [answer for answer in burst if answer.status == 429]
        assert len(refused) >= 10
        assert [answer.status for answer in burst[:20]] == [200] * 20
        for answer in refused:
            assert answer.body in (contract.encode(contract.FIXED_ERRORS[429]), b"")
            assert answer.headers["retry-after"] == "1"
            assert answer.headers["content-type"] == keys.CONTENT_TYPE
            assert responses.CORS.items() <= answer.headers.items()
        assert client.send("GET", "/inspect/").status == 200
        time.sleep(1)
        assert client.send("GET", MARKETS).status == 200


@given(st.integers(1, 6), st.lists(st.tuples(st.floats(0, 9), st.sampled_from("ab")), max_size=60))
def test_who_never_exceeds_the_limit_is_never_refused(requests: int, schedule: list[tuple[float, str]]) -> None:
    limit, sent, granted = RateLimit(requests, 10), dict[str, list[float]](), dict[str, list[float]]()
    now = 0.0
    for pause, address in schedule:
        now += pause
        is_polite = sum(now - moment < 10 for moment in sent.setdefault(address, [])) < requests
        sent[address].append(now)
        if limit.grants(address, now):
            granted.setdefault(address, []).append(now)
        else:
            assert not is_polite
    for moments in granted.values():  # two windows may touch, three cannot
        assert all(sum(moment <= one < moment + 10 for one in moments) <= 2 * requests for moment in moments)


def test_a_crowd_of_addresses_takes_bounded_memory() -> None:
    limit = RateLimit(1, 60)
    assert all(limit.grants(f"2001:db8::{number:x}", 0.0) for number in range(25_000))
    assert not limit.grants(f"2001:db8::{15_000:x}", 1.0), "the latest 10,000 are still counted"
    assert limit.grants(f"2001:db8::{14_999:x}", 1.0), "the oldest were forgotten"
    assert limit.grants("2001:db8::61a7", 60.0)


# ── how it bears up ───────────────────────────────────────────────────────────────────────────────────────────────


def test_many_readers_at_once_get_what_each_asked_for(demo_output: Path, server: Served) -> None:
    cases = [case for case in on_the_wire(demo_output) if (case.method, case.path) not in OWN_PAGES][::4]

    def read(number: int) -> list[str]:
        own = random.Random(number).sample(cases, len(cases))  # noqa: S311 - no secret
        with connected(server.port) as client:
            found = [(case, client.send(case.method, case.target)) for case in own]
        checked = [http_mismatch(case, one.status, one.headers, one.body, demo_output) for case, one in found]
        return [problem for problem in checked if problem]

    with ThreadPoolExecutor(16) as readers:
        assert [problem for problems in readers.map(read, range(16)) for problem in problems] == []


def test_slow_and_garbled_clients_harm_nobody(folder: Path) -> None:
    dice = random.Random(1)  # noqa: S311 - no secret
    with served(folder, *UNLIMITED) as server, connected(server.port) as client:
        slow = [socket.create_connection(("127.0.0.1", server.port), timeout=15) for _ in range(40)]
        for number, one in enumerate(slow):
            one.sendall(f"GET {MARKETS} HTTP/1.1\r\nHost: x\r\n".encode()[: number or 1])
        for _ in range(60):
            assert exchange(server.port, dice.randbytes(200) + b"\r\n\r\n").count(b"HTTP/1.1 ") <= 1
        for line in (
            b"\r\n" * 9,
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /%s HTTP/1.1\r\n\r\n" % (b"a" * 70_000),
        ):
            exchange(server.port, line)
        for _ in range(20):  # gone before the answer comes, with a reset
            with socket.create_connection(("127.0.0.1", server.port)) as one:
                one.sendall(f"GET {MARKETS}?limit=100 HTTP/1.1\r\n\r\n".encode())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert page(client, limit=3)["items"]
        assert server.process.poll() is None
        for one in slow:
            one.close()
        assert "Traceback" not in server.logged()


def test_what_is_no_http_gets_the_contracts_error(server: Served) -> None:
    lines = ["GET", "garbage", "GET / x HTTP/1.1", "GET / HTTP/2.0", "GET / HTTP/x", f"GET /{'a' * 70_000} HTTP/1.1"]
    for line in lines:
        received = exchange(server.port, f"{line}\r\nHost: x\r\n\r\n".encode())
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request"), line[:50]
        assert b"access-control-allow-origin: *" in head
        assert body == contract.encode(contract.invalid())


def test_each_request_is_one_line_of_the_log_and_cannot_forge_another(folder: Path) -> None:
    with served(folder) as server, connected(server.port) as client:
        client.send("GET", f"{MARKETS}?limit=3&q")
        client.send("HEAD", "/nowhere")
        exchange(server.port, b"GET /\x1b[31m\x7f\x00\xe9\rINFO: HTTP/1.1\r\n\r\n")
        exchange(server.port, b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n")
        time.sleep(0.1)
        lines = server.logged().splitlines()
    assert len(lines) == 4
    assert all(line.isprintable() and line.startswith("INFO: ") and " duration_ms=" in line for line in lines)
    assert f"GET {MARKETS}?limit=3&q status=400 bytes=" in lines[0]
    assert "HEAD /nowhere status=404 bytes=0 " in lines[1]
    assert "\\x1b[31m\\x7f\\x00\\xe9\\x0dINFO:" in lines[2]
    assert len(lines[3]) < 1200


# ── beginning and end ─────────────────────────────────────────────────────────────────────────────────────────────


def test_it_says_where_it_serves_and_that_it_stopped(folder: Path) -> None:
    with served(folder) as server:
        address = f"http://127.0.0.1:{server.port}{MARKETS}"
        assert server.said == (f"serving {folder / 'output'}/ at {address}\n", f"try: curl '{address}?limit=5'\n")
        assert server.interrupt() == "stopped\n"
        assert server.process.returncode == 0
        assert server.logged() == ""


def test_without_a_build_it_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    result = run("serve", "--config", tmp_path / "config.yaml", "--set", f"output={tmp_path / 'none'}", "--port", "0")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {tmp_path / 'none'}: nothing is built there; run `public-markets build`")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "sentence"), [("(", "cannot be run (SyntaxError"), ("", "cannot be run"), (b"\xff", "cannot")]
)
def test_a_router_that_cannot_run_is_refused_at_once(folder: Path, text: str | bytes, sentence: str) -> None:
    (folder / "output" / "edge" / "router.js").write_bytes(text if isinstance(text, bytes) else text.encode())
    result = run("serve", "--config", folder / "config.yaml", "--set", f"output={folder / 'output'}", "--port", "0")
    assert result.returncode == 1
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_build_for_another_address_is_refused_at_once(folder: Path) -> None:
    options = ("--set", f"output={folder / 'output'}", "--set", "base_url=https://example.org/api", "--port", "0")
    result = run("serve", "--config", folder / "config.yaml", *options)
    assert (result.returncode, "built for another base_url" in result.stderr) == (1, True)


def test_a_port_that_is_taken_is_named(server: Served, demo_folder: Path) -> None:
    options = ("--config", demo_folder / "config.yaml", "--set", f"output={demo_folder / 'output'}")
    result = run("serve", *options, "--port", str(server.port))
    taken = f"port {server.port} is in use; stop the program that uses it, or choose another port with --port"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"error: {taken}\n")
    elsewhere = run("serve", *options, "--host", "nowhere.invalid")
    assert elsewhere.returncode == 1
    assert elsewhere.stderr.startswith("error: cannot listen on nowhere.invalid: ")


def test_listening_to_the_whole_network_is_no_secret(folder: Path) -> None:
    with served(folder, "--host", "0.0.0.0") as server, connected(server.port) as client:  # noqa: S104 - that is it
        assert client.send("GET", MARKETS).status == 200
        assert server.logged().startswith("WARNING: listening on 0.0.0.0: anyone who can reach this machine")
