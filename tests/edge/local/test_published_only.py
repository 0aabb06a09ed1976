"""`public-markets serve` gives access to what is published and to the pages for people, and to nothing else."""

from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys
from generator.edge.local.reader import Hosts
from generator.tree import files
from tests.support.edges.cases import is_error
from tests.support.edges.servers import Client, connected
from tests.support.edges.serving import MARKETS, Served, exchange, served
from tests.support.waiting import wait_until

#: In each another spelling of what is not published, or of a way to it.
ESCAPES: Final = (
    "/../manifest.json", "/v1/public/markets/../../../manifest.json", "/manifest.json", "/%2e%2e/manifest.json",
    "/v1/%2e%2e%2fmanifest.json", "/v1/%252e%252e/manifest.json", "/v1/..%c0%afmanifest.json", "//manifest.json",
    "/v1\\..\\manifest.json", "/v1/..;/manifest.json", "/./manifest.json", "/v1/../state/0123456789abcdef01234567",
    "/v1/build.json/../../manifest.json", "/v1/build.json%00.html", "http://x/v1/../manifest.json",
    "file:///etc/passwd", "HTTPS://user@x:1/manifest.json", "http://[::1/manifest.json", "manifest.json", "*", "\\",
    "?", "/edge/router.js", "/report.json", "/.lock", "/inspect/report.json", "/inspect/%2e%2e/", "/etc/passwd",
    f"/{'../' * 50}etc/passwd", "/v1", "/v1/build.json\x00", "/v1/\x00/../manifest.json", "/v1/errors/404.json",
    f"{MARKETS}/lists/open/popular/first/1.json", "/inspect/v1", "/inspect/v1/", "/inspect/v1/nothing.json",
    "/inspect/edge/router.js", "/inspect/v1/../report.json", f"/inspect/v1/{'x' * 999}",
)  # fmt: skip


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_leads_to_what_is_not_published(server: Served, path: str) -> None:
    received = exchange(server.port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1"))
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
        assert is_error(client.send("GET", f"{MARKETS}/snapshot"), 503)
        assert client.send("GET", MARKETS).status == 200


def test_the_way_in_shows_the_first_calls_until_there_is_an_inspection_page(folder: Path) -> None:
    (folder / "output" / "index.html").unlink()
    with served(folder) as server, connected(server.port) as client:
        front = client.send("GET", "/")
        assert (front.status, front.headers["location"]) == (302, "/inspect/")
        page = client.send("GET", "/inspect/")
        assert b"<p>There is no inspection page: a takedown deletes it, and the next build makes it.</p>" in page.body
        for call in (MARKETS, f"{MARKETS}/snapshot", f"/{keys.OPENAPI}", f"/{keys.BUILD}"):
            assert f'href="{call}"'.encode() in page.body
            assert client.send("GET", call).status == 200
        (folder / "output" / "index.html").write_text("<!doctype html>inspected")
        assert client.send("GET", "/inspect/").body == b"<!doctype html>inspected"
        (folder / "output" / files.STATUS).write_text("well")
        assert client.send("GET", "/inspect/status.html").body == b"well"
        assert "access-control-allow-origin" not in client.send("GET", "/inspect/").headers


def test_what_the_pages_link_to_is_below_them_as_it_is_on_disk(server: Served, client: Client) -> None:
    first = keys.first_page("open/new", 5)
    for name, content_type in (
        ("api.html", "text/html; charset=utf-8"),
        (files.RENDERER, "text/javascript; charset=utf-8"),
        (f"{files.RENDERER}.LICENSE.txt", "text/plain; charset=utf-8"),
        (first, keys.CONTENT_TYPE),
        (keys.OPENAPI, keys.CONTENT_TYPE),
        (keys.LLMS, keys.CONTENT_TYPES[".txt"]),
        (keys.feed("new", "json"), keys.FEED_TYPE),
        (keys.feed("new", "atom"), keys.CONTENT_TYPES[".atom"]),
    ):
        answer = client.send("GET", f"/inspect/{name}")
        assert (answer.status, answer.headers["content-type"]) == (200, content_type)
        assert answer.body
    assert client.send("GET", f"/inspect/{first}").body == client.send("GET", f"{MARKETS}?sort=new&limit=5").body
    assert client.send("HEAD", "/inspect/api.html").body == b""
    assert client.send("POST", "/inspect/").status == 405


def asked(port: int, path: str, *hosts: str) -> tuple[int, bytes]:
    """Status and body of the answer to a request with these Host headers."""
    head = "\r\n".join([f"GET {path} HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""])
    received = exchange(port, head.encode("latin-1")).partition(b"\r\n\r\n")
    return int(received[0].split(b" ")[1]), received[2]


@pytest.mark.parametrize("hosts", [("127.0.0.1.rebound.example:8000",), (), ("localhost", "rebound.example")])
def test_a_page_of_another_site_cannot_read_the_pages_through_a_name_that_leads_here(
    server: Served, hosts: tuple[str, ...]
) -> None:
    for path in ("/", "/inspect/", "/inspect/index.html", "/inspect/api.html", f"/inspect/{keys.BUILD}"):
        status, body = asked(server.port, path, *hosts)
        assert status == 421
        assert contract.ErrorResponse.model_validate_json(body).error == (
            "the pages are not shown for this host; open them at http://127.0.0.1 and the port, "
            "or start serve with --host and the name you use"
        )
    assert asked(server.port, MARKETS, *hosts)[0] == 200, "what is public may be read under every name"


def test_the_name_in_the_request_line_counts_before_the_header(server: Served) -> None:
    assert asked(server.port, "http://rebound.example/inspect/", "localhost")[0] == 421
    assert asked(server.port, "http://localhost:8000/inspect/", "rebound.example")[0] == 200


def test_files_to_take_away_are_read_at_their_own_address_only_and_never_through_a_link(folder: Path) -> None:
    (real,) = (folder / "output" / "v1" / "dumps" / "markets").glob("*.ndjson.gz")
    key = real.relative_to(folder / "output").as_posix()
    linked = real.with_name(f"{'0' * 32}.ndjson.gz")
    (folder / "secret.gz").write_bytes(b"secret")
    linked.symlink_to(folder / "secret.gz")
    with served(folder) as server, connected(server.port) as client:
        shown = client.send("GET", f"/inspect/{key}")
        assert (shown.status, shown.headers["location"]) == (302, f"/{key}")
        assert client.send("GET", f"/{key}").body == real.read_bytes()
        assert client.send("GET", f"/v1/dumps/markets/{linked.name}").status == 404
        assert client.send("GET", f"/{key}", Range="bytes=0-9").status == 206
        wait_until(lambda: f"GET /{key} status=206 bytes=10 " in server.logged())
    assert f"GET /{key} status=200 bytes={real.stat().st_size} " in server.logged()


# ── hosts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


#: What `serve` is bound to, by name and address, which hosts it shows the pages for, and which others it does not.
HOSTS: Final[dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]]] = {
    ("127.0.0.1", "127.0.0.1"): (("127.0.0.2", "localhost.:1"), ("0.0.0.0", "::")),  # noqa: S104 - nothing listens
    ("localhost", "127.0.0.1"): ((), ()),
    ("::1", "::1"): ((), ()),
    ("Box.Example", "192.0.2.7"): (
        ("box.example", "BOX.example.:8000", "192.0.2.7", "192.0.2.7:8000"),
        ("192.0.2.8", "example", "box.example.org", "xbox.example"),
    ),
    ("fe80::1%eth0", "fe80::1%eth0"): (("[FE80::1]:8000",), ("[fe80::2]",)),
    ("0.0.0.0", "0.0.0.0"): (("192.0.2.1:8000", "[2001:db8::1]"), ()),  # noqa: S104
    ("::", "::"): (("192.0.2.1:8000", "[2001:db8::1]"), ()),
}
LOOPBACK: Final = ("localhost", "LOCALHOST", "localhost.", "localhost:8000", "127.0.0.1", "127.0.0.1:80", "[::1]",
    "[::1]:8000", "[0:0:0:0:0:0:0:1]:8000")  # fmt: skip
FOREIGN: Final = ("rebound.example", "localhost.rebound.example", "127.0.0.1.rebound.example",
    "x.localhost", "", " ", ".", ":8000", "localhost:x", "localhost:80:80", "localhost, x", "localhost,localhost",
    "user@localhost", "localhost/", "::1", "[::1", "[localhost]", "127.1", "2130706433", "0x7f.0.0.1",
    "l\u00f6calhost", "localhost\n")  # fmt: skip


@pytest.mark.parametrize("bound", HOSTS)
def test_pages_are_shown_for_loopback_names_and_for_what_it_is_bound_to(bound: tuple[str, str]) -> None:
    hosts, (own, others) = Hosts(*bound), HOSTS[bound]
    assert [name for name in (*LOOPBACK, *own) if not hosts.include(name)] == []
    assert [name for name in (*FOREIGN, *others) if hosts.include(name)] == []
