"""What a manifest says of single markets and objects, split into shards by a hash of their ids. Pure.

A build that changes few markets changes few shards, so only these are read, compared and written. Equal shards have
equal digests, wherever they lie. The first pages of a list are together in one of the shards of markets; all other
objects that are not details share the last shard. Small manifests have none.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from generator.api import keys
from generator.models import replaced
from generator.tree.manifest import Manifest

#: Manifests of fewer markets stay whole: one file is read and written sooner than many.
LEAST: Final = 1_000
#: Markets per shard: about this many at first, and between the other two while the site grows or shrinks.
_MARKETS: Final = 16
_FEWEST: Final = 8
_MOST: Final = 48
#: Characters of a digest, 6 bits each.
DIGEST_LENGTH: Final = 12
#: Values of a row.
_LENGTHS: Final = frozenset((3, 4))
_EXTENSION: Final = ".json"
_FIRST_PAGES: Final = f"/{keys.FIRST}"

#: What shards say of a manifest.
FIELDS: Final = ("objects", "markets", "slugs", "site_keys")
#: A market or object by its name: its object's digest, its memberships, its slugs; None for what it lacks. A market
#: with a key on the operator's site has that, too.
ShardRow: TypeAlias = (
    tuple[str | None, Sequence[str] | None, Sequence[str] | None]
    | tuple[str | None, Sequence[str] | None, Sequence[str] | None, str]
)
#: The rows of one shard by name: the market's id, or an object's key.
Rows: TypeAlias = dict[str, ShardRow]


def number(markets: int, before: int = 0) -> int:
    """The number of shards for so many markets, a power of two; 0 for none. `before` is kept while it fits."""
    if markets < (LEAST // 2 if before else LEAST):
        return 0
    if before and _FEWEST * before <= markets <= _MOST * before:
        return before
    return 1 << max(0, (markets // _MARKETS).bit_length() - 1)


def changed(markets: int, objects: int) -> int:
    """About how many shards of so many markets change with so many objects, the one of other objects included."""
    shards = number(markets)
    return round(shards * (1 - (1 - 1 / shards) ** objects)) + 1 if shards else 0


def name_of(key: str) -> str:
    """The name of an object's row: the market's id for a detail by id, else its key."""
    market_id = key.rpartition("/")[2].removesuffix(_EXTENSION)
    return market_id if key == keys.detail(market_id) else key


def key_of(name: str) -> str:
    """The key of the object of a row."""
    return name if "/" in name else keys.detail(name)


def place(name: str, shards: int) -> int:
    """Which of so many shards has the row; the one after them has what is neither a detail nor a first page."""
    folder = name.rpartition("/")[0] if "/" in name else ""
    if not folder or keys.is_detail(name):
        return zlib.crc32(name.encode()) % shards
    # In layout `pages`, a list has a hundred, which change together.
    return zlib.crc32(folder.encode()) % shards if folder.endswith(_FIRST_PAGES) else shards


def split(built: Manifest, shards: int) -> list[Rows]:
    """The rows of the manifest, by shard."""
    found: list[Rows] = [{} for _ in range(shards + 1)]
    objects, markets, slugs, site_keys = built.objects, built.markets, built.slugs, built.site_keys
    # Nearly all objects are details of these: made from ids, their keys need no parsing.
    market_ids = markets.keys() | slugs.keys()
    details = {keys.detail(market_id): market_id for market_id in market_ids}
    for key, market_id in details.items():
        row = objects.get(key), markets.get(market_id), slugs.get(market_id)
        site_key = site_keys.get(market_id)
        found[place(market_id, shards)][market_id] = row if site_key is None else (*row, site_key)
    for key in objects.keys() - details.keys():
        name = name_of(key)
        found[place(name, shards)][name] = (objects[key], None, None)
    return found


def without_rows(built: Manifest) -> Manifest:
    """The manifest without what its shards say."""
    return replaced(built, **{name: {} for name in FIELDS})


def joined(built: Manifest, shards: Iterable[Rows]) -> Manifest:
    """The manifest with what its shards say."""
    objects, markets, slugs = dict[str, str](), dict[str, tuple[str, ...]](), dict[str, tuple[str, ...]]()
    site_keys = dict[str, str]()
    for rows in shards:
        for name, (digest_, memberships, found_by, *site_key) in rows.items():
            if digest_ is not None:
                objects[key_of(name)] = digest_
            if memberships is not None:
                markets[name] = tuple(memberships)
            if found_by is not None:
                slugs[name] = tuple(found_by)
            if site_key:
                (site_keys[name],) = site_key
    found: tuple[Mapping[str, Any], ...] = (objects, markets, slugs, site_keys)
    update = {
        field: {name: entries[name] for name in sorted(entries)} for field, entries in zip(FIELDS, found, strict=True)
    }
    return replaced(built, **update, shard_names=(), market_count=0)


def encoded(rows: Rows) -> bytes:
    """A line of JSON without line breaks: equal rows give equal bytes."""
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode()


def decoded(line: bytes) -> Rows:
    """The rows of such a line; raise ValueError if it is none."""
    found = json.loads(line)
    if not isinstance(found, dict) or not all(isinstance(row, list) and len(row) in _LENGTHS for row in found.values()):
        raise ValueError("no shard")
    return {
        name: (digest_, _tuple(memberships), _tuple(slugs), *site_key)
        for name, (digest_, memberships, slugs, *site_key) in found.items()
    }


def _tuple(found: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if found is None else tuple(found)


def digest(line: bytes) -> str:
    """The digest of a shard's rows, safe in a file's name; empty for a shard without rows."""
    if line == b"{}":
        return ""
    return base64.urlsafe_b64encode(hashlib.sha256(line).digest())[:DIGEST_LENGTH].decode()
