"""The lease: one publisher's exclusive hold on the store's record, renewed by conditional puts while it works.

A publisher that cannot be sure that its lease still holds stops by itself, before the deadline in the record.
"""

import os
import secrets
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import RLock
from typing import Final, Self

from generator import process_identity
from generator.api.forms import instant
from generator.config.settings import Config
from generator.errors import BusyError, OutcomeUnknownError, StoreError
from generator.models import replaced
from generator.publish import record
from generator.publish.record import DamagedStateError, Published, Work
from generator.publish.states import StoredStates
from generator.stores import clock
from generator.stores.requests import put_until_answered, with_retries
from generator.stores.store import ConditionFailedError, If, Store, Stored, UnavailableError, Watched
from generator.tree.folder import Output
from generator.tree.stored import FormatError, cause

#: How long the lease of a silent publisher keeps others out.
LEASE: Final = timedelta(minutes=5)
#: The longest that an earlier version takes, where it could be set.
LONGEST_LEASE: Final = timedelta(days=1)
#: The store's clock has a resolution of one second.
_RESOLUTION: Final = timedelta(seconds=1)
#: The duration of a lease whose deadline has passed.
_ENDED: Final = -2 * _RESOLUTION
#: Shares of the lease after which it is renewed, and after which this run stops by itself. The rest is for requests in
#: flight (`LONGEST_REQUEST` of `stores.s3_connection`).
_RENEW: Final = 0.3
_STOP: Final = 0.75


class OtherFormatError(StoreError):
    """The record has a format that this program could misread, so only another version may replace it."""

    def __init__(self, store: str, error: FormatError, content: bytes) -> None:
        super().__init__(f"{store}: {record.KEY}: {record.fault(error, content)}")


class Lease:
    """The store's record as last read or written (`published`), the store's time then (`now`), and the hold on it."""

    def __init__(self, store: Store, duration: timedelta = LEASE, folder: Output | None = None) -> None:
        self._store = store
        self._owner = secrets.token_hex(16)
        self._duration = duration
        self._states = StoredStates(self._store, self._require_valid_if_held, folder)
        # Uploading threads confirm the lease, the main thread renews it.
        self._lock = RLock()
        self._etag: str | None = None
        self._held_since = 0.0
        self._sequence = 0
        #: When this run took the lease, by the store's clock; empty while it does not hold it.
        self._since = ""
        #: The record's root, as this run put it last.
        self._root: Published | None = None
        #: Who was at work when the record was read, whether its state could be read or not.
        self._found: Work | None = None
        self.published: Published | None = None
        #: Whether the record could not be read, or only a part of it, which `published` is then; and why, if known.
        self.is_damaged = False
        self.damage = ""
        #: Whether a former program wrote the record, of which this one reads only the root.
        self.is_former = False
        self.now = ""

    def read(self, *, is_doubted: bool = False, is_brief: bool = False) -> Published | None:
        """Read the record; None if there is none. If it is damaged and `is_doubted` accepts that, read what is left.

        If the answer may be brief, it is only the root.
        """
        while True:
            self._held_since, self._root = clock.elapsed(), None
            stored = with_retries(lambda: self._store.get(record.KEY))
            self._etag = stored.etag if stored else None
            self.now = instant(self._store.now())
            root = self._decoded(stored, is_doubted=is_doubted)
            self._found = root.work if root else None
            self.is_damaged = stored is not None and root is None
            self.is_former = root is not None and root.built.state == record.FORMER_STATE
            try:
                self.published = root if root is None or is_brief else self._states.read(root, is_doubted=is_doubted)
            except DamagedStateError as error:
                if with_retries(lambda: self._store.head(record.KEY)) != self._etag:
                    continue  # another publisher has replaced the record, and deleted its state
                if not is_doubted or root is None:
                    raise
                self.published, self.is_damaged, self.damage = self._states.rest(root), True, str(error)
            lost = self._states.last_number() if is_doubted and root is None else 0
            self._sequence = root.sequence if root else lost
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

    def take(self, wanted: Published, touched: tuple[str, ...]) -> Published:
        """Take or renew the lease: put `wanted` as the record, with this publisher at work on the `touched` objects.

        Returns the record as it was put.
        """
        return self._put(wanted, touched)

    def release(self, wanted: Published) -> Published:
        """Put `wanted` as the record, with nobody at work; returns it as it was put."""
        released = self._put(wanted, None)
        self._since = ""
        return released

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

    def sweep(self) -> None:
        """Delete states that the record no longer names (see `StoredStates.sweep`)."""
        self._states.sweep(self.now, self.renew_if_needed)

    @property
    def has_states(self) -> bool:
        """Whether the record has a state, or may have had one."""
        return self._states.exist

    def look_for_states(self, *, purges: bool) -> None:
        """Delete states that the record never named (see `StoredStates.look`)."""
        self._states.look(self._sequence, self.renew_if_held, purges=purges)

    def require_valid(self) -> None:
        """Raise BusyError if the lease is so old that this publisher must stop writing."""
        if clock.elapsed() > self._held_since + self._duration.total_seconds() * _STOP:
            raise BusyError(
                f"{self._store.name}: this run could not renew its lease in time, so another may be at work; run again"
            )

    def _require_valid_if_held(self) -> None:
        if self._root and self._root.work:
            self.require_valid()

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
        """Put the record as it is, with a later deadline."""
        if self._root and self._root.work:
            self._put_root(self._root, self._root.work.touched)
            if self.published and self.published.work and self.published.work.owner == self._owner:
                work = replaced(self.published.work, deadline=self._root.work.deadline)
                self.published = replaced(self.published, work=work, sequence=self._sequence)

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

    def _put(self, wanted: Published, touched: tuple[str, ...] | None) -> Published:
        """Put the record, after the state that it names; `touched` is None if nobody is to be at work."""
        root, said = self._states.written(wanted, self.published, touched or (), self._sequence + 1, self.now)
        root = self._put_root(root, None if touched is None else said)
        work = replaced(root.work, touched=touched) if root.work and touched is not None else None
        self.published = replaced(wanted, work=work, sequence=root.sequence)
        return self.published

    def _put_root(self, root: Published, touched: tuple[str, ...] | None) -> Published:
        """Put the record's root, once the state that it names is stored; return it as it was put.

        It gets the next sequence number, and a deadline that counts from now: putting the state may have taken long.
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
        return BusyError(f"{self._store.name}: another publisher replaced the record first; run again")


@dataclass(frozen=True)
class Target:
    """Where to publish: the store, the lease on its record, and the settings; publishers and lease use it `watched`."""

    store: Store
    watched: Watched
    lease: Lease
    config: Config

    @classmethod
    def of(cls, store: Store, config: Config, folder: Output | None = None) -> Self:
        """A store whose record was not read yet; `folder` is the one that is published from, if there is one."""
        watched = Watched(store)
        return cls(store, watched, Lease(watched, folder=folder), config)


def root(store: Store) -> tuple[Published | None, str | None]:
    """The record's root and its ETag, without its state; raise StoreError if it cannot be read."""
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
