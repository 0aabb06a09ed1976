"""For which hosts `public-markets serve` shows its pages."""

from typing import Final

import pytest

from generator.edge.local.hosts import Hosts

LOOPBACK: Final = ("localhost", "LOCALHOST", "localhost.", "localhost:8000", "localhost.:1", "127.0.0.1",
    "127.0.0.1:80", "127.0.0.2", "[::1]", "[::1]:8000", "[0:0:0:0:0:0:0:1]:8000")  # fmt: skip
FOREIGN: Final = ("rebound.example", "rebound.example:8000", "localhost.rebound.example", "127.0.0.1.rebound.example",
    "x.localhost", "", " ", ".", ":8000", "localhost:x", "localhost:80:80", "localhost, x", "localhost,localhost",
    "user@localhost", "localhost/", "::1", "[::1", "[localhost]", "127.1", "2130706433", "0x7f.0.0.1",
    "192.0.2.1", "[2001:db8::1]", "l\u00f6calhost", "localhost\n")  # fmt: skip
WILDCARDS: Final = ("0.0.0.0", "::")  # noqa: S104 - nothing listens


@pytest.mark.parametrize("bound", ["127.0.0.1", "::1", "192.0.2.7", *WILDCARDS])
def test_loopback_names_are_served_wherever_it_listens(bound: str) -> None:
    assert [name for name in LOOPBACK if not Hosts(bound, bound).include(name)] == []


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "::1")])
def test_every_other_name_and_address_is_foreign(host: str, address: str) -> None:
    assert [name for name in (*FOREIGN, *WILDCARDS) if Hosts(host, address).include(name)] == []


def test_the_bound_address_and_the_name_it_was_given_by_are_served() -> None:
    hosts = Hosts("Box.Example", "192.0.2.7")
    assert all(hosts.include(name) for name in ("box.example", "BOX.example.:8000", "192.0.2.7", "192.0.2.7:8000"))
    assert not any(hosts.include(name) for name in ("192.0.2.8", "example", "box.example.org", "xbox.example"))
    linked = Hosts("fe80::1%eth0", "fe80::1%eth0")
    assert linked.include("[FE80::1]:8000")
    assert not linked.include("[fe80::2]")


@pytest.mark.parametrize("bound", WILDCARDS)
def test_where_it_listens_everywhere_every_address_is_its_own_but_no_name_is(bound: str) -> None:
    hosts = Hosts(bound, bound)
    assert all(hosts.include(name) for name in ("192.0.2.1:8000", "[2001:db8::1]"))
    assert not any(hosts.include(name) for name in ("rebound.example", "192.0.2.1.rebound.example", "127.1"))
