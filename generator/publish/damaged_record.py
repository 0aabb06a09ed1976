"""What is left of a large record whose shards, or the indexes that say what it leaves out, cannot all be read.

A run that verifies the store makes the record anew. The rest still says whose site this is, how old it is and how large
it was, and what publishers that were cut short may still do.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TypeVar

from generator.models import replaced
from generator.publish import chunk_names, record_shards, retired_shards
from generator.publish.chunk_names import Pair
from generator.publish.record import DamagedShardError, Published
from generator.stores.requests import parallel_map
from generator.stores.store import Store
from generator.tree import shards

Parsed = TypeVar("Parsed")


def rest(store: Store, root: Published) -> Published:
    """What can be read of the record with this root, without shards.

    `built.market_count` counts all of its markets. A generation whose index cannot be read has no chunks.
    """
    built = root.built
    found = _readable(store, record_shards.parsed, built.shard_names).values()
    whole = shards.joined(built, [rows for rows, _ in found]) if built.shard_names else built
    groups = _readable(store, retired_shards.parsed, root.retirements)
    dated = (retired_shards.retired_at(together, root.retirements[name]) for name, together in groups.items())
    retired = (*built.retired, *chain.from_iterable(dated))
    update = {
        "built": replaced(whole, retired=retired, market_count=built.market_count),
        "etags": {**root.etags, **{key: etag for _, part in found for key, etag in part.items()}},
        "retirements": {},
        "stale_shards": (),
    }
    return chunk_names.unpacked(replaced(root, **update), lambda pairs, _: map(partial(_chunks, store), pairs), {})


def _readable(store: Store, parse: Callable[[bytes, str], Parsed], names: Iterable[str]) -> dict[str, Parsed]:
    """The shards that can be read, by name."""

    def read(name: str) -> list[Parsed]:
        with suppress(DamagedShardError):
            return [record_shards.read_shard(store, parse, name)]
        return []

    wanted = [*filter(None, names)]
    found = zip(wanted, parallel_map(read, wanted, store.parallel), strict=True)
    return {name: parsed for name, some in found for parsed in some}


def _chunks(store: Store, pair: Pair) -> tuple[str, ...]:
    with suppress(DamagedShardError):
        return chunk_names.of_index(store, pair, may_be_gone=True) or ()
    return ()
