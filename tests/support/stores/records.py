"""The record of a store as a whole: its root, completed by its shards."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import pytest

from generator.api import keys
from generator.publish import record
from generator.publish.record import Published
from generator.publish.record_shards import HeldLease, StoredShards
from generator.stores.store import Store, Stored
from generator.tree import row_shards, shards
from generator.tree.files import SHARDS

#: How the keys of indexes end, which say what the record leaves out.
_INDEX: Final = f"/{keys.INDEX}"


@dataclass(frozen=True)
class _Objects:
    """As much of a store as reading takes."""

    objects: Mapping[str, bytes]
    name: str = "store"
    parallel: int = 1

    def get(self, key: str) -> Stored | None:
        body = self.objects.get(key)
        return None if body is None else Stored(body, "")


class _Reader:
    """Holds no lease."""

    def renew_if_held(self) -> None:
        """Nothing to renew."""


def whole(objects: Mapping[str, bytes]) -> Published | None:
    """The record among these objects."""
    return _whole(parts(objects)) if record.KEY in objects else None


def parts(objects: Mapping[str, bytes]) -> frozenset[tuple[str, bytes]]:
    """The objects that are read for the record: its root, shards, and indexes."""
    return frozenset(
        item for item in objects.items() if item[0].startswith((record.KEY, SHARDS)) or item[0].endswith(_INDEX)
    )


@lru_cache(maxsize=64)
def _whole(found_in: frozenset[tuple[str, bytes]]) -> Published:
    objects = dict(found_in)
    shards_of = StoredShards(cast("Store", _Objects(objects)), "", cast("HeldLease", _Reader()))
    found = shards_of.read(record.decoded(objects[record.KEY]), None)
    return found.model_copy(update={"etags": dict(found.etags)})


def shard_keys(objects: Mapping[str, Any]) -> set[str]:
    """The keys of all shards, named by the record or not."""
    return {key for key in objects if key.startswith(SHARDS)}


def named_shards(objects: Mapping[str, bytes]) -> set[str]:
    """The keys of the shards that the record names."""
    root = objects.get(record.KEY)
    if root is None:
        return set()
    return {f"{SHARDS}{name}" for name in record.decoded(root).named_shards()}


#: Markets per shard in tests: few, so that small sites have several; the last is of a manifest in a folder.
_SMALL: Final = (
    (shards, "LEAST", 0), (shards, "_MARKETS", 2), (shards, "_FEWEST", 1), (shards, "_MOST", 6),
    (row_shards, "_MEAN", 3),
)  # fmt: skip


@contextmanager
def sharded() -> Iterator[None]:
    """Split even the smallest record and manifest."""
    with pytest.MonkeyPatch.context() as patch:
        _split(patch)
        yield


def _split(patch: pytest.MonkeyPatch) -> None:
    for module, name, value in _SMALL:
        patch.setattr(module, name, value)


def are_sharded() -> bool:
    """Whether even the smallest are split now."""
    return shards.number(1) > 0


def prepare() -> None:
    """Split even the smallest record and manifest, in all commands that a process forks."""
    _split(pytest.MonkeyPatch())
