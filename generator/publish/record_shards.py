"""The shards of a large record: objects beside it that say what single markets and objects are.

A shard never changes, and its name never comes back, so a request that takes effect late harms no newer record. It has
two lines: the rows, by whose digest it is compared with those of a folder, and the ETags of the rows' objects.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from generator.errors import StoreError
from generator.publish import chunk_names
from generator.publish.chunk_names import Pair
from generator.publish.record import Published
from generator.publish.stores.requests import parallel_map, put_until_answered, with_retries
from generator.publish.stores.store import BeforeEach, If, Store, nothing
from generator.tree import shards
from generator.tree.files import SHARDS
from generator.tree.manifest import Manifest
from generator.tree.shards import Rows

#: Hexadecimal digits that tell the shards of one put of the record from those of all others.
_TOKEN_LENGTH: Final = 6

#: The ETags of one shard's objects, by key.
_Part = Mapping[str, str]


class DamagedShardError(StoreError):
    """A shard that the record names is missing or altered."""


class Etags(Mapping[str, str]):
    """The store's ETags by key. Those of a shard are read when one of them is asked for."""

    def __init__(self, parts: Sequence[_Part | None], read: Callable[[Collection[int]], Mapping[int, _Part]]) -> None:
        self._parts = [*parts]
        self._read = read

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self._parts)

    def part(self, place: int) -> _Part | None:
        """Those of a shard; None if they were not read, so none of them has changed."""
        return self._parts[place]

    def load(self, places: Collection[int]) -> None:
        """Read those of several shards at once."""
        wanted = [place for place in places if self._parts[place] is None]
        for place, part in (self._read(wanted) if wanted else {}).items():
            self._parts[place] = part

    def updated(self, put: Mapping[str, str], gone: Collection[str]) -> "Etags":
        """The ETags after objects were put or deleted."""
        changes: dict[int, dict[str, str | None]] = {}
        for key, etag in (*put.items(), *((key, None) for key in gone)):
            changes.setdefault(self._place(key), {})[key] = etag
        self.load(changes)
        after = Etags(self._parts, self._read)
        for place, changed in changes.items():
            merged = {**(self._parts[place] or {}), **changed}
            after._parts[place] = {key: etag for key, etag in merged.items() if etag is not None}
        return after

    def _place(self, key: str) -> int:
        return shards.place(shards.name_of(key), len(self._parts) - 1)

    def __getitem__(self, key: str) -> str:
        place = self._place(key)
        self.load([place])
        return (self._parts[place] or {})[key]

    def __iter__(self) -> Iterator[str]:
        self.load(range(len(self._parts)))
        return (key for part in self._parts for key in part or {})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def updated(etags: Mapping[str, str], put: Mapping[str, str], gone: Collection[str]) -> Mapping[str, str]:
    """The ETags after objects were put or deleted."""
    if isinstance(etags, Etags):
        return etags.updated(put, gone)
    return {key: etag for key, etag in {**etags, **put}.items() if key in put or key not in gone}


class Hold(Protocol):
    """The lease of this run, as far as shards need it; each raises BusyError if it is lost or too old."""

    def confirm_held(self) -> None:
        """Ask the store whether the record is the one last read or written: otherwise its shards may be gone."""

    def require_valid(self) -> None:
        """Allow a put."""

    def renew_if_needed(self) -> None:
        """Renew the lease once a good part of it has passed."""


