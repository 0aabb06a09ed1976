"""What is to be published: a folder with its manifest, and how to take markets out of it.

Contents are immutable; `without` returns the content that the folder has then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol, Self

from generator.api import keys
from generator.api.archive import ArchiveHead, DayEntry
from generator.errors import OutputError
from generator.publish import blocklist as store_blocklist
from generator.publish import guards, withdrawal
from generator.publish.lease import Lease
from generator.publish.plan import NO_DOUBTS, Doubts
from generator.site import archive_index, published_feed
from generator.site import published as published_site
from generator.site.published import PublishedState, Rearchived
from generator.stores.store import Store
from generator.tree import blocklist, staging
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
        """Delete every retired generation, all steps of the change feed, which begins a new session, and old texts.

        Every archived day gets the texts of now.
        """
        built, archived = published_site.purge(self.folder, self.built, self.lifetime)
        return replace(self, built=built, warnings=(*self.warnings, *(archived.told() if archived else ())))

    def with_days_of(self, published: Manifest, read: Callable[[str], bytes | None]) -> "BuiltFolder":
        """Take over what only the store has of the archive, as a new folder lacks it all; `read` reads the store.

        If old texts were purged in one of them, they are purged from all days.
        """
        before = published.current.get(keys.ARCHIVE)
        if before is None or keys.ARCHIVE not in self.built.current:
            return self
        own = ArchiveHead.found_by(self.folder.read)
        if own is None:
            return self
        is_known = (keys.ARCHIVE, before.generation) in self.built.generations()
        # Of the day that is today here, the folder knows better itself.
        if is_known and _days(published, own.today) <= _days(self.built, own.today):
            return self
        others = archive_index.found_by(read, published)
        if others is None or not archive_index.news(own, others):
            return self
        found = _with_archive(self, _state(self).with_days(others, read))
        if others.texts_as_of != own.texts_as_of:
            found = _with_archive(found, _state(found).with_current_texts())
        return found

    def leading_on(self, published: Manifest | None, read: Callable[[str], bytes | None]) -> Self:
        """Have the change feed lead on from what is published; `read` reads the store."""
        return replace(self, built=published_feed.lead_on(self.folder, self.built, published, read, self.lifetime))


def _state(content: BuiltFolder) -> PublishedState:
    return PublishedState(content.built, content.folder, partial(map, content.folder.read))


def _with_archive(content: BuiltFolder, made: Rearchived | None) -> BuiltFolder:
    if made is None:
        return content
    built = staging.place(content.folder, content.built, made.rendered, content.lifetime).manifest
    return replace(content, built=built, warnings=(*content.warnings, *made.archive.told()))


def _days(built: Manifest, today: DayEntry | None) -> set[tuple[str, str]]:
    """Key and digest of each archived day but today."""
    left_out = keys.archived_day(today.date) if today else ""
    return {(key, digest) for key, digest in built.objects.items() if keys.is_archived_day(key) and key != left_out}


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
    """Merge the blocked lists of folder and store into both: builds leave out what was taken down elsewhere."""
    local = blocklist.load(folder)
    merged = store_blocklist.merge(store, local)
    if merged != local:
        folder.save(blocklist.KEY, merged.encoded())
    return merged
