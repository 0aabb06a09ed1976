"""The store of a dry run answers as the store below would if everything had been written there, and writes nothing."""

import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.stores.directory import Directory
from generator.stores.overlay import Overlay
from generator.stores.requests import body_of, probe
from generator.stores.store import MOST_DELETED, Condition, ConditionFailedError, If, Store
from tests.support.stores import places
from tests.support.stores.places import BUCKETS, Place

RECORD: Final = "manifest.json"
PAGE: Final = "v1/public/markets/snapshot.json"
#: Private objects, whose conditions are asked for, and published ones.
PRIVATE: Final = (RECORD, "state/0", "state/1")
PUBLISHED: Final = (PAGE, "v1/build.json")
#: The bodies of published objects, where none is put.
NONE: Final = dict[str, bytes]()


@pytest.fixture(params=[("directory", "", ""), *BUCKETS], ids=lambda parameter: "-".join(filter(None, parameter)))
def place(request: pytest.FixtureRequest) -> Place:
    return places.place(request)


def test_what_is_written_is_found_there_and_not_in_the_store_below(place: Place) -> None:
    store = place.open()
    store.put(PAGE, b"1", If.ALWAYS)
    before = [*store.list("")]
    overlay = Overlay(store, {PAGE: b"2"}.get)
    assert (overlay.name, overlay.parallel) == (store.name, store.parallel)
    assert (body_of(overlay, PAGE), overlay.head(PAGE)) == (b"1", store.head(PAGE))
    etags = [overlay.put(PAGE, b"2", If.ALWAYS), overlay.put(RECORD, b"22", If.ABSENT)]
    assert [overlay.head(PAGE), overlay.head(RECORD)] == etags
    assert (body_of(overlay, PAGE), body_of(overlay, RECORD)) == (b"2", b"22")
    assert [(found.key, found.size) for found in overlay.list("")] == [(RECORD, 2), (PAGE, 1)]
    overlay.delete([PAGE])
    overlay.flush()
    assert overlay.purge_versions("") == 0
    assert not overlay.is_open_to_everyone()
    assert (overlay.get(PAGE), overlay.head(PAGE)) == (None, None)
    assert [found.key for found in overlay.list("")] == [RECORD]
    assert [*store.list("")] == before


def test_a_record_can_be_replaced_only_by_who_knows_it(place: Place) -> None:
    store = place.open()
    etag = store.put(RECORD, b"1", If.ALWAYS)
    overlay = Overlay(store, NONE.get)
    for condition in (If.ABSENT, "another"):
        with pytest.raises(ConditionFailedError):
            overlay.put(RECORD, b"2", condition)
    second = overlay.put(RECORD, b"2", etag)
    with pytest.raises(ConditionFailedError):
        overlay.put(RECORD, b"3", etag)
    overlay.put(RECORD, b"3", second)
    assert body_of(store, RECORD) == b"1"


def test_it_passes_the_probe_of_stores_and_the_store_below_sees_no_write(place: Place) -> None:
    store = place.open()
    assert probe(Overlay(store, NONE.get))
    assert [*store.list("")] == []


def test_a_condition_on_a_published_object_costs_no_request(place: Place) -> None:
    store = place.open()
    overlay = Overlay(store, {PAGE: b"1"}.get)
    before = store.requests
    etag = overlay.put(PAGE, b"1", "as recorded")
    assert store.requests == overlay.requests == before
    with pytest.raises(ConditionFailedError):
        overlay.put(PAGE, b"2", "as recorded")
    overlay.put(PAGE, b"2", etag)


def test_deletions_are_announced_as_a_bucket_would() -> None:
    with tempfile.TemporaryDirectory() as folder:
        overlay, announced = Overlay(Directory(Path(folder)), NONE.get), list[int]()
        overlay.delete([f"v1/{number}.json" for number in range(MOST_DELETED + 1)], lambda: announced.append(1))
    assert len(announced) == 2


CONDITIONS: Final = st.sampled_from([If.ALWAYS, If.ABSENT, "current", "another"])
STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete"]), st.sampled_from([*PRIVATE, *PUBLISHED]), st.binary(max_size=2), CONDITIONS
    ),
    max_size=12,
)


@given(st.dictionaries(st.sampled_from([*PRIVATE, *PUBLISHED]), st.binary(max_size=2)), STEPS)
def test_it_answers_as_a_store_to_which_the_same_was_written(
    stored: dict[str, bytes], steps: list[tuple[str, str, bytes, Condition]]
) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        below, real = Directory(Path(one)), Directory(Path(other))
        for store in (below, real):
            for key, body in stored.items():
                store.put(key, body, If.ALWAYS)
        bodies = dict(stored)
        overlay, before = Overlay(below, bodies.get), [*below.list("")]
        for what, key, body, condition in steps:
            if what == "delete":
                overlay.delete([key])
                real.delete([key])
                continue
            # On published objects, conditions that hold: others are found only once the object was written here.
            wanted = If.ALWAYS if key in PUBLISHED and condition in (If.ABSENT, "another") else condition
            answers = [_put(store, key, body, wanted) for store in (overlay, real)]
            assert answers[0] == answers[1]
            if answers[0] is not None:
                bodies[key] = body
        assert [*overlay.list("")] == [*real.list("")]
        assert [overlay.get(key) for key in (*PRIVATE, *PUBLISHED)] == [real.get(key) for key in (*PRIVATE, *PUBLISHED)]
        assert [*below.list("")] == before


def _put(store: Store, key: str, body: bytes, condition: Condition) -> str | None:
    """The new ETag; None if the condition does not hold."""
    if condition == "current":
        condition = store.head(key) or If.ABSENT
    try:
        return store.put(key, body, condition)
    except ConditionFailedError:
        return None
