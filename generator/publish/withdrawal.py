"""What is to be published, and how markets are taken out of it, without the database.

The state that is published is made again without them, from itself alone, in a folder or from a store. Contents are
immutable; `without` returns the content that the folder has then.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, Self

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import OutputError
from generator.progress import SILENT, Silent
from generator.publish import blocklist as store_blocklist
from generator.publish import guards, quotations
from generator.publish.lease import Lease
from generator.publish.plan import NO_DOUBTS, Doubts
from generator.publish.record import Published
from generator.site import sessions
from generator.site.published import PublishedState
from generator.stores.requests import body_of, etags_of, parallel_map
from generator.stores.store import Store
from generator.tree import blocklist, files, generations, manifest, staging
from generator.tree.blocklist import BlockedList
from generator.tree.folder import Output
from generator.tree.manifest import Manifest, Retired


class Content(Protocol):
    """A folder that holds whatever of `built` the store lacks."""

    @property
    def folder(self) -> Output:
        """The folder."""

    @property
    def built(self) -> Manifest:
        """What is published from it."""

    @property
    def is_build(self) -> bool:
        """Whether it is a build's, which a hold stops."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What else was left out when markets were taken out."""

    def without(self, ids: frozenset[str]) -> "Content":
        """Take markets (ids) and questions (references) out."""

    def recovered(self, doubts: Doubts) -> "Content":
        """Hold what is in doubt, too: the store's objects are not those of the record."""


@dataclass(frozen=True)
class BuiltFolder:
    """The output folder of a build; `shape` are the settings that shape what a build makes now."""

    folder: Output
    built: Manifest
    shape: Mapping[str, Any]
    lifetime: timedelta
    warnings: tuple[str, ...] = ()
    is_build: bool = True

    @classmethod
    def opened(cls, folder: Output, shape: Mapping[str, Any], lifetime: timedelta) -> Self:
        """Read the folder; raise GuardError if it does not hold a complete build made with these settings.

        A takedown that was killed there is finished first.
        """
        warnings = _finish(folder, blocklist.load(folder).ids(), lifetime)
        return cls(folder, guards.require_fit(folder, shape), shape, lifetime, warnings)

    def without(self, ids: frozenset[str]) -> Self:
        """Take markets out, as the next build would."""
        if not ids & self.built.markets.keys():
            return self
        ended = from_folder(self.folder, ids, self.lifetime)
        return replace(self, built=guards.require_fit(self.folder, self.shape), warnings=(*self.warnings, *ended))

    def recovered(self, doubts: Doubts) -> Self:  # noqa: ARG002 - the protocol's
        """Hold what is in doubt; the folder of a build holds everything."""
        return self

    def purged(self) -> Self:
        """Delete every retired generation, and all steps of the change feed, which begins a new session."""
        return replace(self, built=sessions.purge(self.folder, self.built, self.lifetime))

    def leading_on(self, published: Manifest | None, read: Callable[[str], bytes | None]) -> Self:
        """Have the change feed lead on from what is published; `read` reads the store."""
        return replace(self, built=sessions.lead_on(self.folder, self.built, published, read, self.lifetime))


@dataclass(frozen=True)
class StoredSite:
    """What a store holds itself; `folder` receives what changes when markets are taken out.

    `gone` are the markets and questions taken out so far: the store may show them still. `doubts` say what is not as
    the record has it.
    """

    store: Store
    lease: Lease
    folder: Output
    built: Manifest
    lifetime: timedelta
    gone: frozenset[str] = frozenset()
    doubts: Doubts = NO_DOUBTS
    warnings: tuple[str, ...] = ()
    is_build: bool = False

    def without(self, ids: frozenset[str]) -> Self:
        """Take markets out of what the record says now."""
        published = self.lease.published
        if published is None:
            raise OutputError(f"{self.store.name}: nothing is published there")
        gone = self.gone | ids
        state = StoredState(self.store, published, self.doubts)
        built, warnings = from_store(state, gone, self.folder, self.lifetime, self.lease)
        return replace(self, built=built, gone=gone, warnings=(*dict.fromkeys([*self.warnings, *warnings]),))

    def recovered(self, doubts: Doubts) -> Self:
        """Hold what is in doubt, too: made again, and details as they are in the store."""
        return replace(self, doubts=self.doubts.merged(doubts)).without(frozenset())


