"""The rate limit of the local server."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.config import networks
from generator.edge.local import reader
from generator.edge.local.reader import RequestCounter
from tests.support.edges.in_process import Local
from tests.support.sites.builds import make_config


@given(st.integers(1, 6), st.lists(st.tuples(st.floats(0, 9), st.sampled_from("ab")), max_size=60))
def test_who_never_exceeds_the_limit_is_never_refused(requests: int, schedule: list[tuple[float, str]]) -> None:
    limit, sent, granted = RequestCounter(requests, 10), dict[str, list[float]](), dict[str, list[float]]()
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
    limit = RequestCounter(1, 60)
    assert all(limit.grants(f"2001:db8::{number:x}", 0.0) for number in range(25_000))
    assert not limit.grants(f"2001:db8::{15_000:x}", 1.0), "the latest 10,000 are still counted"
    assert limit.grants(f"2001:db8::{14_999:x}", 1.0), "the oldest were forgotten"
    assert limit.grants("2001:db8::61a7", 60.0)


@pytest.mark.parametrize(
    ("peer", "forwarded", "counted"),
    [
        ("192.0.2.1", "", "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),  # no proxy of ours: what it says is not believed
        ("10.1.2.3", "", "10.1.2.3"),
        ("10.1.2.3", "198.51.100.7", "198.51.100.7"),
        ("::ffff:10.1.2.3", "198.51.100.7", "198.51.100.7"),
        ("10.1.2.3", "203.0.113.9, 198.51.100.7", "198.51.100.7"),  # the reader wrote the first
        ("10.1.2.3", "198.51.100.7,2001:db8::5 , 10.9.9.9", "198.51.100.7"),
        ("10.1.2.3", "10.7.7.7, 10.9.9.9", "10.7.7.7"),
        ("10.1.2.3", "198.51.100.7:4711", "198.51.100.7"),
        ("2001:db8::5", "[2001:db9::1]:4711", "2001:db9::1"),
        ("2001:db8::5", "2001:DB9:0::1", "2001:db9::1"),
        ("10.1.2.3", "198.51.100.7, unknown", "10.1.2.3"),
        ("10.1.2.3", "198.51.100.7, , 10.9.9.9", "10.9.9.9"),
        ("", "198.51.100.7", ""),
    ],
)
def test_behind_trusted_proxies_the_reader_is_counted(peer: str, forwarded: str, counted: str) -> None:
    trusted = networks.parsed(["10.0.0.0/8", "2001:db8::/32"])
    assert reader.address(peer, forwarded, trusted) == counted


def test_serve_counts_each_reader_behind_a_trusted_proxy_alone(folder: Path) -> None:
    local = Local(make_config(folder, rate_limit__requests=2, rate_limit__trusted_proxies="127.0.0.1"))

    def statuses(forwarded: str, peer: str = "127.0.0.1") -> list[int]:
        return [local.ask("/x", peer=peer, HTTP_X_FORWARDED_FOR=forwarded).status for _ in range(3)]

    assert [statuses(f"198.51.100.{number}") for number in (1, 2)] == [[404, 404, 429]] * 2
    assert statuses("203.0.113.1, 198.51.100.1") == [429] * 3
    assert statuses("203.0.113.2", peer="192.0.2.9") == [404, 404, 429]
    assert statuses("203.0.113.3", peer="192.0.2.9") == [429] * 3


def test_serve_counts_half_an_ipv6_address(folder: Path) -> None:
    local = Local(make_config(folder, rate_limit__requests=2), "::")
    peers = ("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1", "::ffff:192.0.2.1", "::ffff:192.0.2.2")
    assert [local.ask("/x", peer=peer).status for peer in peers] == [404, 404, 429, 404, 404, 404]
