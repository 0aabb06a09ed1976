"""The lease: one publisher's exclusive hold on the store's record, renewed by conditional puts while it works.

A publisher that cannot be sure that its lease still holds stops by itself, before the deadline in the record.
"""

import os
import secrets
import socket
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from threading import RLock
from typing import Final

from generator import process_identity
from generator.api.forms import instant
from generator.config.settings import LONGEST_LEASE
from generator.errors import BusyError, OutcomeUnknownError, StoreError
from generator.models import replaced
from generator.publish import damaged_record, record
from generator.publish.record import DamagedShardError, Published, Work
from generator.publish.record_shards import StoredShards
from generator.stores import clock
from generator.stores.requests import put_until_answered, with_retries
from generator.stores.store import ConditionFailedError, If, Remembering, Store, Stored, UnavailableError
from generator.tree.manifest import Manifest
from generator.tree.stored import FormatError, cause

#: The store's clock has a resolution of one second.
_RESOLUTION: Final = timedelta(seconds=1)
#: The duration of a lease whose deadline has passed.
_ENDED: Final = -2 * _RESOLUTION
#: Shares of the lease after which it is renewed, and after which this run stops by itself. The rest is for requests in
#: flight (`stores.factory`).
_RENEW: Final = 0.3
_STOP: Final = 0.75


class OtherFormatError(StoreError):
    """The record has a format that this program could misread, so only another version may replace it."""

    def __init__(self, store: str, error: FormatError, content: bytes) -> None:
        super().__init__(f"{store}: {record.KEY}: {record.fault(error, content)}")


