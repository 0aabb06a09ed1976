"""The record of a store as a whole: its root, completed by its state and intent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import pytest

from generator.publish import record, states
from generator.publish.record import Published
from generator.publish.states import StoredStates, key
from generator.stores.store import Store, Stored
from generator.tree import fingerprints, state
from generator.tree.files import STATES


@dataclass(frozen=True)
class _Objects:
    """As much of a store as reading takes."""

    objects: Mapping[str, bytes]
    name: str = "store"
    parallel: int = 1

    def get(self, key: str) -> Stored | None:
        body = self.objects.get(key)
        return None if body is None else Stored(body, "")


def whole(objects: Mapping[str, bytes]) -> Published | None:
    """The record among these objects."""
    return _whole(parts(objects)) if record.KEY in objects else None


def parts(objects: Mapping[str, bytes]) -> frozenset[tuple[str, bytes]]:
    """The objects that are read for the record: its root, state and intent."""
    return frozenset(item for item in objects.items() if item[0].startswith((record.KEY, STATES)))


@lru_cache(maxsize=64)
def _whole(found_in: frozenset[tuple[str, bytes]]) -> Published:
    objects = dict(found_in)
    return StoredStates(cast("Store", _Objects(objects)), lambda: None).read(record.decoded(objects[record.KEY]))


def state_keys(objects: Mapping[str, Any]) -> set[str]:
    """The keys of all states and intents, named by the record or not."""
    return {key for key in objects if key.startswith(STATES)}


def named_states(objects: Mapping[str, bytes]) -> set[str]:
    """The keys of the states and intents that the record names, or that it is to delete."""
    root = objects.get(record.KEY)
    if root is None:
        return set()
    found = record.decoded(root)
    return {*map(key, found.named() | found.stale.keys())}


def newer_states(objects: Mapping[str, bytes]) -> set[str]:
    """The keys of the states that a publisher put before a root that never came, or is still to come."""
    sequence = record.decoded(objects[record.KEY]).sequence
    return {key for key in state_keys(objects) if int(key.removeprefix(STATES).partition("-")[0]) > sequence}


#: Even the smallest records and manifests have a state, and few details several shards.
_SMALL: Final = ((state, "LEAST", 0), (fingerprints, "LEAST", 0), (fingerprints, "_MEAN", 3))

#: Every intent is an object.
_EVERY_INTENT: Final = ((states, "_SMALL", 0),)


@contextmanager
def split(*, has_small_intents: bool = False) -> Iterator[None]:
    """Split even the smallest record and manifest; the root itself may have intents that are small."""
    with pytest.MonkeyPatch.context() as patch:
        _split(patch, has_small_intents=has_small_intents)
        yield


def _split(patch: pytest.MonkeyPatch, *, has_small_intents: bool = False) -> None:
    for module, name, value in (*_SMALL, *(() if has_small_intents else _EVERY_INTENT)):
        patch.setattr(module, name, value)


def are_split() -> bool:
    """Whether even the smallest are split now."""
    return not state.LEAST


def prepare() -> None:
    """Split even the smallest record and manifest, in all commands that a process forks."""
    _split(pytest.MonkeyPatch())
