"""The blocked list in the store: read it, and change it by conditional puts that survive concurrent changes."""

from typing import Final

from generator.errors import StoreError
from generator.stores.requests import put_until_answered, with_retries
from generator.stores.store import ConditionFailedError, If, Store
from generator.tree.blocklist import KEY, BlockedList, decode, unreadable

#: Attempts at a conditional put before giving up on a list that others keep changing.
_ATTEMPTS: Final = 20


def read(store: Store) -> BlockedList:
    """Read the store's list; raise StoreError if it is damaged."""
    return _read(store)[0]


def merge(store: Store, local: BlockedList) -> BlockedList:
    """Merge `local` into the store's list and return the result."""
    for _ in range(_ATTEMPTS):
        found, etag = _read(store)
        wanted = found.merged(local)
        if wanted == found:
            return found
        try:
            put_until_answered(store, KEY, wanted.encoded(), etag or If.ABSENT)
        except ConditionFailedError:
            continue
        return wanted
    raise StoreError(f"{store.name}: {KEY} keeps changing; find out who else writes it, then run again")


def _read(store: Store) -> tuple[BlockedList, str | None]:
    stored = with_retries(lambda: store.get(KEY))
    if stored is None:
        return BlockedList(), None
    try:
        return decode(stored.body), stored.etag
    except ValueError as error:
        raise StoreError(unreadable(f"{store.name}: {KEY}", error, stored.body)) from error