class Lease:
    """The store's record as last read or written (`published`), the store's time then (`now`), and the hold on it."""

    def __init__(self, store: Store, duration: timedelta) -> None:
        self._store = Remembering(store)
        self._owner = secrets.token_hex(16)
        self._duration = duration
        self._shards = StoredShards(self._store, self._owner, self)
        # Uploading threads confirm the lease, the main thread renews it.
        self._lock = RLock()
        self._etag: str | None = None
        self._held_since = 0.0
        self._sequence = 0
        #: When this run took the lease, by the store's clock; empty while it does not hold it.
        self._since = ""
        #: The record's root, as this run put it last.
        self._root: Published | None = None
        #: Whether `published` is a root whose shards were not read.
        self._is_brief = False
        #: What need not be read of the record.
        self._known: Manifest | None = None
        #: Who was at work when the record was read, whether its shards could be read or not.
        self._found: Work | None = None
        self.published: Published | None = None
        #: Whether the record could not be read, or only a part of it, which `published` is then; and why, if known.
        self.is_damaged = False
        self.damage = ""
        self.now = ""

    def read(
        self, known: Manifest | None = None, *, is_doubted: bool = False, is_brief: bool = False
    ) -> Published | None:
        """Read the record; None if there is none. If it is damaged and `is_doubted` accepts that, read what is left.

        What a large record says of single markets is not read where the `known` manifest, or else the record as it was
        read last, says the same, and left out if the answer may be brief.
        """
        if known is None and self.published is not None and not self._is_brief:
            known = self.published.built
        self._known = known = known or self._known
        while True:
            self._held_since, self._root = clock.elapsed(), None
            stored = with_retries(lambda: self._store.get(record.KEY))
            self._etag = stored.etag if stored else None
            self.now = instant(self._store.now())
            root = self._decoded(stored, is_doubted=is_doubted)
            self._found = root.work if root else None
            self.is_damaged = stored is not None and root is None
            self._is_brief = is_brief and root is not None and bool(root.named_shards())
            try:
                self.published = root if root is None or self._is_brief else self._shards.read(root, known)
            except DamagedShardError:
                if with_retries(lambda: self._store.head(record.KEY)) != self._etag:
                    continue  # another publisher has replaced the record, and its shards
                if not is_doubted or root is None:
                    raise
                self.published, self.is_damaged = damaged_record.rest(self._store, root), True
            self._sequence = self.published.sequence if self.published else 0
            return self.published

    def _decoded(self, stored: Stored | None, *, is_doubted: bool) -> Published | None:
        """The record's root; None if there is none, or if it is damaged and `is_doubted`."""
        self.damage = ""
        if stored is None:
            return None
        try:
            return record.decoded(stored.body)
        except ValueError as error:
            if isinstance(error, FormatError):
                raise OtherFormatError(self._store.name, error, stored.body) from error
            if not is_doubted:
                raise StoreError(f"{self._store.name}: {record.KEY}: {record.fault(error, stored.body)}") from error
            self.damage = cause(error, stored.body)
            return None

    def refuse_if_busy(self) -> None:
        """Raise BusyError if another publisher holds the lease and its deadline has not passed."""
        if self._found:
            refuse_running(self._store.name, self._found, self.now)

    def take(self, wanted: Published, touched: tuple[str, ...]) -> None:
        """Take or renew the lease: put `wanted` as the record, with this publisher at work on the `touched` objects."""
        self._put(wanted, touched)

    def release(self, wanted: Published) -> None:
        """Put `wanted` as the record, with nobody at work."""
        self._put(wanted, None)
        self._since = ""

    def _work(self, touched: tuple[str, ...]) -> Work:
        """The entry which says that this publisher is at work from now on."""
        # The record may have been read long ago; if somebody replaced it since, the conditional put fails.
        self.now = instant(self._store.now())
        self._since = self._since or self.now
        return Work(
            owner=self._owner,
            process=process_identity.identity(),
            who=f"process {os.getpid()} on {socket.gethostname()}",
            since=self._since,
            deadline=instant(datetime.fromisoformat(self.now) + self._duration + _RESOLUTION),
            touched=touched,
        )

    @property
    def is_sharded(self) -> bool:
        """Whether the record has shards, some of which may be stale."""
        return self._shards.exist

    @property
    def unanswered(self) -> AbstractSet[str]:
        """The keys of shards, and of the record, that were put or deleted without an answer."""
        return self._store.unanswered

    def sweep_shards(self, *, is_thorough: bool) -> None:
        """Delete the shards that the record no longer names; if `is_thorough`, also those that no record ever named."""
        self._shards.sweep(self.renew_if_needed, is_thorough=is_thorough)

    def require_valid(self) -> None:
        """Raise BusyError if the lease is so old that this publisher must stop writing."""
        if clock.elapsed() > self._held_since + self._duration.total_seconds() * _STOP:
            raise BusyError(
                f"{self._store.name}: this run could not renew its lease in time, so another may be at work; run again"
            )

    def renew_if_needed(self) -> None:
        """Renew the lease once a good part of it has passed; raise BusyError if this publisher must stop writing."""
        if not self._is_old():
            return
        with self._lock:
            if self._is_old():  # another thread may have renewed it
                self.confirm_held()
                self._renew()

    def renew_if_held(self) -> None:
        """The same while this run holds the lease."""
        if self._root and self._root.work:
            self.renew_if_needed()

    def give_up(self) -> None:
        """Stop in the middle, if this run holds the lease: another run need not wait for the deadline to go on."""
        with self._lock:
            self._duration = _ENDED
            self._renew()

    def _renew(self) -> None:
        """Put the record as it is, with a later deadline; its shards may be in flight."""
        if self._root and self._root.work:
            self._put_root(self._root, self._root.work.touched)
            if self.published and self.published.work and self.published.work.owner == self._owner:
                self.published = replaced(self.published, work=self._root.work)

    def _is_old(self) -> bool:
        return clock.elapsed() > self._held_since + self._duration.total_seconds() * _RENEW

    def confirm_held(self) -> None:
        """Ask the store whether the record is still this publisher's; raise BusyError if not."""
        with self._lock:
            self.require_valid()
            self.confirm_unchanged()

    def confirm_unchanged(self) -> None:
        """Ask the store whether the record is as this run read or put it; raise BusyError if not."""
        if with_retries(lambda: self._store.head(record.KEY)) != self._etag:
            raise self._overtaken()

    def _put(self, wanted: Published, touched: tuple[str, ...] | None) -> None:
        """Put the record, after the shards that it names; `touched` is None if nobody is to be at work."""
        work = self.published.work if self.published else None
        if (work is None or work.owner != self._owner) and (intent := self._shards.intent(wanted, self.published)):
            self._put_root(intent, touched)
        root = self._put_root(self._shards.written(wanted, self._sequence + 1), touched)
        self.published = replaced(wanted, work=root.work, sequence=root.sequence)

    def _put_root(self, root: Published, touched: tuple[str, ...] | None) -> Published:
        """Put the record's root, once all shards that it names are stored; return it as it was put.

        It gets the next sequence number, and a deadline that counts from now: putting the shards may have taken long.
        """
        asked = clock.elapsed()
        self._sequence += 1
        work = None if touched is None else self._work(touched)
        root = replaced(root, sequence=self._sequence, work=work)
        try:
            self._etag = put_until_answered(self._store, record.KEY, root.encoded(), self._etag or If.ABSENT)
        except ConditionFailedError:
            raise self._overtaken() from None
        except UnavailableError as error:
            raise OutcomeUnknownError(
                f"{self._store.name}: no answer, so it is unknown whether {record.KEY} was replaced ({error}); "
                "run again to find out and finish the work"
            ) from error
        self._root, self._held_since = root, asked
        return root

    def _overtaken(self) -> BusyError:
        return BusyError(f"{self._store.name}: another publisher was faster; what it published is whole. run again")


def root(store: Store) -> tuple[Published | None, str | None]:
    """The record's root and its ETag, without its shards; raise StoreError if it cannot be read."""
    stored = store.get(record.KEY)
    if stored is None:
        return None, None
    try:
        return record.decoded(stored.body), stored.etag
    except ValueError as error:
        raise StoreError(f"{store.name}: {record.KEY}: {record.fault(error, stored.body)}") from error


def refuse_running(store: str, work: Work, now: str) -> None:
    """Raise BusyError if a publisher is at work."""
    if is_running(work, now):
        raise BusyError(
            f"{store}: {work.who} has been publishing since {work.since} and holds the lease until {work.deadline} "
            f"(now {now}, all by the store's clock); run again then"
        )


def is_running(work: Work, now: str) -> bool:
    """Whether this publisher is at work at an instant, by its lease and, on this machine, its process.

    A deadline beyond the longest possible lease was set while the store's clock was ahead, and counts as passed.
    """
    left = datetime.fromisoformat(work.deadline) - datetime.fromisoformat(now)
    holds = timedelta(0) <= left <= LONGEST_LEASE + 2 * _RESOLUTION
    return holds and not process_identity.has_ended(work.process)
