"""`public-markets serve` as a process: start, log, difficult clients, end."""

import random
import socket
import struct
from pathlib import Path

import pytest

from generator.api import contract
from tests.support.commands import run
from tests.support.edges.servers import connected
from tests.support.edges.serving import MARKETS, UNLIMITED, Served, exchange, served
from tests.support.waiting import PATIENCE_S, wait_until


def test_slow_and_garbled_clients_harm_nobody(folder: Path) -> None:
    dice = random.Random(1)  # noqa: S311 - no secret
    with served(folder, *UNLIMITED) as server, connected(server.port) as client:
        slow = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) for _ in range(40)]
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
        assert client.send("GET", f"{MARKETS}?limit=3").status == 200
        for one in slow:
            one.close()
        assert "Traceback" not in server.logged()


def test_what_is_no_http_gets_the_contracts_error(server: Served) -> None:
    lines = ["GET", "garbage", "GET / x HTTP/1.1", "GET / HTTP/2.0", "GET / HTTP/x", f"GET /{'a' * 70_000} HTTP/1.1"]
    lines += [f"GET {MARKETS}?q={'x' * 10_000_000} HTTP/1.1"]
    for line in lines:
        received = exchange(server.port, f"{line}\r\nHost: x\r\n\r\n".encode())
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request"), line[:50]
        assert b"access-control-allow-origin: *" in head
        assert body == contract.encode(contract.FIXED_ERRORS[400])


def test_each_request_is_one_line_of_the_log_and_cannot_forge_another(folder: Path) -> None:
    with served(folder) as server, connected(server.port) as client:
        client.send("GET", f"{MARKETS}?limit=3&q")
        client.send("HEAD", "/nowhere")
        exchange(server.port, b"GET /\x1b[31m\x7f\x00\xe9\rINFO: HTTP/1.1\r\n\r\n")
        exchange(server.port, b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n")
        wait_until(lambda: len(server.logged().splitlines()) >= 4)
        lines = server.logged().splitlines()
    assert len(lines) == 4
    assert all(line.isprintable() and line.startswith("INFO: ") and " duration_ms=" in line for line in lines)
    assert f"GET {MARKETS}?limit=3&q status=400 bytes=" in lines[0]
    assert "HEAD /nowhere status=404 bytes=0 " in lines[1]
    assert "\\x1b[31m\\x7f\\x00%E9\\x0dINFO:" in lines[2]
    assert len(lines[3]) < 1200


def test_it_says_where_it_serves_and_that_it_stopped(folder: Path) -> None:
    with served(folder) as server:
        address = f"http://127.0.0.1:{server.port}{MARKETS}"
        assert server.said == (f"serving {folder / 'output'}/ at {address}\n", f"try: curl '{address}?limit=5'\n")
        assert server.interrupt() == (0, "stopped\n")
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
