"""The blocked list in the store, and the operator's hold in it: while there is one, no build is published.

The list is changed by conditional puts that survive concurrent changes. A hold is written first, so that whoever begins
later is refused. Then a publisher at work is waited for, and the record's root is replaced by itself: whoever read it
before the hold fails at the next conditional put. Once `set_hold` has returned, nothing of a build is put until a
release. What a run that was cut short left to do stays in the record. A folder that is served without a target has a
hold of its own, which stops builds.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from generator.api.forms import instant
from generator.errors import BusyError, OutcomeUnknownError, OutputError, StoreError
from generator.models import replaced
from generator.publish import lease, record, store_checks
from generator.publish.lease import refuse_running
from generator.publish.record import DamagedStateError, Published
from generator.stores.requests import body_of, explaining_outage, put_until_answered, with_retries
from generator.stores.store import ConditionFailedError, If, Store, Stored, UnavailableError, UnreachableError
from generator.tree import blocklist, files
from generator.tree.blocklist import KEY, RELEASE, BlockedList, HeldError, Hold, unreadable
from generator.tree.folder import locked_in_turn, read_only
from generator.tree.run_lock import Notify, retried_while_busy
from generator.tree.stored import FormatError

#: Attempts at a conditional put before giving up on a list that others keep changing.
_ATTEMPTS: Final = 20


def read(store: Store, *, keeps_damaged: bool = False) -> BlockedList:
    """Read the store's list; raise StoreError if it is damaged.

    If a takedown asks, which `keeps_damaged`, the answer names the damaged list instead.
    """
    return _parsed(store, with_retries(lambda: store.get(KEY)), keeps_damaged=keeps_damaged)[0]


def merge(store: Store, local: BlockedList) -> BlockedList:
    """Merge `local` into the store's list and return the result; raise StoreError if one is damaged or kept aside."""
    merged = change(store, lambda stored: stored.merged(local))
    require_whole(store, merged)
    return merged


def change(store: Store, wanted: Callable[[BlockedList], BlockedList], *, keeps_damaged: bool = False) -> BlockedList:
    """Replace the store's list and return the new one.

    If it is damaged, it is kept aside under another name for a takedown, which `keeps_damaged`, and else StoreError is
    raised.
    """
    for _ in range(_ATTEMPTS):
        stored = with_retries(lambda: store.get(KEY))
        before, written = _parsed(store, stored, keeps_damaged=keeps_damaged)
        after = wanted(before)
        if after == written:
            return after
        if stored and written is None:
            put_until_answered(store, before.aside[0], stored.body, If.ALWAYS)
        try:
            put_until_answered(store, KEY, after.encoded(), stored.etag if stored else If.ABSENT)
        except ConditionFailedError:
            continue
        if written and (restored := sorted({*written.aside}.difference(after.aside))):
            with_retries(partial(store.delete, restored))
        return after
    raise StoreError(f"{store.name}: {KEY} keeps changing; find out who else writes it, then run again")


def require_whole(store: Store, found: BlockedList) -> None:
    """Raise StoreError if a damaged list is still kept aside in the store."""
    for fault in faults(store, found):
        raise StoreError(fault)


def faults(store: Store, found: BlockedList) -> Iterator[str]:
    """What is wrong with each list that is still kept aside in the store."""
    return blocklist.faults(found, partial(body_of, store), lambda name: f"{store.name}: {name}")


def require_conditions(store: Store, written: BlockedList) -> None:
    """Raise StoreError if the store ignores conditions, so that another run may overwrite the list just `written`."""
    with suppress(ConditionFailedError):
        with_retries(lambda: store.put(KEY, written.encoded(), If.ABSENT))
        raise StoreError(store_checks.unconditional(store, "ignores"))


def _parsed(store: Store, stored: Stored | None, *, keeps_damaged: bool) -> tuple[BlockedList, BlockedList | None]:
    """The list with what others say that were kept aside, and as it is written, None if it is damaged."""
    written = BlockedList()
    try:
        written = blocklist.decode(stored.body) if stored else written
    except ValueError as error:
        if stored is None or not keeps_damaged or isinstance(error, FormatError):
            raise StoreError(unreadable(f"{store.name}: {KEY}", error, stored.body if stored else b"")) from error
        return BlockedList(aside=(blocklist.aside_name(stored.body),)), None
    return written.settled(partial(body_of, store)), written


# The hold


@dataclass(frozen=True)
class HoldChange:
    """The hold of a place before and after a command, and what is published there: as of when, if it is known."""

    before: Hold | None = None
    after: Hold | None = None
    as_of: str = ""
    is_first: bool = False


def held(store: Store) -> HoldChange:
    """The hold as it is; raise StoreError if it cannot be read."""
    with explaining_outage(store):
        hold = read(store).hold
        try:
            published, _ = _root(store)
        except StoreError:
            if hold is None:  # that of a former program would be in the record
                raise
            published = None
        if published is None:
            return HoldChange(hold, hold)
        hold = hold or published.hold
        return HoldChange(hold, hold, published.built.as_of, published.built.is_first)


def set_hold(store: Store, reason: str, who: str, notify: Notify) -> HoldChange:
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
        return HoldChange(before or former, after, fenced.built.as_of, fenced.built.is_first)


def release_hold(store: Store, notify: Notify) -> HoldChange:
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
        after = change(store, changed).hold
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


def held_here(root: Path) -> HoldChange:
    """The hold of a folder as it is; raise OutputError if it cannot be read."""
    with read_only(root) as folder:
        hold, as_of, is_first = blocklist.load(folder).hold, "", False
        try:
            if built := folder.manifest(is_light=True):
                as_of, is_first = built.as_of, built.is_first
        except OutputError:
            if hold is None:
                raise
        return HoldChange(hold, hold, as_of, is_first)


def set_hold_here(root: Path, reason: str, who: str, now: str, notify: Notify) -> HoldChange:
    """Put a folder on hold, after a run at work; raise OutputError if it holds no build."""
    nothing = OutputError(f"{root}: holds no build yet, so there is nothing to put on hold")
    if not root.exists():
        raise nothing
    with locked_in_turn(root, notify) as folder:
        copy = blocklist.settle(folder)
        hold = _again(copy.hold, reason, who, now)
        built = folder.manifest(is_light=True)
        if built is None:
            raise nothing
        blocklist.save(folder, replaced(copy, hold=hold))
        return HoldChange(copy.hold, hold, built.as_of, built.is_first)


def release_hold_here(root: Path, notify: Notify) -> HoldChange:
    """Let builds be made in a folder again."""
    if not root.exists():
        return HoldChange()
    with locked_in_turn(root, notify) as folder:
        copy = blocklist.settle(folder)
        blocklist.save(folder, replaced(copy, hold=None))
        return HoldChange(copy.hold)


# What publishers do about it


def refuse_held(store: Store, hold: Hold | None, *, is_dry: bool) -> list[str]:
    """Raise HeldError if the store is on hold; in a dry run, return warnings."""
    if hold is None:
        return []
    if is_dry:
        return [f"{store.name}: {hold}; without --dry-run, this run would be refused until {RELEASE}"]
    raise HeldError(store.name, hold, has_target=True)


@contextmanager
def explaining_hold(store: Store) -> Iterator[None]:
    """Raise HeldError in place of BusyError if a hold is what replaced the record since it was read."""
    try:
        yield
    except BusyError:
        with suppress(StoreError):
            if hold := read(store).hold:
                raise HeldError(store.name, hold, has_target=True) from None
        raise
