"""What a large record says of a few markets: its root tells which shards they are in, and only these are read."""

from collections.abc import Collection
from functools import partial

from generator.publish import record, record_shards
from generator.publish.record import DamagedShardError, Published
from generator.stores.requests import parallel_map
from generator.stores.store import Store
from generator.tree import shards
from generator.tree.manifest import Manifest


def manifest_of(store: Store, root: Published, ids: Collection[str]) -> Manifest:
    """What the record with this root says of these markets, and of those that share a shard with them.

    Raise DamagedShardError if one of these shards is missing or altered.
    """
    names, count = root.built.shard_names, len(root.built.shard_names) - 1
    if not names:
        return root.built
    if not count:
        raise DamagedShardError(store.name, record.KEY, is_missing=False)
    wanted = {names[shards.place(market_id, count)] for market_id in ids} - {""}
    read = partial(record_shards.read_shard, store, record_shards.parsed)
    return shards.joined(root.built, [rows for rows, _ in parallel_map(read, sorted(wanted), store.parallel)])
