"""Requests to a store: repeated until they are answered, and many at once, with every result consumed."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    wait_random_exponential,
)

from generator.errors import StoreError
from generator.stores import probes
from generator.stores.store import (
    Condition,
    ConditionFailedError,
    If,
    Listed,
    Store,
    UnavailableError,
    UnreachableError,
)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: If three of ten requests fail, one of two million fails this often in a row. All waits together are at most 75 s.
_ATTEMPTS: Final = 12
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 10
#: After so long, or so many attempts, a store that cannot be reached is given up.
_UNREACHABLE_S: Final = 1.0
_UNREACHABLE_ATTEMPTS: Final = 2
_STAYS_WHOLE: Final = "what is published stays whole, the next run finishes the work"


def _gives_up(state: RetryCallState) -> bool:
    """Whether to give up; soon on a store that cannot be reached, as a wrong address does not become right."""
    error = state.outcome.exception() if state.outcome else None
    seconds, attempts = state.seconds_since_start or 0, state.attempt_number
    if isinstance(error, UnreachableError):
        return seconds > _UNREACHABLE_S or attempts >= _UNREACHABLE_ATTEMPTS
    return attempts >= _ATTEMPTS - 1


#: For all attempts but the first, which does without its overhead.
_RETRYING: Final = Retrying(
    retry=retry_if_exception_type(UnavailableError),
    stop=_gives_up,
    wait=wait_random_exponential(_FIRST_WAIT_S, _LONGEST_WAIT_S),
    reraise=True,
)
#: Tasks queued per thread: enough that none is idle, few enough to keep memory small.
_QUEUED_PER_THREAD: Final = 2
#: Items per task, also of puts to a bucket: handing over each item by itself takes a sixth of the time.
ITEMS_PER_TASK: Final = 4


def with_retries(call: Callable[[], _Result]) -> _Result:
    """Make a request that is safe to repeat, until the store answers."""
    try:
        return call()
    except UnavailableError:
        time.sleep(_FIRST_WAIT_S)
        return _RETRYING(call)


def listed(store: Store, prefix: str) -> Iterator[Listed]:
    """List objects until the store answers each request; after one that failed, go on where it broke off."""
    last = ""
    rest: Iterator[Listed] | None = None

    def following() -> Listed | None:
        nonlocal rest
        rest = rest or store.list(prefix, last)
        try:
            return next(rest, None)
        except UnavailableError:
            rest = None
            raise

    while (one := with_retries(following)) is not None:
        last = one.key
        yield one


@contextmanager
def explaining_outage(store: Store, *, is_published: bool = False) -> Iterator[None]:
    """Raise StoreError with one sentence for a store that does not answer, even after all retries.

    `is_published` says that the store is known to hold a published state, which the operator will be anxious about.
    """
    try:
        yield
    except UnavailableError as error:
        is_reached = not isinstance(error, UnreachableError)
        remedy = _STAYS_WHOLE if is_published and is_reached else f"{what_to_check(store)}, then run again"
        raise StoreError(f"{store.name}: does not answer ({error}); {remedy}") from error


def what_to_check(store: Store) -> str:
    """What may keep a store from answering."""
    is_bucket = store.name.startswith("s3://")
    return "check publish.endpoint_url and the network" if is_bucket else "wait for the other process, or end it"


def put_until_answered(
    store: Store, key: str, body: bytes, condition: Condition, require: Callable[[], None] = lambda: None
) -> str:
    """Put an object under a condition until the store answers; return its ETag. `require` may forbid each attempt.

    After a put that was applied but not acknowledged the next attempt fails its condition: if the object then has
    these bytes, the put succeeded.
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
    """Whether the store honours the conditions of puts; tried with an object that is deleted afterwards."""
    key = probes.new_key()
    # A StoreError here means that nothing was written; deleting it anyway could replace this error by another.
    try:
        etag = put_until_answered(store, key, probes.body(store, 1), If.ABSENT)
    except (ConditionFailedError, UnavailableError) as error:
        with_retries(partial(store.delete, [key]))
        if isinstance(error, UnavailableError):
            raise
        return False
    try:
        if not _refuses(store, key, If.ABSENT):
            return False
        latest = put_until_answered(store, key, probes.body(store, 2), etag)
        return _refuses(store, key, etag) and with_retries(partial(store.head, key)) == latest
    except ConditionFailedError:  # the current ETag was refused
        return False
    finally:
        with_retries(partial(store.delete, [key]))


def _refuses(store: Store, key: str, condition: Condition) -> bool:
    try:
        with_retries(partial(store.put, key, probes.body(store, 3), condition))
    except ConditionFailedError:
        return True
    return False


def parallel_map(
    work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int, at_once: int = ITEMS_PER_TASK,
    together: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[_Result]:  # fmt: skip
    """Yield the result for every item, in order, computed in threads; the first error cancels the rest.

    A thread does `at_once` items one after the other, in a block of `together`.
    """
    pending: deque[Future[list[_Result]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for task in _tasks(iter(items), threads, at_once):
                pending.append(pool.submit(_all, work, task, together))
                if len(pending) > threads * _QUEUED_PER_THREAD:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        finally:
            # After an error, or when the caller stops early, do not begin what is queued.
            for future in pending:
                future.cancel()


def parallel_puts(store: Store, put: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """The same for work that puts an object per item, as suits the store."""
    return parallel_map(put, items, store.parallel, store.at_once, store.together)


def body_of(store: Store, key: str) -> bytes | None:
    """An object's bytes; None if it does not exist."""
    stored = with_retries(partial(store.get, key))
    return stored.body if stored else None


def etags_of(store: Store, object_keys: Collection[str]) -> dict[str, str | None]:
    """The ETags of these objects by key; None for an object that does not exist."""
    wanted = sorted(object_keys)
    etags = parallel_map(lambda key: with_retries(partial(store.head, key)), wanted, store.parallel)
    return dict(zip(wanted, etags, strict=True))


def _tasks(items: Iterator[_Item], threads: int, at_once: int) -> Iterator[list[_Item]]:
    """Batch the items: one for each thread first, so that a few items use all threads, then several at a time."""
    for item in islice(items, threads):
        yield [item]
    while batch := list(islice(items, at_once)):
        yield batch


def _all(
    work: Callable[[_Item], _Result], items: Iterable[_Item], together: Callable[[], AbstractContextManager[None]]
) -> list[_Result]:
    with together():
        return [work(item) for item in items]
