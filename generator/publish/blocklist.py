"""The blocked list in the store: read, and changed by conditional puts, whoever else changes it meanwhile."""

from typing import Final

from generator.errors import StoreError
from generator.publish.stores.requests import persist, put_once
from generator.publish.stores.store import ConditionFailedError, If, Store
from generator.tree.blocklist import KEY, Blocked, decoded, unreadable

#: Somebody else may be faster a few times.
_ATTEMPTS: Final = 20


def read(store: Store) -> Blocked:
    """The list in the store."""
    return _read(store)[0]


def change(store: Store, local: Blocked) -> Blocked:
    """Merge what `local` says into the store's list, whoever else changes it meanwhile; returns the outcome."""
    for _ in range(_ATTEMPTS):
        found, etag = _read(store)
        wanted = found.merged(local)
        if wanted == found:
            return found
        try:
            put_once(store, KEY, wanted.encoded(), etag or If.ABSENT)
        except ConditionFailedError:
            continue
        return wanted
    raise StoreError(f"{store.name}: {KEY} changes all the time; who else writes it? run again")


def _read(store: Store) -> tuple[Blocked, str | None]:
    stored = persist(lambda: store.get(KEY))
    if stored is None:
        return Blocked(), None
    try:
        return decoded(stored.body), stored.etag
    except ValueError as error:
        raise StoreError(unreadable(f"{store.name}: {KEY}", error)) from error