class StoredShards:
    """The shards of a store's record, as it was last read or written by this run, whose `owner` is a random id."""

    def __init__(self, store: Store, owner: str, hold: Hold) -> None:
        self._store = store
        self._owner = owner
        self._hold = hold
        self._names: tuple[str, ...] = ()
        self._rows: Sequence[Rows] = ()
        self._parts: list[_Part | None] = []
        #: Shards that the record no longer names, and that are still to be deleted.
        self._stale: frozenset[str] = frozenset()
        self._last: Published | None = None

    @property
    def exist(self) -> bool:
        """Whether there are any."""
        return bool(self._names or self._stale)

    def read(self, root: Published, known: Manifest | None) -> Published:
        """The whole record; raise DamagedShardError if that cannot be read. What `known` says, too, is not read."""
        self._last, self._stale, self._names = None, frozenset(root.stale_shards), root.built.shard_names
        if not self._names:
            return root
        count = len(self._names) - 1
        rows = shards.split(known, count) if known else [{} for _ in self._names]
        differing = [
            place for place, name in enumerate(self._names)
            if name[: shards.DIGEST_LENGTH] != (shards.digest(shards.encoded(rows[place])) if rows[place] else "")
        ]  # fmt: skip
        self._parts = [None if name else {} for name in self._names]
        try:
            found = self._read(differing)
        except DamagedShardError:
            self._stale, self._names = self._stale | {*self._names} - {""}, ()
            raise
        for place, (read, part) in found.items():
            rows[place], self._parts[place] = read, part
        self._rows = rows
        etags = Etags(self._parts, self._read_parts)
        names = chunk_names.of_manifest(known) if known else {}
        root = chunk_names.unpacked(root, self._chunk_names, names)
        return root.model_copy(update={"built": shards.joined(root.built, rows), "etags": etags, "stale_shards": ()})

    def _chunk_names(self, pairs: Sequence[Pair]) -> Iterator[tuple[str, ...]]:
        return parallel_map(lambda pair: chunk_names.of_index(self._store, pair), pairs, self._store.parallel)

    def _read_parts(self, places: Collection[int]) -> dict[int, _Part]:
        try:
            found = {place: part for place, (_, part) in self._read(places).items()}
        except DamagedShardError:
            self._hold.confirm_held()
            raise
        for place, part in found.items():
            self._parts[place] = part
        return found

    def _read(self, places: Collection[int]) -> dict[int, tuple[Rows, _Part]]:
        return dict(zip(places, parallel_map(self._shard, places, self._store.parallel), strict=True))

    def _shard(self, place: int) -> tuple[Rows, _Part]:
        name = self._names[place]
        if not name:
            return {}, {}
        stored = with_retries(partial(self._store.get, key(name)))
        try:
            return _parsed(stored.body if stored else b"", name)
        except ValueError:
            raise DamagedShardError(
                f"{self._store.name}: {key(name)}: {'altered' if stored else 'missing'}; it is part of the record, "
                "which `public-markets rebuild --verify` writes anew"
            ) from None

    def intent(self, wanted: Published, before: Published | None) -> Published | None:
        """The root to put before the shards of `wanted`: it says who puts them; None if none changes."""
        rows, changed = self._changes(wanted)
        if not changed and len(rows) == len(self._names):
            return None
        built = before.built if before else wanted.built.emptied()
        update = {"objects": built.objects, "markets": built.markets, "slugs": built.slugs}
        etags = before.etags if before else {}
        return self._root(wanted.model_copy(update={"built": wanted.built.model_copy(update=update), "etags": etags}))

    def written(self, wanted: Published, sequence: int) -> Published:
        """Put the shards that changed; returns the root to put next, which names all.

        Their names are made from `sequence`, which is greater than that of all roots that this run has put.
        """
        if self._last is None or wanted.built is not self._last.built or wanted.etags is not self._last.etags:
            self._write(wanted, sequence)
            self._last = wanted
        return self._root(wanted)

    def _root(self, wanted: Published) -> Published:
        stale = tuple(sorted(self._stale))
        if not self._names:
            return wanted.model_copy(update={"etags": dict(wanted.etags), "stale_shards": stale})
        update = {"shard_names": self._names, "market_count": len(wanted.built.markets)}
        built = shards.without_rows(wanted.built).model_copy(update=update)
        return chunk_names.packed(wanted.model_copy(update={"built": built, "etags": {}, "stale_shards": stale}))

    def _write(self, wanted: Published, sequence: int) -> None:
        etags, before = wanted.etags, self._names
        rows, changed = self._changes(wanted)
        if isinstance(etags, Etags):
            etags.load(changed if etags.shards == len(rows) else range(etags.shards))
        lines = {place: shards.encoded(rows[place]) for place in changed}
        token = hashlib.sha256(f"{self._owner} {sequence}".encode()).hexdigest()[:_TOKEN_LENGTH]
        names = {place: f"{shards.digest(line)}{token}" if rows[place] else "" for place, line in lines.items()}
        self._put({key(names[place]): _body(line, rows[place], etags) for place, line in lines.items() if rows[place]})
        self._names = tuple(names[place] if place in names else before[place] for place in range(len(rows)))
        self._stale = (self._stale | {*before}) - {*self._names, ""}
        self._rows = rows
        self._parts = [_part(etags, place, rows) for place in range(len(rows))]

    def _changes(self, wanted: Published) -> tuple[Sequence[Rows], list[int]]:
        """The rows of all shards, and the places of those that differ from what is stored."""
        count = shards.number(len(wanted.built.markets), max(0, len(self._names) - 1))
        rows = shards.split(wanted.built, count) if count else []
        is_kept = len(rows) == len(self._names)
        return rows, [
            place for place, shard in enumerate(rows)
            if not is_kept or shard != self._rows[place] or self._has_other_etags(wanted.etags, place)
        ]  # fmt: skip

    def _has_other_etags(self, etags: Mapping[str, str], place: int) -> bool:
        part = _part(etags, place, self._rows)
        return part is not None and part != self._parts[place]

    def _put(self, bodies: Mapping[str, bytes]) -> None:
        def put(item: tuple[str, bytes]) -> str:
            return put_until_answered(self._store, *item, If.ALWAYS, self._hold.require_valid)

        if bodies:
            for _ in parallel_map(put, bodies.items(), self._store.parallel):
                self._hold.renew_if_needed()
            self._store.flush()  # before the record names them

    def sweep(self, before_each: BeforeEach = nothing, *, is_thorough: bool = False) -> None:
        """Delete what the record no longer names; if `is_thorough`, also what it never named: a run was killed then."""
        stale = {key(name) for name in self._stale}
        if is_thorough:
            found = with_retries(lambda: [listed.key for listed in self._store.list(SHARDS)])
            stale |= {*found} - {key(name) for name in self._names if name}
        if stale:
            with_retries(partial(self._store.delete, sorted(stale), before_each))
        self._stale = frozenset()


def key(name: str) -> str:
    """The key of a shard."""
    return f"{SHARDS}{name}"


def _parsed(body: bytes, name: str) -> tuple[Rows, _Part]:
    """The rows and ETags of a shard; raise ValueError if it is not the one of that name."""
    line, _, etags = body.partition(b"\n")
    if shards.digest(line) != name[: shards.DIGEST_LENGTH]:
        raise ValueError("other rows")
    rows = shards.decoded(line)
    of_rows = zip(sorted(rows), json.loads(etags), strict=True)
    return rows, {shards.key_of(name): etag for name, etag in of_rows if etag}


def _body(line: bytes, rows: Rows, etags: Mapping[str, str]) -> bytes:
    found = [etags.get(shards.key_of(name), "") for name in sorted(rows)]
    return b"%b\n%b\n" % (line, json.dumps(found, separators=(",", ":")).encode())


def _part(etags: Mapping[str, str], place: int, rows: Sequence[Rows]) -> _Part | None:
    if isinstance(etags, Etags) and etags.shards == len(rows):
        return etags.part(place)
    found = ((object_key, etags.get(object_key)) for object_key in map(shards.key_of, rows[place]))
    return {object_key: etag for object_key, etag in found if etag is not None}
