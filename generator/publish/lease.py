"""The store's record as one publisher sees it: read, replaced by conditional puts, held for as long as work goes on.

A publisher that cannot be sure any more that it alone is at work stops by itself, before its deadline.
"""

import os
import secrets
import socket
import time
from datetime import datetime, timedelta
from threading import RLock
from typing import Final

from pydantic import ValidationError

from generator.api.times import instant
from generator.errors import BusyError, OutcomeUnknownError, StoreError
from generator.publish import process_identity, record
from generator.publish.record import Published, Work
from generator.publish.stores.requests import put_until_answered, with_retries
from generator.publish.stores.store import ConditionFailedError, If, Store, UnavailableError

#: The store's clock is told in whole seconds.
_GRAIN: Final = timedelta(seconds=1)
#: Shares of the lease: when to renew it, and when to stop by oneself. What remains is for requests under way: 75 s of
#: five minutes, and none lasts longer.
_RENEW: Final = 0.3
_STOP: Final = 0.75
#: Goes on while a machine sleeps, which a publisher may do, too.
_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Lease:
    """The record, and this publisher's hold on it."""

    def __init__(self, store: Store, lease: timedelta) -> None:
        self._store = store
        self._owner = secrets.token_hex(16)
        self._lease = lease
        # Uploading threads confirm, the main one renews.
        self._lock = RLock()
        self._etag: str | None = None
        self._asked = 0.0
        self.published: Published | None = None
        self.now = ""

    def read(self, *, is_doubted: bool = False) -> Published | None:
        """Read the record; None when there is none, or when it is damaged and `is_doubted` allows that."""
        self._asked = _elapsed()
        stored = with_retries(lambda: self._store.get(record.KEY))
        self._etag = stored.etag if stored else None
        self.now = instant(self._store.now())
        try:
            self.published = record.decoded(stored.body) if stored else None
        except ValueError as error:
            # A newer program's record is no damage to be mended.
            if not is_doubted or not isinstance(error, ValidationError):
                raise StoreError(f"{self._store.name}: {record.KEY}: {_problem(error)}") from error
            self.published = None
        return self.published

    def refuse_if_busy(self) -> None:
        """Raise BusyError while another publisher holds the record and its deadline has not passed."""
        work = self.published.work if self.published else None
        if work and self.now <= work.deadline and not process_identity.has_ended(work.process):
            raise BusyError(
                f"{self._store.name}: {work.who} has been publishing since {work.since} and holds it until "
                f"{work.deadline} (now {self.now}, all by the store's clock); run again then"
            )

    def hold(self, wanted: Published, touched: tuple[str, ...]) -> None:
        """Put a record that says that this publisher is at work, and what it touches."""
        # Whatever came before may have taken long; that nobody was faster is what the put finds out.
        asked, self.now = _elapsed(), instant(self._store.now())
        since = wanted.work.since if wanted.work and wanted.work.owner == self._owner else self.now
        work = Work(
            owner=self._owner,
            process=process_identity.identity(),
            who=f"process {os.getpid()} on {socket.gethostname()}",
            since=since,
            deadline=instant(datetime.fromisoformat(self.now) + self._lease + _GRAIN),
            touched=touched,
        )
        self._put(wanted.model_copy(update={"work": work}))
        self._asked = asked

    def release(self, wanted: Published) -> None:
        """Put a record that says that nobody is at work."""
        self._put(wanted.model_copy(update={"work": None}))

    def require(self) -> None:
        """Raise BusyError unless this publisher may still write."""
        if _elapsed() > self._asked + self._lease.total_seconds() * _STOP:
            raise BusyError(
                f"{self._store.name}: this run could not renew its lease in time, so another may be at work; run again"
            )

    def keep(self) -> None:
        """Renew the lease when a good part of it has passed."""
        if _elapsed() <= self._asked + self._lease.total_seconds() * _RENEW:
            return
        with self._lock:
            self.confirm()
            if self.published and self.published.work:
                self.hold(self.published, self.published.work.touched)

    def confirm(self) -> None:
        """Make sure that the record is still as this publisher left it; raise BusyError otherwise."""
        with self._lock:
            self.require()
            if with_retries(lambda: self._store.head(record.KEY)) != self._etag:
                raise self._overtaken()

    def _put(self, wanted: Published) -> None:
        sequence = self.published.sequence + 1 if self.published else 1
        wanted = wanted.model_copy(update={"sequence": sequence})
        try:
            self._etag = put_until_answered(self._store, record.KEY, wanted.encoded(), self._etag or If.ABSENT)
        except ConditionFailedError:
            raise self._overtaken() from None
        except UnavailableError as error:
            raise OutcomeUnknownError(
                f"{self._store.name}: no answer, so it is not known whether {record.KEY} was replaced ({error}); "
                "run again: it finds out and finishes the work"
            ) from error
        self.published = wanted

    def _overtaken(self) -> BusyError:
        return BusyError(f"{self._store.name}: another publisher was faster; what it published is whole. run again")


def _elapsed() -> float:
    return time.clock_gettime(_CLOCK)


def _problem(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return (
            f"damaged or not this program's ({error.error_count()} mistakes); if the target is right, "
            "`public-markets publish --verify` looks at every object and writes it anew"
        )
    return f"{error}; upgrade this program"
