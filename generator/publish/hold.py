"""The operator's hold on publishing, a part of the record: while there is one, no build is published.

It is set and ended by a conditional put of the record's root, of which nothing else is changed; every other run carries
it along. A publisher at work is waited for: once `begin` has returned, nothing of a build is put, until a release. What
a run that was cut short left to do stays in the record, for the next run.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import BaseModel, Field

from generator.api import keys
from generator.api.forms import instant
from generator.errors import BusyError, GuardError, OutcomeUnknownError, StoreError
from generator.metrics import Samples, sample
from generator.publish import record
from generator.publish.lease import Lease, refuse_running
from generator.publish.record import Hold, Work
from generator.stores.requests import explaining_outage, put_until_answered, with_retries
from generator.stores.store import ConditionFailedError, Store, Stored, UnavailableError
from generator.tree import manifest, stored
from generator.tree.in_turn import Notify, retried_while_busy
from generator.tree.stored import Instant

#: What ends a hold.
RELEASE: Final = "`public-markets hold --release`"
_METRIC: Final = "hold_since_timestamp_seconds"
#: What metrics say of a store without a hold.
NONE: Final[Samples] = {sample(_METRIC): 0}


class HeldError(GuardError):
    """The store is on hold, so no build is published there.

    The database is not believed meanwhile, so only blocked markets are withdrawn, not those that it does not show.
    """

    def __init__(self, store: str, hold: Hold) -> None:
        super().__init__(f"{store}: {sentence(hold)}")
        self.hold = hold


@dataclass(frozen=True)
class HoldChange:
    """The hold of a store before and after a command, and the as-of of what is published there; empty for nothing.

    `is_first`: the first publish has not ended, so that nothing is published whole.
    """

    before: Hold | None = None
    after: Hold | None = None
    as_of: str = ""
    is_first: bool = False


class _Built(BaseModel):
    """What of the manifest in a record matters here (see `Manifest.is_first`)."""

    as_of: Instant = Field(alias="asOf")
    current: dict[str, object] | None = None

    @property
    def is_first(self) -> bool:
        return self.current is not None and frozenset(keys.INDEXED).issuperset(self.current)


class _Root(BaseModel):
    """What of a record matters here. The rest may be damaged, or of a newer version of this program."""

    sequence: int
    built: _Built
    work: Work | None = None
    hold: Hold | None = None


#: The hold to set, from the one before and the time by the store's clock; None for none.
Wanted = Callable[[Hold | None, str], Hold | None]


def current(store: Store) -> HoldChange:
    """The hold as it is; raise StoreError if it cannot be read."""
    with explaining_outage(store):
        root = _root(store, with_retries(lambda: store.get(record.KEY)))
    return HoldChange(root.hold, root.hold, root.built.as_of, root.built.is_first) if root else HoldChange()


def begin(store: Store, reason: str, who: str, notify: Notify) -> HoldChange:
    """Put the store on hold, in place of any earlier hold; raise StoreError if nothing is published there.

    The same hold, set again, is as old as it was.
    """

    def wanted(before: Hold | None, now: str) -> Hold:
        is_repeated = before is not None and (before.reason, before.who) == (reason, who)
        return before if before and is_repeated else Hold(reason=reason, who=who, since=now)

    change = _changed(store, wanted, notify)
    if not change.as_of:
        raise StoreError(
            f"{store.name}: nothing is published there, so there is nothing to put on hold; as long as nobody runs "
            "`public-markets publish` or `rebuild`, nothing will be"
        )
    return change


def end(store: Store, notify: Notify) -> HoldChange:
    """Let builds be published again."""
    return _changed(store, lambda *_: None, notify)


def _changed(store: Store, wanted: Wanted, notify: Notify) -> HoldChange:
    with explaining_outage(store):
        return retried_while_busy(lambda: _attempt(store, wanted), notify, "waiting")


def _attempt(store: Store, wanted: Wanted) -> HoldChange:
    """Change the hold; raise BusyError while a publisher is at work, which would lose its lease by that."""
    while True:
        found = with_retries(lambda: store.get(record.KEY))
        root = _root(store, found)
        if root is None or found is None:
            return HoldChange()
        now = instant(store.now())
        hold = wanted(root.hold, now)
        change = HoldChange(root.hold, hold, root.built.as_of, root.built.is_first)
        if hold == root.hold:
            return change
        if root.work:
            refuse_running(store.name, root.work, now)
        try:
            put_until_answered(store, record.KEY, _with_hold(found.body, hold, root.sequence + 1), found.etag)
        except ConditionFailedError:
            continue  # another run replaced the record
        except UnavailableError as error:
            raise OutcomeUnknownError(
                f"{store.name}: no answer, so it is unknown whether {record.KEY} was replaced ({error}); "
                "`public-markets hold` says whether the target is on hold"
            ) from error
        return change


def _root(store: Store, found: Stored | None) -> _Root | None:
    """The record, as far as it matters here; raise StoreError if that cannot be read."""
    if found is None:
        return None
    try:
        stored.require_format(found.body, record.FORMAT, manifest.OLDEST_FORMAT)
        return _Root.model_validate_json(found.body)
    except ValueError as error:
        raise StoreError(f"{store.name}: {record.KEY}: {record.fault(error, found.body)}") from error


def _with_hold(content: bytes, hold: Hold | None, sequence: int) -> bytes:
    """The record with another hold and the next sequence number."""
    fields = {**json.loads(content), "sequence": sequence}
    fields.pop("hold", None)
    if hold:
        fields["hold"] = hold.model_dump(mode="json", by_alias=True)
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


# What publishers do about it


def refuse(store: Store, lease: Lease, *, is_dry: bool) -> list[str]:
    """Raise HeldError if the store, whose record the lease has read, is on hold; in a dry run, return warnings."""
    hold = lease.published.hold if lease.published else None
    if lease.published is None and lease.is_damaged:
        try:
            hold = current(store).after
        except StoreError:
            return [f"{store.name}: the record cannot be read; if it had a hold, this run ends that"]
    if hold is None:
        return []
    if is_dry:
        return [f"{store.name}: {hold}; without --dry-run, this run would be refused until {RELEASE}"]
    raise HeldError(store.name, hold)


@contextmanager
def explained(store: Store) -> Iterator[None]:
    """Raise HeldError in place of BusyError if a hold is what replaced the record since it was read."""
    try:
        yield
    except BusyError:
        with suppress(StoreError):
            if hold := current(store).after:
                raise HeldError(store.name, hold) from None
        raise


# Who says so


def sentence(hold: Hold) -> str:
    """The hold, what it stops, and what ends it."""
    return f"{hold}; no build is published until {RELEASE}"


def samples(hold: Hold) -> Samples:
    """The hold as a metric."""
    return {sample(_METRIC, who=hold.who, reason=hold.reason): datetime.fromisoformat(hold.since).timestamp()}
