"""Retired generations in shards: a publish puts what it retires, not what earlier ones have retired."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from functools import cache
from typing import Any, Final, cast

import pytest

from generator.publish import record
from generator.publish.lease import Lease
from generator.publish.record import Published
from generator.tree.files import SHARDS
from generator.tree.manifest import Current, Manifest, Retired
from tests.support.sites.builds import manifest_of
from tests.support.stores.places import MemoryStore
from tests.support.stores.records import sharded

#: Builds that replaced every list within the lifetime of cursors.
BUILDS: Final = 30
LISTS: Final = tuple(f"open.category-{number}/new" for number in range(40))


def generation(list_name: str, build: int) -> Current:
    return Current(generation=f"p{build:04}{hash_of(list_name)}", count=100, bytes=10_000)


def hash_of(list_name: str) -> str:
    return f"{LISTS.index(list_name):015x}"


def at(build: int) -> str:
    return f"2026-01-31T{build // 60:02}:{build % 60:02}:00.000Z"


@cache
def retired(builds: range, *, gone: frozenset[str] = frozenset()) -> tuple[Retired, ...]:
    return tuple(
        Retired(list=name, retired_at=at(build), **dict(generation(name, build)))
        for build in builds for name in LISTS if name not in gone
    )  # fmt: skip


def published(builds: range, **update: Any) -> Published:
    """The record after so many builds, of which the last is current."""
    fields: dict[str, Any] = {"retired": retired(builds[:-1]), **update}
    built = manifest_of(
        as_of=at(builds[-1]), current={name: generation(name, builds[-1]) for name in LISTS},
        objects={"v1/build.json": "d"}, markets={"m": ("open",)}, **fields,
    )  # fmt: skip
    return Published(sequence=0, built=built, etags={"v1/build.json": "e"})


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def opened(store: MemoryStore, known: Manifest | None = None) -> Lease:
    lease = Lease(cast("Any", store), timedelta(minutes=5))
    lease.read(known)
    return lease


def put(store: MemoryStore, wanted: Published, known: Manifest | None = None) -> None:
    """Put a record, as a publish does."""
    lease = opened(store, known)
    lease.take(wanted, ())
    lease.sweep_shards(is_thorough=False)
    lease.release(wanted)


def root(store: MemoryStore) -> Any:
    return json.loads(store.objects[record.KEY])


@pytest.fixture(params=[True, False], ids=["markets in shards", "few markets"])
def whole_day(request: pytest.FixtureRequest, store: MemoryStore) -> Iterator[Published]:
    """A record with the retirements of a day, in shards, whether markets are in shards or not."""
    with sharded() if request.param else nullcontext():
        put(store, published(range(BUILDS)))
        yield published(range(BUILDS))


def test_a_publish_puts_what_it_retires_and_not_what_a_day_retired(store: MemoryStore, whole_day: Published) -> None:
    assert len(whole_day.built.retired) > 1_000
    known, before = whole_day.built, {*store.objects}
    store.traffic.clear()
    put(store, published(range(BUILDS + 1)), known)
    assert len([key for key in store.objects.keys() - before if key.startswith(SHARDS)]) <= 3
    size = sum(store.traffic.values())
    assert size < 30_000, "each of two roots with all of them would have 150 kB"


def test_all_retirements_are_read_back_with_their_times(store: MemoryStore, whole_day: Published) -> None:
    found = opened(store).published
    assert found
    assert sorted(found.built.retired, key=str) == sorted(whole_day.built.retired, key=str)
    assert not found.retirements


def test_what_the_folder_knows_is_not_read(store: MemoryStore, whole_day: Published) -> None:
    reads: list[str] = []
    store.before_get = reads.append
    opened(store, whole_day.built)
    assert not [key for key in reads if key.startswith(SHARDS)]


def test_generations_that_are_gone_are_gone_from_their_shards(store: MemoryStore, whole_day: Published) -> None:
    rest = retired(range(10, BUILDS - 1), gone=frozenset(LISTS[:39]))
    put(store, published(range(BUILDS), retired=rest), whole_day.built)
    found = opened(store).published
    assert found
    assert sorted(found.built.retired, key=str) == sorted(rest, key=str)
    left = [body for key, body in store.objects.items() if key.startswith(SHARDS)]
    assert not [body for body in left if LISTS[0].encode() in body]


def test_what_may_be_incomplete_stays_in_the_root(store: MemoryStore, whole_day: Published) -> None:
    begun = whole_day.built.retired[-1].model_copy(update={"generation": "p9", "partial": True})
    put(store, published(range(BUILDS), retired=(*whole_day.built.retired, begun)), whole_day.built)
    assert [entry["generation"] for entry in root(store)["built"]["retired"]] == ["p9"]
    found = opened(store).published
    assert found
    assert begun in found.built.retired


def test_a_small_record_with_few_retirements_stays_whole(store: MemoryStore) -> None:
    put(store, published(range(9)))
    assert len(root(store)["built"]["retired"]) == 8 * len(LISTS)
    assert [*store.objects] == [record.KEY]


def test_a_record_whose_retirements_have_become_few_is_made_whole(store: MemoryStore) -> None:
    put(store, published(range(BUILDS)))
    assert root(store)["built"]["retired"] == []
    put(store, published(range(BUILDS), retired=retired(range(25, 28))))
    assert len(root(store)["built"]["retired"]) == 3 * len(LISTS)
    assert [*store.objects] == [record.KEY]


def test_what_a_killed_run_may_have_made_current_again_is_read_back_from_a_record_in_shards(store: MemoryStore) -> None:
    lease = Lease(cast("Any", store), timedelta(minutes=15))
    lease.read()
    wanted = published(range(BUILDS))
    lease.take(wanted, ())
    first, *others = wanted.built.retired
    marked = first.model_copy(update={"may_be_current": True})
    built = wanted.built.model_copy(update={"retired": (marked, *others)})
    lease.take(wanted.model_copy(update={"built": built}), ())
    read = Lease(cast("Any", store), timedelta(minutes=15)).read()
    assert read
    assert [entry.pair for entry in read.built.retired if entry.may_be_current] == [first.pair]
    assert len(read.built.retired) == len(wanted.built.retired)
