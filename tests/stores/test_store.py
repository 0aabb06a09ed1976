"""The contract of every store: a directory, and buckets with the quirks of real stores."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from generator.api import keys
from generator.stores.directory import Directory
from generator.stores.requests import probe
from generator.stores.store import Condition, ConditionFailedError, If, SingleWriter, Store, UnavailableError
from tests.support.stores import places
from tests.support.stores.places import BUCKETS, CLIENTS, Client, Place, open_bucket
from tests.support.stores.s3.server import S3Server

KEY = "v1/public/markets/snapshot.json"
IMMUTABLE = keys.page("open/new", "g1", 20, 20)
THREADS = 128
DIRECTORY = ("directory", "", "")


def named(parameter: tuple[str, str, str]) -> str:
    return "-".join(filter(None, parameter))


@pytest.fixture(params=[DIRECTORY, *BUCKETS], ids=named)
def place(request: pytest.FixtureRequest) -> Place:
    return places.place(request)


@pytest.fixture(params=BUCKETS, ids=named)
def bucket(request: pytest.FixtureRequest) -> Place:
    return places.place(request)


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()


def won(store: Store, key: str, body: bytes, condition: If | str) -> bool:
    try:
        store.put(key, body, condition)
    except ConditionFailedError:
        return False
    return True


def body_of(store: Store, key: str) -> bytes | None:
    found = store.get(key)
    return found.body if found else None


# Objects present and absent


def test_an_object_that_was_never_put_is_absent(store: Store) -> None:
    assert store.get(KEY) is None
    assert store.head(KEY) is None
    assert list(store.list("")) == []


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("key", [KEY, IMMUTABLE])
def test_get_returns_what_was_last_put_without_a_condition(key: str, store: Store) -> None:
    for body in (b"{}", b"", bytes(range(256)) * 40, "“ß€𝄞”".encode()):
        etag = store.put(key, body, If.ALWAYS)
        found = store.get(key)
        assert found is not None
        assert (found.body, found.etag) == (body, etag)
        assert store.head(key) == etag
        # A directory does not read an immutable object for its ETag, which nobody compares.
        told = ["", etag] if key == IMMUTABLE else [etag]
        assert [(listed.key, listed.size) for listed in store.list("")] == [(key, len(body))]
        assert [listed.etag in told for listed in store.list("")] == [True]


@pytest.mark.parametrize("key", [KEY, IMMUTABLE])
def test_an_object_is_stored_with_the_headers_of_its_key(key: str, bucket: Place) -> None:
    bucket.open().put(key, b"{}", If.ABSENT)
    stored = {name.lower(): value for name, value in bucket.headers(key).items()}
    assert {name: stored[name.lower()] for name in keys.headers(key)} == keys.headers(key)


# Conditions


def test_a_put_if_absent_succeeds_once(store: Store) -> None:
    assert won(store, KEY, b"1", If.ABSENT)
    assert not won(store, KEY, b"2", If.ABSENT)
    assert body_of(store, KEY) == b"1"


def test_only_the_latest_etag_allows_a_replacement(store: Store) -> None:
    first = store.put(KEY, b"1", If.ABSENT)
    second = store.put(KEY, b"2", first)
    for other in (first, "0" * 32):
        assert not won(store, KEY, b"3", other)
    assert body_of(store, KEY) == b"2"
    assert won(store, KEY, b"4", second)
    assert body_of(store, KEY) == b"4"


def test_an_etag_from_another_client_is_valid(place: Place, store: Store) -> None:
    store.put(KEY, b"1", If.ABSENT)
    other = place.open()
    etag = other.head(KEY)
    assert etag is not None
    assert won(other, KEY, b"2", etag)
    assert not won(store, KEY, b"3", etag)
    assert won(store, KEY, b"4", next(store.list(KEY)).etag)


def test_a_deleted_object_is_not_replaced(store: Store) -> None:
    etag = store.put(KEY, b"1", If.ABSENT)
    store.delete([KEY])
    assert not won(store, KEY, b"2", etag)
    assert store.get(KEY) is None
    assert won(store, KEY, b"3", If.ABSENT)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("kind", ["new", "replaced"])
def test_of_many_concurrent_puts_exactly_one_wins(kind: str, store: Store) -> None:
    wanted = If.ABSENT if kind == "new" else store.put(KEY, b"first", If.ABSENT)

    def put(number: int) -> bool | None:
        try:
            return won(store, KEY, b"%d" % number, wanted)
        except UnavailableError:  # Ceph's answer to many concurrent puts
            return None

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(put, range(THREADS)))
    winner = int(body_of(store, KEY) or b"")
    assert results[winner] is not False
    assert {number for number, result in enumerate(results) if result} <= {winner}


# Listings and deletions


def test_a_listing_is_sorted_and_limited_to_its_prefix(store: Store) -> None:
    everything = ["v1/a", "v1/a-b", "v1/a.json", "v1/a0", "v1/ab/c", "v1/b/c/d", "v1/é", "w", "v1/b.json"]
    for key in [*everything, "v1/b/a"]:
        store.put(key, key.encode(), If.ALWAYS)
    assert [listed.key for listed in store.list("")] == sorted([*everything, "v1/b/a"])
    assert [listed.key for listed in store.list("v1/a")] == ["v1/a", "v1/a-b", "v1/a.json", "v1/a0", "v1/ab/c"]
    assert [listed.key for listed in store.list("v1/b/")] == ["v1/b/a", "v1/b/c/d"]
    assert [listed.key for listed in store.list("v1/b/c/d")] == ["v1/b/c/d"]
    assert [listed.key for listed in store.list("v1/a", "v1/a.json")] == ["v1/a0", "v1/ab/c"]
    assert list(store.list("v2/")) == []


def test_a_deletion_removes_only_the_given_objects(store: Store) -> None:
    for key in (KEY, IMMUTABLE, "v1/build.json"):
        store.put(key, b"1", If.ALWAYS)
    store.delete([KEY, "v1/never/there.json", IMMUTABLE])
    assert [listed.key for listed in store.list("")] == ["v1/build.json"]
    assert body_of(store, KEY) is None
    store.delete([])
    assert body_of(store, "v1/build.json") == b"1"


def test_a_store_that_keeps_no_versions_has_none_to_purge(store: Store) -> None:
    store.put(KEY, b"1", If.ALWAYS)
    store.put(KEY, b"2", If.ALWAYS)
    assert store.purge_versions("v1/") == 0
    assert body_of(store, KEY) == b"2"


# Properties of a store


def test_the_probe_accepts_conditional_puts_and_leaves_nothing(store: Store) -> None:
    assert probe(store)
    assert list(store.list("")) == []


# Wrapped stores


@pytest.mark.parametrize("client", CLIENTS)
def test_the_probe_detects_ignored_conditions_and_leaves_nothing(client: Client, s3: S3Server) -> None:
    s3.behaviour.ignores_conditions = True
    assert not probe(open_bucket(s3, client))
    assert s3.objects() == {}


class Deaf(Directory):
    """A store that honours only some conditions."""

    def __init__(self, root: Path, ignored: type) -> None:
        super().__init__(root)
        self._ignored = ignored

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        return super().put(key, body, If.ALWAYS if isinstance(condition, self._ignored) else condition)


class Forgetful(Directory):
    """A store that returns an ETag it does not recognize later."""

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        return super().put(key, body, condition) + "-as-of-now"


@pytest.mark.parametrize("make", [partial(Deaf, ignored=If), partial(Deaf, ignored=str), Forgetful])
def test_a_store_that_ignores_a_condition_or_does_not_know_its_own_etag_is_detected(
    make: Callable[[Path], Store], tmp_path: Path
) -> None:
    store = make(tmp_path)
    assert not probe(store)
    assert list(store.list("")) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_single_writer_needs_no_conditional_puts(client: Client, s3: S3Server) -> None:
    s3.behaviour.ignores_conditions = True
    store = SingleWriter(open_bucket(s3, client))
    assert probe(store)
    etag = store.put(KEY, b"1", If.ABSENT)
    assert not won(store, KEY, b"2", If.ABSENT)
    assert not won(store, KEY, b"2", "0" * 32)
    assert not won(store, "v1/other.json", b"2", etag)
    assert won(store, KEY, b"2", etag)
    assert won(store, KEY, b"3", If.ALWAYS)
    assert {key: body for key, (body, _) in s3.objects().items()} == {KEY: b"3"}
