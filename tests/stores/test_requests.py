"""Retries of requests, and parallel requests."""

import time
from collections.abc import Callable, Iterator

import pytest

from generator.errors import StoreError
from generator.stores.requests import listed, parallel_map, put_until_answered, with_retries
from generator.stores.store import ConditionFailedError, If, UnavailableError
from tests.support.stores.places import CLIENTS, Client, open_bucket
from tests.support.stores.s3.behaviour import APPLIED_BUT_DROPPED, APPLIED_BUT_FAILED, SLOW_DOWN, Fault
from tests.support.stores.s3.server import S3Server
from tests.support.stores.s3.wire import Request

KEY = "v1/build.json"


def failing(times: int, error: Exception) -> Callable[[], str]:
    """A call that fails a number of times, then returns."""
    left = [error] * times

    def call() -> str:
        if left:
            raise left.pop()
        return "answer"

    return call


@pytest.mark.parametrize("times", [0, 1, 5, 11])
def test_a_request_is_retried_until_it_is_answered(times: int, waits: list[float]) -> None:
    assert with_retries(failing(times, UnavailableError("busy"))) == "answer"
    assert len(waits) == times


def test_retries_end_when_a_store_stays_silent(waits: list[float]) -> None:
    with pytest.raises(UnavailableError, match="busy"):
        with_retries(failing(12, UnavailableError("busy")))
    assert len(waits) == 11
    assert sum(waits) < 80
    assert max(waits) <= 10


@pytest.mark.parametrize("error", [ConditionFailedError("k"), StoreError("no"), ValueError("bug")])
def test_a_refusal_is_not_retried(error: Exception, waits: list[float]) -> None:
    with pytest.raises(type(error)):
        with_retries(failing(1, error))
    assert waits == []


def once(fault: Fault) -> Callable[[Request], Fault | None]:
    left = [fault]
    return lambda request: left.pop() if request.operation == "PutObject" and left else None


@pytest.mark.parametrize("fault", [APPLIED_BUT_FAILED, APPLIED_BUT_DROPPED, SLOW_DOWN])
@pytest.mark.parametrize("condition", [If.ABSENT, If.ALWAYS, "etag"])
def test_a_put_with_a_lost_response_is_not_mistaken_for_a_refusal(
    s3: S3Server, fault: Fault, condition: If | str, waits: list[float]
) -> None:
    store = open_bucket(s3, "obstore")
    if condition == "etag":
        condition = store.put(KEY, b"old", If.ABSENT)
    s3.before = once(fault)
    etag = put_until_answered(store, KEY, b"new", condition)
    assert store.head(KEY) == etag
    assert s3.objects()[KEY][0] == b"new"


def test_somebody_elses_object_is_a_refusal(s3: S3Server) -> None:
    store = open_bucket(s3, "obstore")
    store.put(KEY, b"theirs", If.ABSENT)
    for condition in (If.ABSENT, '"stale"'):
        with pytest.raises(ConditionFailedError):
            put_until_answered(store, KEY, b"ours", condition)
    assert s3.objects()[KEY][0] == b"theirs"


def test_a_put_is_not_retried_without_the_lease(s3: S3Server, waits: list[float]) -> None:
    store = open_bucket(s3, "obstore")
    asked = []

    def require() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise StoreError("too late")

    s3.before = lambda _: SLOW_DOWN
    with pytest.raises(StoreError, match="too late"):
        put_until_answered(store, KEY, b"new", If.ALWAYS, require)
    assert s3.count("PutObject") == 2


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("page", [1, 3])
def test_a_page_of_a_listing_that_fails_costs_one_more_request(
    page: int, client: Client, s3: S3Server, waits: list[float]
) -> None:
    store = open_bucket(s3, client, "some/prefix/")
    for key in (written := [f"v1/{number}.json" for number in range(7)]):
        store.put(key, b"{}", If.ALWAYS)
    s3.behaviour.page_size = 2
    s3.before = lambda _: SLOW_DOWN if s3.count("ListObjectsV2") == page - 1 else None
    assert [found.key for found in listed(store, "v1/")] == written
    assert s3.count("ListObjectsV2") == 4 + 1
    assert len(waits) == 1
    s3.before = lambda _: SLOW_DOWN if s3.count("ListObjectsV2") > 5 else None
    with pytest.raises(UnavailableError):
        list(listed(store, "v1/"))


def test_results_come_in_the_order_of_the_items() -> None:
    def slow_at_first(number: int) -> int:
        time.sleep(0.02 if number < 3 else 0)
        return number * number

    assert list(parallel_map(slow_at_first, range(100), 8)) == [number * number for number in range(100)]


def test_an_error_is_raised_and_no_further_task_starts() -> None:
    started = []

    def work(number: int) -> int:
        started.append(number)
        if number == 10:
            raise StoreError("no")
        return number

    results = parallel_map(work, range(10_000), 2)
    with pytest.raises(StoreError, match="no"):
        list(results)
    assert len(started) < 100


def test_items_are_taken_lazily() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            taken.append(number)
            yield number

    results = parallel_map(lambda number: number, items(), 2)
    assert next(results) == 0
    assert len(taken) < 100
    results.close()  # type: ignore[attr-defined]
