"""What a folder's large manifest says of markets, objects and generations, in shards named by their content. Pure.

Markets are sorted by id, other objects by key. The hash of a name decides whether a shard begins with it, so a market
that comes, goes or changes touches one shard or two, however many there are. Every generation has
a shard of its own for the names of its chunks.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from zlib import crc32

from pydantic_core import from_json, to_json

from generator.api import keys
from generator.models import replaced
from generator.tree import manifest, membership, shards
from generator.tree.manifest import Current, Manifest, RowShards

#: One name in so many begins a shard: a compromise between what a change writes, about 10 KB, and the number of files.
_MEAN: Final = 128
#: Hexadecimal digits of a shard's name.
_NAME_LENGTH: Final = 24
_NAME: Final = re.compile(rf"[0-9a-f]{{{_NAME_LENGTH}}}", re.ASCII)


def are_worth_it(markets: int, *, is_split: bool) -> bool:
    """Whether a manifest of so many markets is split; one that is split already stays so down to half as many."""
    return markets >= (shards.LEAST // 2 if is_split else shards.LEAST)


def name_of(body: bytes) -> str:
    """The name of a shard: shards of equal names are equal."""
    return hashlib.sha256(body).hexdigest()[:_NAME_LENGTH]


def is_name(text: str) -> bool:
    """Whether a shard could have this name."""
    return _NAME.fullmatch(text) is not None


def split(built: Manifest) -> Iterator[bytes]:
    """The shards of the manifest's markets and objects, in order."""
    ids = sorted(built.markets.keys() | built.slugs.keys() if built.slugs else built.markets)
    details = 0
    for first, last in _groups(ids):
        named = ids[first:last]
        digests = [built.objects.get(keys.detail(market_id)) for market_id in named]
        details += len(named) - digests.count(None)
        yield to_json(_columns(built, named, digests))
    others = sorted(_others(built, details))
    for first, last in _groups(others):
        yield to_json({"objects": {key: built.objects[key] for key in others[first:last]}})


def _columns(built: Manifest, ids: Sequence[str], digests: Sequence[str | None]) -> dict[str, Any]:
    memberships = [*map(built.markets.get, ids)]
    kinds = {kind: place for place, kind in enumerate(dict.fromkeys(memberships))}
    places = [kinds[membership] for membership in memberships]
    slugs = [*map(built.slugs.get, ids)]
    found: dict[str, Any] = {"slugs": slugs} if any(known is not None for known in slugs) else {}
    site_keys = [*map(built.site_keys.get, ids)] if built.site_keys else []
    found |= {"siteKeys": site_keys} if any(known is not None for known in site_keys) else {}
    return {"ids": ids, "digests": digests, "kinds": [*kinds], "memberships": places, **found}


def _others(built: Manifest, details: int) -> Collection[str]:
    """The keys of all objects but the details by id of known markets; `details` is the number of those."""
    others = [key for key in built.objects if not key.startswith(keys.DETAILS)]
    if len(others) + details == len(built.objects):
        return others
    return built.objects.keys() - set(map(keys.detail, built.markets.keys() | built.slugs.keys()))


def grouped(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Sorted names in groups: adding or removing a name changes one group or two, however many there are."""
    return (names[first:last] for first, last in _groups(names))


def _groups(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the groups of sorted names begin and end."""
    borders = [place for place, name in enumerate(names) if place and not crc32(name.encode()) % _MEAN]
    return pairwise([0, *borders, len(names)] if names else [])


def of_chunks(chunks: Sequence[str]) -> bytes:
    """The shard of a generation's chunks."""
    return to_json({"chunks": chunks})


def generation_key(pair: tuple[str, str]) -> str:
    """What the root calls a generation, by list and name."""
    return "/".join(pair)


def without_rows(built: Manifest, found: RowShards) -> Manifest:
    """The root: the manifest without what its shards say."""
    return replaced(shards.without_rows(built), row_shards=found).with_chunks(lambda *_: ())


def joined(root: Manifest, bodies: Mapping[str, bytes], *, is_light: bool = False) -> Manifest:
    """The manifest with what its shards say; `is_light` leaves out the digests of details by id.

    `bodies` has all that it names.
    """
    found = root.row_shards or RowShards()
    rows, intended = _Rows(), _Rows()
    for name in found.intended:
        intended.add(from_json(bodies[name]), is_light=True)
    for name in found.names:
        rows.add(from_json(bodies[name]), is_light=is_light)
    chunks = {key: tuple(from_json(bodies[name])["chunks"]) for key, name in found.chunks.items()}
    markets, slugs, site_keys = rows.markets, rows.slugs, rows.site_keys
    if found.intended:
        markets, slugs = membership.union(markets, intended.markets), membership.union(slugs, intended.slugs)
        site_keys = {**manifest.newest(site_keys, intended.site_keys)}
    update = {
        "objects": rows.objects(), "markets": markets, "slugs": slugs, "site_keys": site_keys, "row_shards": None,
    }  # fmt: skip

    def names(list_name: str, entry: Current) -> tuple[str, ...]:
        return chunks.get(generation_key((list_name, entry.generation)), entry.chunks)

    return replaced(root, **update).with_chunks(names)


class _Rows:
    """The rows of several shards, in their order."""

    def __init__(self) -> None:
        self.markets: dict[str, tuple[str, ...]] = {}
        self.slugs: dict[str, tuple[str, ...]] = {}
        self.site_keys: dict[str, str] = {}
        self._details: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._kinds: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(self, content: dict[str, Any], *, is_light: bool) -> None:
        """Add those of one shard."""
        if "objects" in content:
            self._others.update(content["objects"])
            return
        ids, kinds = content["ids"], [None if kind is None else self._kind(tuple(kind)) for kind in content["kinds"]]
        if None in kinds:
            found = zip(ids, (kinds[place] for place in content["memberships"]), strict=True)
            self.markets.update({market_id: kind for market_id, kind in found if kind is not None})
        else:
            self.markets.update(zip(ids, (kinds[place] for place in content["memberships"]), strict=True))
        if "slugs" in content:
            named = zip(ids, content["slugs"], strict=True)
            self.slugs.update({market_id: tuple(slugs) for market_id, slugs in named if slugs is not None})
        if "siteKeys" in content:
            named = zip(ids, content["siteKeys"], strict=True)
            self.site_keys.update({market_id: key for market_id, key in named if key is not None})
        if not is_light:
            digests = zip(map(keys.detail, ids), content["digests"], strict=True)
            self._details.update({key: digest for key, digest in digests if digest is not None})

    def _kind(self, memberships: tuple[str, ...]) -> tuple[str, ...]:
        """One tuple for all markets that have the same memberships."""
        return self._kinds.setdefault(memberships, memberships)

    def objects(self) -> dict[str, str]:
        """The digests of all objects, by key in order."""
        others = [*self._others.items()]
        before = bisect_left([*self._others], keys.DETAILS)
        return dict(others[:before]) | self._details | dict(others[before:])
