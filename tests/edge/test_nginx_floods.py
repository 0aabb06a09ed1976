"""nginx counts whose requests come, behind proxies too, and who opens many connections: others are answered."""

import http.client
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import pytest

from generator.api import keys
from generator.edge import nginx as nginx_values
from tests.support.edges.cases import is_error
from tests.support.edges.empty_nginx import ask, empty_nginx, received
from tests.support.sites.rows import market_id
from tests.support.waiting import PATIENCE_S

#: Requests in progress that one network may have.
MOST: Final = nginx_values.CONNECTIONS
ONE_WORKER: Final = "worker_processes auto;", "worker_processes 1;"


def opened(stack: ExitStack, port: int, peer: str, sent: str) -> socket.socket:
    """A connection from an address of this machine, on which something was sent."""
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=(peer, 0))
    stack.enter_context(closing(connection)).sendall(sent.encode())
    return connection


def is_ended(connection: socket.socket) -> bool:
    """Whether nginx closes the connection without a word."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.campaign(short=0)
def test_half_sent_requests_of_one_address_leave_room_for_others_and_end_soon() -> None:
    soon = "client_header_timeout 10s;", "client_header_timeout 2s;"
    with empty_nginx("bucket.conf", ONE_WORKER, soon) as port, ExitStack() as stack:
        half = [opened(stack, port, "127.0.0.2", "GET /x HTTP/1.1\r\nHost: x\r\n") for _ in range(1_100)]
        assert ask(port, peer="127.0.0.3").status == 404
        assert all(is_ended(connection) for connection in half)


def test_one_network_has_so_many_requests_in_progress_and_the_next_is_a_429() -> None:
    # What an operator may have for all sites, and the inner server must not inherit.
    strict = "http {", "http {\nlimit_conn_zone $server_name zone=operator:1m;\nlimit_conn operator 1;"
    with socket.create_server(("127.0.0.1", 0), backlog=1_024) as store, ExitStack() as stack:
        port = stack.enter_context(empty_nginx("bucket.conf", ONE_WORKER, strict, store=store.getsockname()[1]))
        waiting = [
            opened(stack, port, "127.0.0.2", f"GET /{keys.MARKETS}/{market_id(number)} HTTP/1.1\r\nHost: x\r\n\r\n")
            for number in range(MOST + 5)
        ]
        refused = list[socket.socket]()
        while len(refused) < 5:
            ready, _, _ = select.select(waiting, [], [], PATIENCE_S)
            assert ready, refused
            refused += ready
            waiting = [connection for connection in waiting if connection not in ready]
        assert len(refused) == 5
        for connection in refused:
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert is_error(received(response), 429, retry_after="60")
        assert ask(port, peer="127.0.0.2").status == 429
        assert ask(port, peer="127.0.0.3").status == 404


# ── behind proxies ────────────────────────────────────────────────────────────────────────────────────────────────────


#: Of a limit of two requests, nginx grants one more.
GRANTED: Final = ["404"] * 3
TRUSTED: Final = "127.0.0.1, 10.0.0.0/8, fc00::/7"
#: The headers of four readers, the last two behind the same second proxy.
READERS: Final = ("198.51.100.1", "2001:db8::1", "198.51.100.2, 10.1.2.3", "198.51.100.3, 10.1.2.3")


@contextmanager
def limited(trusted: str, name: str = "nginx.conf") -> Iterator[int]:
    """An nginx that grants two requests. Yields its port."""
    with empty_nginx(name, rate_limit__requests=2, rate_limit__trusted_proxies=trusted) as port:
        yield port


def statuses(port: int, forwarded: str, *, peer: str = "127.0.0.1", count: int = 4) -> list[str]:
    """The answers to a few requests that come from `peer`."""
    return [str(ask(port, peer=peer, forwarded=forwarded).status) for _ in range(count)]


@pytest.mark.parametrize("name", ["nginx.conf", "bucket.conf"])
def test_readers_behind_a_trusted_proxy_are_counted_one_by_one_and_nobody_chooses_an_address(name: str) -> None:
    with limited(TRUSTED, name) as port:
        for reader in READERS:
            assert statuses(port, reader) == [*GRANTED, "429"], reader
        assert statuses(port, "203.0.113.1, 198.51.100.1", count=1) == ["429"], "the reader wrote the first address"
        assert statuses(port, "203.0.113.2", peer="127.0.0.2") == [*GRANTED, "429"]
        assert statuses(port, "203.0.113.3", peer="127.0.0.2", count=1) == ["429"], "no proxy of ours"


def test_half_an_ipv6_address_is_counted_and_a_whole_ipv4_address_in_either_form() -> None:
    with limited(TRUSTED) as port:
        # 0a is a line feed, which regular expressions treat in ways of their own.
        for reader, same, other in (
            ("2001:db8:0:a0a::a0a:a0a", "2001:db8:0:a0a:ffff::", "2001:db8:0:a0b::a0a:a0a"),
            ("198.18.10.10", "::ffff:198.18.10.10", "::ffff:198.18.10.11"),
        ):
            assert statuses(port, reader, count=3) == GRANTED
            assert statuses(port, same, count=1) == ["429"]
            assert statuses(port, other, count=1) == GRANTED[:1]


def test_without_trusted_proxies_the_header_says_nothing() -> None:
    with limited("[]") as port:
        assert statuses(port, "198.51.100.1") == [*GRANTED, "429"]
        assert statuses(port, "198.51.100.2", count=1) == ["429"]
