"""The operator's hold on publishing, a field of the blocked list: while there is one, no build is published.

It is written first, so that whoever begins later is refused. Then a publisher at work is waited for, and the record's
root is replaced by itself: whoever read it before the hold fails at the next conditional put. Once `begin` has
returned, nothing of a build is put until a release. What a run that was cut short left to do stays in the record.

A folder that is served without a target has a hold of its own, which stops builds.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from generator.api.forms import instant
from generator.errors import BusyError, OutcomeUnknownError, OutputError, StoreError
from generator.metrics import Samples, sample
from generator.models import replaced
from generator.publish import blocklist, lease, record
from generator.publish.lease import refuse_running
from generator.publish.record import DamagedStateError, Published
from generator.stores.requests import explaining_outage, put_until_answered, with_retries
from generator.stores.store import ConditionFailedError, Store, UnavailableError, UnreachableError
from generator.tree import blocklist as folder_blocklist
from generator.tree import files
from generator.tree.blocklist import RELEASE, BlockedList, HeldError, Hold
from generator.tree.folder import read_only
from generator.tree.in_turn import Notify, locked_in_turn, retried_while_busy
from generator.tree.manifest import Manifest

_METRIC: Final = "hold_since_timestamp_seconds"
#: What metrics say of a store without a hold.
NONE: Final[Samples] = {sample(_METRIC): 0}


@dataclass(frozen=True)
class HoldChange:
    """The hold of a place before and after a command, and the manifest of what is published there, if it is known."""

    before: Hold | None = None
    after: Hold | None = None
    built: Manifest | None = None


def current(store: Store) -> HoldChange:
    """The hold as it is; raise StoreError if it cannot be read."""
    with explaining_outage(store):
        hold = blocklist.read(store).hold
        try:
            published, _ = _root(store)
        except StoreError:
            if hold is None:  # that of a former program would be in the record
                raise
            published = None
        if published is None:
            return HoldChange(hold, hold)
        hold = hold or published.hold
        return HoldChange(hold, hold, published.built)


def begin(store: Store, reason: str, who: str, notify: Notify) -> HoldChange:
    """Put the store on hold, in place of any earlier hold; raise StoreError if nothing is published there.

    The same hold, set again, is as old as it was.
    """
    with explaining_outage(store):
        published, _ = _root(store)
        if published is None:
            raise StoreError(
                f"{store.name}: nothing is published there, so there is nothing to put on hold; as long as nobody runs "
                "`public-markets publish` or `rebuild`, nothing will be"
            )
        if published.built.state == record.FORMER_STATE:
            # To replace it would take it from that program, and this one does not read it.
            raise DamagedStateError(store.name, record.KEY, is_missing=False, is_former=True)
        former = published.hold
        before, after = _changed(store, lambda held: _again(held or former, reason, who, instant(store.now())))
        fenced = retried_while_busy(lambda: _fenced(store), notify, "waiting")
        return HoldChange(before or former, after, fenced.built)


def end(store: Store, notify: Notify) -> HoldChange:
    """Let builds be published again."""
    with explaining_outage(store):
        before, _ = _changed(store, lambda _: None)
        published = None
        try:
            published, _ = _root(store)
        except StoreError:
            if before is None:
                raise
        if published and published.hold:
            before = before or published.hold
            retried_while_busy(lambda: _fenced(store), notify, "waiting")
        return HoldChange(before)


def _again(before: Hold | None, reason: str, who: str, now: str) -> Hold:
    """A new hold, or the one before if it says the same."""
    is_repeated = before is not None and (before.reason, before.who) == (reason, who)
    return before if before and is_repeated else Hold(reason=reason, who=who, since=now)


def _changed(store: Store, wanted: Callable[[Hold | None], Hold | None]) -> tuple[Hold | None, Hold | None]:
    """Change the hold in the blocked list; returns the one before and after."""
    before: Hold | None = None

    def changed(found: BlockedList) -> BlockedList:
        nonlocal before
        before = found.hold
        return replaced(found, hold=wanted(before))

    with _explaining_silence(store, files.BLOCKED):
        after = blocklist.change(store, changed).hold
        return before, after


def _fenced(store: Store) -> Published:
    """Replace the record's root by itself; raise BusyError while a publisher is at work, which would lose its lease."""
    while True:
        published, etag = _root(store)
        if published is None or etag is None:
            raise StoreError(f"{store.name}: {record.KEY} was deleted meanwhile; find out by whom, then run again")
        if published.work:
            refuse_running(store.name, published.work, instant(store.now()))
        fence = replaced(published, sequence=published.sequence + 1, is_held=True, hold=None)
        with suppress(ConditionFailedError), _explaining_silence(store, record.KEY):
            put_until_answered(store, record.KEY, fence.encoded(), etag)
            return fence


def _root(store: Store) -> tuple[Published | None, str | None]:
    return with_retries(partial(lease.root, store))


@contextmanager
def _explaining_silence(store: Store, key: str) -> Iterator[None]:
    try:
        yield
    except UnreachableError:
        raise
    except UnavailableError as error:
        raise OutcomeUnknownError(
            f"{store.name}: no answer, so it is unknown whether {key} was replaced ({error}); "
            "`public-markets hold` says whether the target is on hold"
        ) from error


# In a folder that is served without a target


def current_here(root: Path) -> HoldChange:
    """The hold of a folder as it is; raise OutputError if it cannot be read."""
    with read_only(root) as folder:
        hold, built = folder_blocklist.load(folder).hold, None
        try:
            built = folder.manifest(is_light=True)
        except OutputError:
            if hold is None:
                raise
        return HoldChange(hold, hold, built)


def begin_here(root: Path, reason: str, who: str, now: str, notify: Notify) -> HoldChange:
    """Put a folder on hold, after a run at work; raise OutputError if it holds no build."""
    nothing = OutputError(f"{root}: holds no build yet, so there is nothing to put on hold")
    if not root.exists():
        raise nothing
    with locked_in_turn(root, notify) as folder:
        copy = folder_blocklist.settle(folder)
        hold = _again(copy.hold, reason, who, now)
        built = folder.manifest(is_light=True)
        if built is None:
            raise nothing
        folder_blocklist.save(folder, replaced(copy, hold=hold))
        return HoldChange(copy.hold, hold, built)


def end_here(root: Path, notify: Notify) -> HoldChange:
    """Let builds be made in a folder again."""
    if not root.exists():
        return HoldChange()
    with locked_in_turn(root, notify) as folder:
        copy = folder_blocklist.settle(folder)
        folder_blocklist.save(folder, replaced(copy, hold=None))
        return HoldChange(copy.hold)


# What publishers do about it


def refuse(store: Store, hold: Hold | None, *, is_dry: bool) -> list[str]:
    """Raise HeldError if the store is on hold; in a dry run, return warnings."""
    if hold is None:
        return []
    if is_dry:
        return [f"{store.name}: {hold}; without --dry-run, this run would be refused until {RELEASE}"]
    raise HeldError(store.name, hold, has_target=True)


@contextmanager
def explained(store: Store) -> Iterator[None]:
    """Raise HeldError in place of BusyError if a hold is what replaced the record since it was read."""
    try:
        yield
    except BusyError:
        with suppress(StoreError):
            if hold := blocklist.read(store).hold:
                raise HeldError(store.name, hold, has_target=True) from None
        raise


def samples(hold: Hold) -> Samples:
    """The hold as a metric."""
    return {sample(_METRIC, who=hold.who, reason=hold.reason): datetime.fromisoformat(hold.since).timestamp()}
