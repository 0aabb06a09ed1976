"""The rate limit of the local server."""

import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from generator.api import contract, keys
from generator.edge import responses
from generator.edge.local.rate_limit import RateLimit
from tests.support.builds import build_now, make_config
from tests.support.servers import connected
from tests.support.serving import MARKETS, served


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
