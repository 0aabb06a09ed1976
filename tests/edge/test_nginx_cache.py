"""nginx's cache of a second: what it keeps and shares, and that nothing withdrawn is served for more than two."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import deployment, responses
from generator.tree.layouts import LAYOUTS
from tests.support import lists
from tests.support.bucket import bucket
from tests.support.builds import make_config
from tests.support.edges import full_tier
from tests.support.rows import market_id
from tests.support.servers import Answer, connected, folder_for_anybody, free_port, nginx
from tests.support.sites import CACHED, Site, site, target
from tests.support.windows import made_up

#: Seconds after which nothing withdrawn may be in an answer. For as long, the router leaves out what it would have to
#: read from a file that was just replaced, like Link: tests that compare headers wait a little longer.
BOUND: Final = 2.0
SETTLED: Final = BOUND + 0.2
NAME: Final = "all/new"
LIMIT: Final = 20
BEFORE, AFTER = (made_up(NAME, 60, seed) for seed in ("withdrawn", "kept"))
IN_CHUNKS: Final = pytest.mark.parametrize("edge", ["cached-nginx chunks"], indirect=True)
DETAIL: Final = f"/{keys.MARKETS}/{market_id(1)}"


def publish(edge: Site, number: int) -> None:
    """A list and a market; number 1 withdraws what number 0 shows."""
    one = (BEFORE, AFTER)[number]
    if edge.layout == "pages":
        edge.put_pages(one, LIMIT)
    else:
        edge.put(one)
    detail = edge.output / keys.detail(market_id(1))
    if number == 0:
        lists.write(detail, b'{"market":"withdrawn"}')
    else:
        detail.unlink()


def at_the_beginning_of_a_second() -> None:
    time.sleep(1 - time.time() % 1)


@pytest.fixture(
    scope="module",
    params=full_tier(map(" ".join, product(CACHED, LAYOUTS)), short=["cached-nginx pages", "cached-nginx chunks"]),
)
def edge(request: pytest.FixtureRequest) -> Iterator[Site]:
    with site(*request.param.split()) as running:
        publish(running, 0)
        yield running


def reads(edge: Site, asked: str, until: float) -> list[tuple[float, Answer]]:
    """The answers to one request, again and again, and when each was asked for."""
    found = []
    with connected(edge.client.port) as client:
        while (now := time.monotonic()) < until:
            found.append((now, client.send("GET", asked)))
            time.sleep(0.005)
    return found


def test_what_is_withdrawn_is_in_no_answer_two_seconds_later(edge: Site) -> None:
    publish(edge, 0)
    begun = time.monotonic()
    asked = (target(NAME, LIMIT), DETAIL)
    with ThreadPoolExecutor(4) as readers:
        seen = [readers.submit(reads, edge, one, begun + 1.3 + BOUND) for one in asked * 2]
        time.sleep(0.8)
        publish(edge, 1)
        gone = time.monotonic()
        answers = [answer for one in seen for answer in one.result()]
    late = [answer for asked_at, answer in answers if asked_at > gone + BOUND]
    assert any(b"withdrawn" in answer.body for _, answer in answers)
    assert {answer.status for answer in late} == {200, 404}
    assert not any(b"withdrawn" in answer.body for answer in late)


def test_hot_answers_are_those_of_the_router_whatever_is_asked_for(edge: Site) -> None:
    publish(edge, 0)
    time.sleep(SETTLED)
    asked = {target(NAME, LIMIT): 200, DETAIL: 200, target(NAME, 0): 400, f"/{keys.MARKETS}/{market_id(9)}": 404}
    for one, status in asked.items():
        first = edge.client.send("GET", one)
        # Often enough that some come from the cache.
        for _ in range(150):
            again = edge.client.send("GET", one)
            assert (again.status, again.body) == (status, first.body)
            assert unlike(again, first) == set()
        head = edge.client.send("HEAD", one)
        assert (head.status, head.body, unlike(head, first)) == (status, b"", set())
        if status == 200:
            known = edge.client.send("GET", one, If_None_Match=first.headers["etag"])
            assert (known.status, known.body, known.headers["cache-control"]) == (304, b"", keys.MUTABLE)
            assert edge.client.send("GET", one, Range="bytes=0-9").body == first.body


def unlike(answer: Answer, other: Answer) -> set[tuple[str, str]]:
    """The headers that differ; of two requests, dates may."""
    return {(name, value) for name, value in answer.headers.items() ^ other.headers.items() if name != "date"}


def test_a_cached_answer_is_for_one_target_and_method_only(edge: Site) -> None:
    publish(edge, 0)
    for _ in range(100):
        for limit in (LIMIT, 0):
            assert edge.ask(NAME, limit).status == (400 if limit == 0 else 200)
        asked = target(NAME, LIMIT)
        assert edge.client.send("OPTIONS", asked).status == 204
        refused = edge.client.send("POST", asked)
        assert (refused.status, refused.headers["cache-control"]) == (405, "no-store")


# ── what is cut ───────────────────────────────────────────────────────────────────────────────────────────────────


@IN_CHUNKS
def test_a_hot_page_is_cut_once_a_second(edge: Site) -> None:
    publish(edge, 0)
    time.sleep(BOUND)
    at_the_beginning_of_a_second()
    first = edge.ask(NAME, LIMIT)
    publish(edge, 1)
    assert edge.ask(NAME, LIMIT).body == first.body
    at_the_beginning_of_a_second()
    assert edge.ask(NAME, LIMIT).body != first.body


@IN_CHUNKS
def test_the_servers_failure_is_not_kept_and_brings_nothing_back(edge: Site) -> None:
    publish(edge, 0)
    time.sleep(BOUND)
    assert edge.ask(NAME, LIMIT).status == 200
    head = edge.output / keys.head(NAME)
    head.chmod(0)
    try:
        time.sleep(BOUND)
        failed = edge.ask(NAME, LIMIT)
    finally:
        head.chmod(0o644)
    assert (failed.status, failed.body) == (503, contract.encode(contract.FIXED_ERRORS[503]))
    assert responses.error_headers(503, Config()).items() <= failed.headers.items()
    assert edge.ask(NAME, LIMIT).status == 200


@IN_CHUNKS
def test_the_inner_server_listens_on_this_machine_only_and_what_it_tells_the_cache_stays_there(edge: Site) -> None:
    text = edge.output.joinpath("edge", "nginx", "nginx.conf").read_text("utf-8")
    listening = re.findall(r"listen ([0-9.]+):([0-9]+)", text)
    assert len(listening) == 2
    assert all(address.startswith("127.") for address, _ in listening)
    shown = set(edge.ask(NAME, LIMIT).headers)
    assert not [name for name in shown if name.startswith("x-") and name != "x-as-of"]


# ── a slow store ──────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def slow_bucket(use_stale: str) -> Iterator[tuple[Path, list[float], int]]:
    """The output folder, the seconds that the bucket takes for each answer, to be changed, and nginx's port."""
    pause = [0.0]
    with folder_for_anybody() as folder:
        port, store = free_port(), free_port()
        config = make_config(
            folder,
            base_url=f"http://127.0.0.1:{port}",
            rate_limit__requests=1_000,
            publish__target="s3://store/a prefix",
            publish__endpoint_url=f"http://127.0.0.1:{store}",
        )
        for file in deployment.render(config):
            text = file.text.replace("proxy_cache_use_stale off;", f"proxy_cache_use_stale {use_stale};")
            lists.write(config.output / file.name, text.encode())
        with (
            bucket(config.output, store, lambda _: time.sleep(pause[0])),
            nginx(config.output, port, "bucket.conf"),
        ):
            yield config.output, pause, port


def seen_by_the_second_of_two(use_stale: str) -> bytes:
    """What a reader gets while another waits for a slow bucket, three seconds after a document was replaced."""
    with slow_bucket(use_stale) as (output, pause, port), connected(port) as one, connected(port) as other:
        lists.write(output / keys.BUILD, b'{"asOf":"withdrawn"}')
        assert one.send("GET", f"/{keys.BUILD}").status == 200
        lists.write(output / keys.BUILD, b'{"asOf":"kept"}')
        time.sleep(BOUND)
        pause[0] = 0.3
        with ThreadPoolExecutor(1) as reader:
            first = reader.submit(one.send, "GET", f"/{keys.BUILD}")
            time.sleep(0.1)
            found = other.send("GET", f"/{keys.BUILD}").body
            assert b"kept" in first.result().body
        return found


def test_nobody_is_shown_what_is_older_because_the_store_is_slow() -> None:
    assert b"kept" in seen_by_the_second_of_two("off")


@pytest.mark.campaign(short=0)
def test_without_a_bound_the_second_reader_would_see_what_is_withdrawn() -> None:
    assert b"withdrawn" in seen_by_the_second_of_two("updating")
