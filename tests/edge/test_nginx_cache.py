"""nginx's cache of a second: what it keeps and shares, and that nothing withdrawn is served for more than two."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.tree.layouts import LAYOUTS
from tests.support.campaigns import full_tier
from tests.support.edges.cases import is_error
from tests.support.edges.edge_sites import CACHED, EdgeSite, edge_site, target
from tests.support.edges.in_process import render
from tests.support.edges.servers import Answer, connected, folder_for_anybody, free_port, nginx
from tests.support.edges.windows import made_up
from tests.support.readers import lists
from tests.support.sites.builds import make_config
from tests.support.sites.rows import market_id
from tests.support.stores.bucket import behind_nginx, bucket
from tests.support.waiting import PATIENCE_S, wait_until

#: Seconds after which nothing withdrawn may be in an answer. For as long, the router leaves out what it would have to
#: read from a file that was just replaced, like Link: tests that compare headers wait a little longer.
BOUND: Final = 2.0
SETTLED: Final = BOUND + 0.2
NAME: Final = "all/new"
LIMIT: Final = 20
BEFORE, AFTER = (made_up(NAME, 60, seed) for seed in ("withdrawn", "kept"))
IN_CHUNKS: Final = pytest.mark.parametrize("edge", ["cached-nginx chunks"], indirect=True)
DETAIL: Final = f"/{keys.MARKETS}/{market_id(1)}"
FILE: Final = f"v1/dumps/markets/{'0' * 32}.ndjson.gz"


def publish(edge: EdgeSite, number: int) -> None:
    """A list, a market and a file to take away; number 1 withdraws what number 0 shows."""
    one = (BEFORE, AFTER)[number]
    if edge.layout == "pages":
        edge.put_pages(one, LIMIT)
    else:
        edge.put(one)
    detail = edge.output / keys.detail(market_id(1))
    if number == 0:
        lists.write(detail, b'{"market":"withdrawn"}')
        lists.write(edge.output / FILE, b"withdrawn")
    else:
        detail.unlink()
        (edge.output / FILE).unlink()


def at_the_beginning_of_a_second() -> None:
    time.sleep(1 - time.time() % 1)


def within_a_second(act: Callable[[], None]) -> bool:
    """Whether something that begins with a second is done before it ends."""
    at_the_beginning_of_a_second()
    second = int(time.time())
    act()
    return int(time.time()) == second


@pytest.fixture(
    scope="module",
    params=full_tier(map(" ".join, product(CACHED, LAYOUTS)), short=["cached-nginx pages", "cached-nginx chunks"]),
)
def edge(request: pytest.FixtureRequest) -> Iterator[EdgeSite]:
    with edge_site(*request.param.split()) as running:
        publish(running, 0)
        yield running


def reads(edge: EdgeSite, asked: str, is_over: threading.Event) -> list[tuple[float, Answer]]:
    """The answers to one request, again and again until it is over and once after that; and when each was asked for."""
    found, was_over = list[tuple[float, Answer]](), False
    with connected(edge.client.port) as client:
        while not was_over:
            was_over = is_over.wait(0.005)
            found.append((time.monotonic(), client.send("GET", asked)))
    return found


@pytest.mark.campaign(short=0)
def test_what_is_withdrawn_is_in_no_answer_two_seconds_later(edge: EdgeSite) -> None:
    publish(edge, 0)
    asked, is_over = (target(NAME, LIMIT), DETAIL, f"/{FILE}"), threading.Event()
    with ThreadPoolExecutor(6) as readers:
        try:
            seen = [readers.submit(reads, edge, one, is_over) for one in asked * 2]
            time.sleep(0.8)
            publish(edge, 1)
            gone = time.monotonic()
            time.sleep(SETTLED)
        finally:
            is_over.set()
        answers = [answer for one in seen for answer in one.result()]
    assert any(answer.body == b"withdrawn" for _, answer in answers), "the file was there, too"
    late = [answer for asked_at, answer in answers if asked_at > gone + BOUND]
    assert any(b"withdrawn" in answer.body for _, answer in answers)
    assert {answer.status for answer in late} == {200, 404}
    assert not any(b"withdrawn" in answer.body for answer in late)


@pytest.mark.campaign(short=0)
def test_hot_answers_are_those_of_the_router_whatever_is_asked_for(edge: EdgeSite) -> None:
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
        assert [edge.client.send(method, one).status for method in ("OPTIONS", "POST")] == [204, 405]


def unlike(answer: Answer, other: Answer) -> set[tuple[str, str]]:
    """The headers that differ; of two requests, dates may."""
    return {(name, value) for name, value in answer.headers.items() ^ other.headers.items() if name != "date"}


# ── what is cut ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
@IN_CHUNKS
def test_a_hot_page_is_cut_once_a_second(edge: EdgeSite) -> None:
    bodies: list[bytes] = []

    def publish_between_two_requests() -> None:
        bodies[:] = [edge.ask(NAME, LIMIT).body]
        publish(edge, 1)
        bodies.append(edge.ask(NAME, LIMIT).body)

    def is_done_in_time() -> bool:
        publish(edge, 0)
        time.sleep(SETTLED)
        return within_a_second(publish_between_two_requests)

    wait_until(is_done_in_time)
    assert bodies[0] == bodies[1]
    at_the_beginning_of_a_second()
    assert edge.ask(NAME, LIMIT).body != bodies[0]


@pytest.mark.campaign(short=0)
@IN_CHUNKS
def test_the_servers_failure_is_not_kept_and_brings_nothing_back(edge: EdgeSite) -> None:
    publish(edge, 0)
    time.sleep(SETTLED)
    assert edge.ask(NAME, LIMIT).status == 200
    head = edge.output / keys.head(NAME)
    head.chmod(0)
    try:
        time.sleep(SETTLED)
        failed = edge.ask(NAME, LIMIT)
    finally:
        head.chmod(0o644)
    assert is_error(failed, 503)
    assert edge.ask(NAME, LIMIT).status == 200


@IN_CHUNKS
def test_the_inner_server_listens_on_this_machine_only_and_what_it_tells_the_cache_stays_there(edge: EdgeSite) -> None:
    text = edge.output.joinpath("edge", "nginx", "nginx.conf").read_text("utf-8")
    listening = re.findall(r"listen ([0-9.]+):([0-9]+)", text)
    assert len(listening) == 2
    assert all(address.startswith("127.") for address, _ in listening)
    shown = set(edge.ask(NAME, LIMIT).headers)
    assert sorted(name for name in shown if name.startswith("x-")) == ["x-as-of", "x-content-type-options"]


# ── a slow store ──────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def slow_bucket() -> Iterator[tuple[Path, threading.Event, list[str], int]]:
    """The output folder, whether the bucket answers, what it is asked for, and nginx's port."""
    answers = threading.Event()
    with folder_for_anybody() as folder:
        port, store = free_port(), free_port()
        config = make_config(folder, rate_limit__requests=1_000, **behind_nginx(port, store))
        render(config)
        with (
            bucket(config.output, store, lambda _: not answers.wait(PATIENCE_S) or None) as asked,
            nginx(config.output, port, "bucket.conf"),
        ):
            yield config.output, answers, asked, port


@pytest.mark.campaign(short=0)
def test_nobody_is_shown_what_is_older_because_the_store_is_slow() -> None:
    """While another waits for a slow bucket, three seconds after a document was replaced."""
    with slow_bucket() as (output, answers, asked, port), connected(port) as one, connected(port) as other:
        answers.set()
        lists.write(output / keys.BUILD, b'{"asOf":"withdrawn"}')
        assert one.send("GET", f"/{keys.BUILD}").status == 200
        lists.write(output / keys.BUILD, b'{"asOf":"kept"}')
        time.sleep(SETTLED)
        answers.clear()
        before = len(asked)
        with ThreadPoolExecutor(2) as readers:
            try:
                first = readers.submit(one.send, "GET", f"/{keys.BUILD}")
                wait_until(lambda: len(asked) > before)
                second = readers.submit(other.send, "GET", f"/{keys.BUILD}")
                wait({second}, timeout=0.5)  # it waits for the bucket, too, unless it is shown what was kept
            finally:
                answers.set()
            assert b"kept" in first.result().body
            assert b"kept" in second.result().body
