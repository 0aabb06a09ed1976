"""The shards of a large record: objects beside it that say what single markets and objects are.

A shard never changes, and its name never comes back, so a request that takes effect late harms no newer record. It has
two lines: the rows, by whose digest it is compared with those of a folder, and the ETags of the rows' objects.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from generator.api.keys import ARCHIVE_PREFIX
from generator.models import replaced
from generator.publish import chunk_names, record, retired_shards
from generator.publish.chunk_names import Pair
from generator.publish.etags import Etags, Part, part_of
from generator.publish.record import DamagedShardError, Published
from generator.publish.retired_shards import Group, Together
from generator.stores.requests import body_of, parallel_map, parallel_puts, put_until_answered, with_retries
from generator.stores.store import BeforeEach, If, Store, nothing
from generator.tree import shards
from generator.tree.files import SHARDS
from generator.tree.manifest import Manifest, Retired
from generator.tree.shards import Rows

#: Hexadecimal digits that tell the shards of one put of the record from those of all others.
_TOKEN_LENGTH: Final = 6
#: How many times fewer shards a first publish puts before its objects than after them.
_FEWER: Final = 64

#: What reading a record may raise whose root has values that do not fit together.
_UNREADABLE: Final = (ValueError, TypeError, LookupError, ArithmeticError)

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class _After:
    """The shards that a record is to have.

    `rows` are those of each shard of markets; `changed` are the places of the shards that differ from the stored ones.
    Of the shards of retired generations, `kept` stay as they are, and `new` are still to be put.
    """

    rows: Sequence[Rows]
    changed: Sequence[int]
    kept: Mapping[str, Group]
    new: Sequence[Together]


class HeldLease(Protocol):
    """The lease of this run, as far as shards need it; each raises BusyError if it is lost or too old."""

    def confirm_held(self) -> None:
        """Ask the store whether the record is the one last read or written: otherwise its shards may be gone."""

    def require_valid(self) -> None:
        """Check, before a put, that the lease is not too old."""

    def renew_if_needed(self) -> None:
        """Renew the lease once a good part of it has passed."""

    def renew_if_held(self) -> None:
        """The same if this run holds the lease: of a record that another one holds, shards are read, too."""


class StoredShards:
    """The shards of a store's record, as it was last read or written by this run, whose `owner` is a random id."""

    def __init__(self, store: Store, owner: str, held: HeldLease) -> None:
        self._store = store
        self._owner = owner
        self._held = held
        self._names: tuple[str, ...] = ()
        self._rows: Sequence[Rows] = ()
        self._parts: list[Part | None] = []
        self._groups: Mapping[str, Group] = {}
        #: Shards that the record no longer names, and that are still to be deleted.
        self._stale: frozenset[str] = frozenset()
        self._last: Published | None = None
        #: The record that `intent` compared last, and how it differs from the stored shards.
        self._compared: tuple[Published, _After] | None = None

    @property
    def exist(self) -> bool:
        """Whether there are any."""
        return bool(self._named or self._stale)

    @property
    def _named(self) -> frozenset[str]:
        """The names of all shards of the record."""
        return frozenset((*self._names, *self._groups)) - {""}

    def read(self, root: Published, known: Manifest | None) -> Published:
        """The whole record; raise DamagedShardError if damaged. Shards equal to those of `known` are not read."""
        self._last, self._compared, self._stale = None, None, frozenset(root.stale_shards)
        self._names, self._rows, self._parts, self._groups = root.built.shard_names, (), [], {}
        if not (self._names or root.retirements):
            return root
        try:
            return self._whole(root, known)
        except (DamagedShardError, *_UNREADABLE) as error:
            self._stale = self._stale | root.named_shards()
            self._names, self._groups = (), {}
            if isinstance(error, DamagedShardError):
                raise
            raise DamagedShardError(self._store.name, record.KEY, is_missing=False) from error

    def _whole(self, root: Published, known: Manifest | None) -> Published:
        retired = self._retired(root, known)
        whole = self._with_rows(root, known) if self._names else root
        built = replaced(whole.built, retired=(*root.built.retired, *retired))
        whole = replaced(whole, built=built, retirements={}, stale_shards=())
        return chunk_names.unpacked(whole, self._chunk_names, chunk_names.of_manifest(known) if known else {})

    def _retired(self, root: Published, known: Manifest | None) -> list[Retired]:
        """The retired generations that are in shards."""
        found = retired_shards.by_digest(known.retired if known else ())
        together = {name: found.get(name[: shards.DIGEST_LENGTH]) for name in root.retirements}
        missing = [name for name, of_folder in together.items() if of_folder is None]
        read = parallel_map(partial(self._shard, retired_shards.parsed), missing, self._store.parallel)
        together |= dict(zip(missing, read, strict=True))
        dated = {name: retired_shards.retired_at(together[name] or (), at) for name, at in root.retirements.items()}
        self._groups = {name: retired_shards.group(entries) for name, entries in dated.items() if entries}
        self._stale |= dated.keys() - self._groups.keys()  # of the former archive alone
        return [entry for entries in dated.values() for entry in entries]

    def _with_rows(self, root: Published, known: Manifest | None) -> Published:
        count = len(self._names) - 1
        if not count:
            raise ValueError("shards of no market")
        rows = shards.split(known, count) if known else [{} for _ in self._names]
        differing = [
            place for place, name in enumerate(self._names)
            if name[: shards.DIGEST_LENGTH] != (shards.digest(shards.encoded(rows[place])) if rows[place] else "")
        ]  # fmt: skip
        self._parts = [None if name else {} for name in self._names]
        for place, (read, part) in self._read(differing).items():
            rows[place], self._parts[place] = read, part
        self._rows = rows
        etags = Etags(self._parts, self._read_parts)
        return replaced(root, built=shards.joined(root.built, rows), etags=etags)

    def _chunk_names(self, pairs: Sequence[Pair], may_be_gone: Collection[Pair]) -> Iterator[tuple[str, ...] | None]:
        def read(pair: Pair) -> tuple[str, ...] | None:
            self._held.renew_if_held()
            return chunk_names.of_index(self._store, pair, may_be_gone=pair in may_be_gone)

        return parallel_map(read, pairs, self._store.parallel)

    def _read_parts(self, places: Collection[int]) -> dict[int, Part]:
        try:
            found = {place: part for place, (_, part) in self._read(places).items()}
        except DamagedShardError:
            self._held.confirm_held()
            raise
        for place, part in found.items():
            self._parts[place] = part
        return found

    def _read(self, places: Collection[int]) -> dict[int, tuple[Rows, Part]]:
        def shard(place: int) -> tuple[Rows, Part]:
            return self._shard(parsed, self._names[place]) if self._names[place] else ({}, {})

        return dict(zip(places, parallel_map(shard, places, self._store.parallel), strict=True))

    def _shard(self, parse: Callable[[bytes, str], Parsed], name: str) -> Parsed:
        self._held.renew_if_held()
        return read_shard(self._store, parse, name)

    def intent(self, wanted: Published, before: Published | None) -> Published | None:
        """The root to put before the shards of `wanted`: it announces them; None if no shard changes."""
        after = self._after(wanted)
        self._compared = wanted, after
        if not after.new and not after.changed and len(after.rows) == len(self._names):
            return None
        built = before.built if before else wanted.built.emptied()
        update = {name: getattr(built, name) for name in shards.FIELDS}
        etags = before.etags if before else {}
        return self._root(replaced(wanted, built=replaced(wanted.built, **update), etags=etags))

    def written(self, wanted: Published, sequence: int) -> Published:
        """Put the shards that changed; returns the root to put next, which names all.

        Their names are made from `sequence`, which is greater than that of all roots that this run has put.
        """
        if self._last is None or wanted.built is not self._last.built or wanted.etags is not self._last.etags:
            self._write(wanted, sequence)
            self._last = wanted
        return self._root(wanted)

    def _root(self, wanted: Published) -> Published:
        built, stale = wanted.built, tuple(sorted(self._stale))
        if not self._named:
            return replaced(wanted, etags=dict(wanted.etags), stale_shards=stale)
        if self._names:
            update = {"shard_names": self._names, "market_count": len(built.markets)}
            built = replaced(shards.without_rows(built), **update)
        built = replaced(built, retired=retired_shards.outside(built.retired, self._groups))
        root = replaced(
            wanted,
            built=built,
            etags={} if self._names else dict(wanted.etags),
            retirements={name: group.at for name, group in self._groups.items()},
            stale_shards=stale,
        )
        return chunk_names.packed(root)

    def _write(self, wanted: Published, sequence: int) -> None:
        etags, before = wanted.etags, self._named
        compared, self._compared = self._compared, None
        after = compared[1] if compared and compared[0] is wanted else self._after(wanted)
        rows = after.rows
        if isinstance(etags, Etags):
            etags.load(after.changed if etags.shards == len(rows) else range(etags.shards))
        token = hashlib.sha256(f"{self._owner} {sequence}".encode()).hexdigest()[:_TOKEN_LENGTH]
        bodies: dict[str, bytes] = {}

        def named(line: bytes, body: bytes) -> str:
            name = f"{shards.digest(line)}{token}"
            bodies[key(name)] = body
            return name

        names = dict(enumerate(self._names if len(rows) == len(self._names) else ()))
        for place in after.changed:
            line = shards.encoded(rows[place])
            names[place] = named(line, _body(line, rows[place], etags)) if rows[place] else ""
        groups = dict(after.kept)
        for together in after.new:
            line = retired_shards.encoded(together)
            groups[named(line, line + b"\n")] = retired_shards.group(together)
        self._put(bodies)
        self._names, self._groups = tuple(names[place] for place in range(len(rows))), groups
        self._stale = (self._stale | before) - self._named
        self._rows = rows
        self._parts = [part_of(etags, place, rows) for place in range(len(rows))]

    def _after(self, wanted: Published) -> "_After":
        count = self._number(wanted.built)
        rows = shards.split(wanted.built, count) if count else []
        is_kept = len(rows) == len(self._names)
        changed = [
            place for place, shard in enumerate(rows)
            if not is_kept or shard != self._rows[place] or self._has_other_etags(wanted.etags, place)
        ]  # fmt: skip
        retired = wanted.built.retired
        if not retired_shards.are_split(len(retired), are_already=bool(self._groups), is_sharded=bool(rows)):
            return _After(rows, changed, {}, [])
        return _After(rows, changed, *retired_shards.split(retired, self._groups))

    def _number(self, built: Manifest) -> int:
        """The number of shards of markets; few for the intent of a first publish: its commit puts all again."""
        before = max(0, len(self._names) - 1)
        count = shards.number(len(built.markets), before)
        if built.complete or before == count:
            return count
        return before or max(1, count // _FEWER)

    def _has_other_etags(self, etags: Mapping[str, str], place: int) -> bool:
        part = part_of(etags, place, self._rows)
        return part is not None and part != self._parts[place]

    def _put(self, bodies: Mapping[str, bytes]) -> None:
        def put(item: tuple[str, bytes]) -> str:
            return put_until_answered(self._store, *item, If.ALWAYS, self._held.require_valid)

        if bodies:
            for _ in parallel_puts(self._store, put, bodies.items()):
                self._held.renew_if_needed()
            self._store.flush()  # before the record names them

    def sweep(self, before_each: BeforeEach = nothing, *, is_thorough: bool = False) -> None:
        """Delete what the record no longer names; if `is_thorough`, also what a killed run left."""
        stale = {key(name) for name in self._stale}
        if is_thorough:
            found = with_retries(lambda: [*self._store.keys(SHARDS)])
            stale |= {*found} - {key(name) for name in self._named}
        if stale:
            with_retries(partial(self._store.delete, sorted(stale), before_each))
        self._stale = frozenset()


def key(name: str) -> str:
    """The key of a shard."""
    return f"{SHARDS}{name}"


def read_shard(store: Store, parse: Callable[[bytes, str], Parsed], name: str) -> Parsed:
    """Read a shard; raise DamagedShardError if it is missing or altered."""
    body = body_of(store, key(name))
    try:
        return parse(body or b"", name)
    except (ValueError, TypeError, LookupError):  # the last two by what another version wrote
        raise DamagedShardError(store.name, key(name), is_missing=body is None) from None


def parsed(body: bytes, name: str) -> tuple[Rows, Part]:
    """The rows and ETags of a shard; raise ValueError if it is not the one of that name."""
    line, _, etags = body.partition(b"\n")
    if shards.digest(line) != name[: shards.DIGEST_LENGTH]:
        raise ValueError("other rows")
    rows, found = shards.decoded(line), json.loads(etags)
    if not isinstance(found, list) or not all(isinstance(etag, str) for etag in found):
        raise ValueError("no ETags")
    of_rows = zip(sorted(rows), found, strict=True)
    # Former programs had days of their archive in other shards, where their ETags are not looked for.
    return rows, {shards.key_of(name): etag for name, etag in of_rows if etag and not name.startswith(ARCHIVE_PREFIX)}


def _body(line: bytes, rows: Rows, etags: Mapping[str, str]) -> bytes:
    found = [etags.get(shards.key_of(name), "") for name in sorted(rows)]
    return b"%b\n%b\n" % (line, json.dumps(found, separators=(",", ":")).encode())