def sync_blocked(folder: Output, store: Store) -> BlockedList:
    """Merge the blocked lists of folder and store into both: builds leave out what was taken down elsewhere.

    Returns the store's, whose hold counts.
    """
    local = blocklist.settle(folder)
    stored = store_blocklist.merge(store, local)
    blocklist.save(folder, local.merged(stored))
    return stored


# Withdrawal

_OBJECTS: Final = f"{API_VERSION}/"


def _altered(folder: Output, built: Manifest) -> frozenset[str]:
    """What is not as it was built, of that which would be taken unread: heads of lists, and details in no dump.

    A head of an earlier build, as from a backup, may show the markets.
    """
    heads = {key: folder.read(key) for key in map(keys.head, built.current) if key in built.objects}
    altered = (key for key, body in heads.items() if body is None or manifest.digest(key, body) != built.objects[key])
    members = (keys.detail(market_id) for market_id, lists in built.markets.items() if not lists)
    return frozenset([*altered, *(key for key in members if not folder.has(key))])


def from_folder(folder: Output, ids: Collection[str], lifetime: timedelta) -> tuple[str, ...]:
    """Remove markets and questions from a folder, as the next build would.

    Returns warnings of what else had to be left out.
    """
    before = folder.manifest() if ids else None
    if before is None:
        return ()
    if not before.markets.keys() & ids:
        if before.complete:
            # A run that was killed at its end had forgotten the markets, but not deleted all that showed them.
            staging.clear(folder, before)
        return ()
    # Like in a store, they do not wait for the rest to be made, which may take minutes.
    gone = before.markets.keys() & ids
    for key in before.showing(gone):
        folder.discard_key(key)
    folder.discard_key(keys.ARCHIVE_PREFIX)
    quotations.delete(folder, ids)
    # A killed build leaves objects that the manifest does not describe, and may have deleted details.
    doubted = frozenset[str]() if before.complete else frozenset({*before.objects, *folder.strangers(before)})
    lost = {key for key in before.markets if doubted and not folder.has(keys.detail(key))}
    state = PublishedState(before, folder, doubted=doubted or _altered(folder, before))
    rendered, warnings = state.without(_withdrawn(before, lost, frozenset(ids)), SILENT)
    staging.place(folder, before, rendered, lifetime)
    return warnings


def _withdrawn(built: Manifest, missing: AbstractSet[str], ids: frozenset[str]) -> frozenset[str]:
    """What no list may show: `ids`, and what has no detail, so that a run was about to withdraw it.

    A question is made again whose detail had to go because it showed a market that is withdrawn, unless the run was
    about to withdraw the question, too.
    """
    return ids | (missing - built.questions_of(missing | ids).difference(built.leaving))


def _finish(folder: Output, blocked: frozenset[str], lifetime: timedelta) -> tuple[str, ...]:
    """Finish a takedown that was killed in the folder: from then until the next build, the inspection page is away."""
    return from_folder(folder, blocked, lifetime) if blocked and not folder.has(files.INSPECTION) else ()


