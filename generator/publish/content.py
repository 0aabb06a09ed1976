"""What is to be published: a folder with its manifest, and how to take markets out of it.

Contents are immutable; `without` returns the content that the folder has then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol, Self

from generator.errors import OutputError
from generator.publish import blocklist as store_blocklist
from generator.publish import guards, withdrawal
from generator.publish.lease import Lease
from generator.publish.plan import NO_DOUBTS, Doubts
from generator.site import published_feed
from generator.stores.store import Store
from generator.tree import blocklist, sessions
from generator.tree.blocklist import BlockedList
from generator.tree.folder import Output
from generator.tree.manifest import Manifest


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
        """Take markets out."""

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
        warnings = withdrawal.finish(folder, blocklist.load(folder).ids(), lifetime)
        return cls(folder, guards.require_fit(folder, shape), shape, lifetime, warnings)

    def without(self, ids: frozenset[str]) -> Self:
        """Take markets out, as the next build would."""
        if not ids & self.built.markets.keys():
            return self
        ended = withdrawal.from_folder(self.folder, ids, self.lifetime)
        return replace(self, built=guards.require_fit(self.folder, self.shape), warnings=(*self.warnings, *ended))

    def recovered(self, doubts: Doubts) -> Self:  # noqa: ARG002 - the protocol's
        """Hold what is in doubt; the folder of a build holds everything."""
        return self

    def purged(self) -> Self:
        """Delete every retired generation, and all steps of the change feed, which begins a new session."""
        return replace(self, built=sessions.purge(self.folder, self.built, self.lifetime))

    def leading_on(self, published: Manifest | None, read: Callable[[str], bytes | None]) -> Self:
        """Have the change feed lead on from what is published; `read` reads the store."""
        return replace(self, built=published_feed.lead_on(self.folder, self.built, published, read, self.lifetime))


@dataclass(frozen=True)
class StoredSite:
    """What a store holds itself; `folder` receives what changes when markets are taken out.

    `gone` are the markets taken out so far: the store may show them still. `doubts` say what is not as the record has
    it.
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
        state = withdrawal.StoredState(self.store, published, self.doubts)
        warnings = withdrawal.from_store(state, gone, self.folder, self.lifetime, self.lease)
        built = self.folder.manifest()
        if built is None:
            raise OutputError(f"{self.folder.path('')}: another process deletes files there; stop it, then run again")
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
