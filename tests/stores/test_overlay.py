"""The store of a dry run answers as the store below would if everything had been written there, and writes nothing."""

import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.stores.directory import Directory
from generator.stores.overlay import Overlay
from generator.stores.store import MOST_DELETED, Condition, ConditionFailedError, If, Store
from tests.support.stores.places import CLIENTS, Client, open_bucket
from tests.support.stores.s3.server import S3Server

RECORD: Final = "manifest.json"
PAGE: Final = "v1/public/markets/snapshot.json"
#: Private objects, whose conditions are asked for, and published ones.
PRIVATE: Final = (RECORD, "state/0", "state/1")
PUBLISHED: Final = (PAGE, "v1/build.json")
#: The bodies of published objects, where none is put.
NONE: Final = dict[str, bytes]()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_condition_on_a_published_object_costs_no_request(client: Client, s3: S3Server) -> None:
    store = open_bucket(s3, client)
    overlay = Overlay(store, {PAGE: b"1"}.get)
    before = store.requests
    etag = overlay.put(PAGE, b"1", "as recorded")
    assert store.requests == overlay.requests == before
    with pytest.raises(ConditionFailedError):
        overlay.put(PAGE, b"2", "as recorded")
    overlay.put(PAGE, b"2", etag)
    overlay.flush()
    assert (overlay.purge_versions(""), overlay.is_open_to_everyone()) == (0, False)
    assert (overlay.name, overlay.parallel) == (store.name, store.parallel)
    assert s3.objects() == {}


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
        assert [*overlay.list("", PRIVATE[1])] == [*real.list("", PRIVATE[1])]
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