@dataclass(frozen=True)
class StoredState:
    """What a store holds by its record, except for what `doubts` says is not as the record has it."""

    store: Store
    published: Published
    doubts: Doubts = NO_DOUBTS

    def as_folder(self, scratch: Output, lease: Lease | None = None) -> PublishedState:
        """The store seen as a folder; what is staged goes to the `scratch` folder.

        A lease that is held is renewed while objects are read.
        """

        def body(key: str) -> bytes | None:
            # Without a dump, details are read one by one, which may take longer than the lease.
            if lease:
                lease.renew_if_held()
            return body_of(self.store, key)

        return PublishedState(
            self.published.built,
            _Mirror(scratch, self, body),
            partial(parallel_map, threads=self.store.parallel, at_once=1),
            self.unknown(),
        )

    def unknown(self) -> frozenset[str]:
        """The mutable objects of unknown content that may belong to the state."""
        return self.published.unfinished() | (self.doubts.keys & self.published.built.objects.keys())

    def withdrawn(self, ids: frozenset[str]) -> frozenset[str]:
        """What no list may show: `ids`, and that whose details an interrupted run deleted already, or did not put yet.

        A question is made again if one of its markets is withdrawn.
        """
        built, unknown = self.published.built, self.unknown()
        details = {keys.detail(key): key for key in built.markets}
        etags = etags_of(self.store, details.keys() & unknown)
        return _withdrawn(built, {details[key] for key, etag in etags.items() if etag is None}, ids)

    def held(self) -> frozenset[str]:
        """What the store holds of whole generations: their folders in the layout `pages`, else their objects."""
        whole = {
            pair: entry for pair, entry in self.published.built.generations().items()
            if pair not in self.doubts.generations and not (isinstance(entry, Retired) and entry.partial)
        }  # fmt: skip
        folders = {keys.generation_prefix(*pair) for pair in whole if not generations.has_index(*pair)}
        indexes = {keys.index(*pair) for pair in whole if generations.has_index(*pair)}
        return frozenset(folders | ((indexes | generations.chunk_keys(whole)) - self.doubts.missing))


class _Mirror:
    """A store seen as a folder: objects are read from it, and what it holds of whole generations is in place.

    What is staged goes to the `scratch` folder. `read` reads the store.
    """

    def __init__(self, scratch: Output, state: StoredState, read: Callable[[str], bytes | None]) -> None:
        self._scratch = scratch
        self._read = read
        self._held = state.held()
        self.path = scratch.path
        self.scratch = scratch.scratch
        self.put_pages = scratch.put_pages
        self.written_ahead = scratch.written_ahead

    def read(self, name: str) -> bytes | None:
        """An object's bytes in the store, or a file's of the folder."""
        return self._read(name) if name.startswith(_OBJECTS) else self._scratch.read(name)

    def newest(self, key: str) -> bytes | None:
        """An object's bytes as it is staged, or in the store."""
        staged = self._scratch.newest(key)
        return self.read(key) if staged is None else staged

    def newest_body(self, key: str) -> bytes:
        """The same; raise OutputError when it is neither."""
        body = self.newest(key)
        return self._scratch.body(key) if body is None else body

    def open_newest(self, key: str) -> BinaryIO:
        """Open an object as it is staged, or in the store."""
        return BytesIO(self.newest_body(key))

    def has(self, name: str) -> bool:
        """Whether the store holds it as a part of a whole generation."""
        return name in self._held

    def are_placed(self, object_keys: Iterable[str]) -> bool:
        """Whether the store holds all of them."""
        return self._held.issuperset(object_keys)

    def put(self, key: str, body: bytes) -> bool:
        """Stage an object unless the store holds it."""
        return key not in self._held and self._scratch.put(key, body)

    def stage_file(self, path: Path, key: str) -> bool:
        """Stage a temporary file unless the store holds it."""
        return key not in self._held and self._scratch.stage_file(path, key)


class _Renewing(Silent):
    """Renews the lease while a site is made, which may take longer than the lease."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def advance(self) -> None:
        """Renew the lease if need be."""
        self._lease.renew_if_held()


def from_store(
    state: StoredState, ids: frozenset[str], folder: Output, lifetime: timedelta, lease: Lease
) -> tuple[Manifest, tuple[str, ...]]:
    """Put into `folder` whatever the store lacks of its own state without the markets.

    Returns the manifest of that, and warnings as above. The lease is held already.
    """
    rendered, warnings = state.as_folder(folder, lease).without(state.withdrawn(ids), _Renewing(lease))
    return staging.place(folder, folder.manifest(), rendered, lifetime).manifest, warnings
