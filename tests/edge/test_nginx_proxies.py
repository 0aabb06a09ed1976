"""nginx behind proxies: whose requests the rate limit counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.support.edges.empty_nginx import ask, empty_nginx

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
