"""Requests to a store that are repeated until they are answered, and many of them at once, every result consumed."""

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from generator.publish.stores.store import Condition, ConditionFailedError, If, Store, UnavailableError

Item = TypeVar("Item")
Result = TypeVar("Result")

#: When three of ten requests fail, one of two million fails so often in a row. Together at most about 75 s.
_ATTEMPTS: Final = 12
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 10
#: Tasks that wait for each thread, so that none is idle and memory stays small.
_WAITING: Final = 2
#: Items that a thread does one after the other: to hand each over by itself costs a sixth of all time.
_SHARE: Final = 4


def with_retries(call: Callable[[], Result]) -> Result:
    """Make a request that may be repeated, until the store answers."""
    try:
        return call()
    except UnavailableError:
        again = Retrying(
            retry=retry_if_exception_type(UnavailableError),
            stop=stop_after_attempt(_ATTEMPTS - 1),
            wait=wait_random_exponential(_FIRST_WAIT_S, _LONGEST_WAIT_S),
            reraise=True,
        )
        time.sleep(_FIRST_WAIT_S)
        return again(call)


def put_until_answered(
    store: Store, key: str, body: bytes, condition: Condition, require: Callable[[], None] = lambda: None
) -> str:
    """Put an object under a condition until the store answers; returns its ETag. `require` may forbid each attempt.

    A put that was applied but not acknowledged makes the next one fail: what is there tells the two apart.
    """

    def put() -> str:
        require()
        return store.put(key, body, condition)

    try:
        return with_retries(put)
    except ConditionFailedError:
        found = with_retries(lambda: store.get(key))
        if found is None or found.body != body:
            raise
        return found.etag


def probe(store: Store) -> bool:
    """Whether the store keeps to the conditions of puts, found out with an object that is deleted afterwards."""
    key = f"probe-{secrets.token_hex(16)}.json"
    try:
        etag = put_until_answered(store, key, b"1", If.ABSENT)
        if not _refuses(store, key, If.ABSENT):
            return False
        latest = put_until_answered(store, key, b"2", etag)
        return _refuses(store, key, etag) and with_retries(partial(store.head, key)) == latest
    except ConditionFailedError:  # the right ETag was refused
        return False
    finally:
        with_retries(partial(store.delete, [key]))


def _refuses(store: Store, key: str, condition: Condition) -> bool:
    try:
        with_retries(partial(store.put, key, b"3", condition))
    except ConditionFailedError:
        return True
    return False


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item], parallel: int) -> Iterator[Result]:
    """Do the work for every item in threads; results come in the order of the items, an error ends it all."""
    pending: deque[Future[list[Result]]] = deque()
    with ThreadPoolExecutor(parallel) as pool:
        try:
            for task in _tasks(iter(items), parallel):
                pending.append(pool.submit(_all, work, task))
                if len(pending) > parallel * _WAITING:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        finally:
            # Of an error, or of a caller that has had enough: what has not begun must not begin.
            for future in pending:
                future.cancel()


def _tasks(items: Iterator[Item], parallel: int) -> Iterator[list[Item]]:
    """Share the items out: one for every thread first, so that few of them use all threads, then some at a time."""
    for item in islice(items, parallel):
        yield [item]
    while some := list(islice(items, _SHARE)):
        yield some


def _all(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    return [work(item) for item in items]
