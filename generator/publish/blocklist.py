"""The blocked list in the store: read it, and change it by conditional puts that survive concurrent changes."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from generator.errors import StoreError
from generator.publish import store_checks
from generator.stores.requests import body_of, put_until_answered, with_retries
from generator.stores.store import ConditionFailedError, If, Store, Stored
from generator.tree import blocklist
from generator.tree.blocklist import KEY, BlockedList, unreadable
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
