"""Objects that are written to learn how a store behaves: their keys, and which of them were left by a killed run."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from generator import process_identity
from generator.stores.store import Store

_PREFIX: Final = "probe-"
#: A run on another machine that wrote a probe so long ago has ended: it deletes it within seconds.
_LONGEST: Final = timedelta(hours=1)


def new_key() -> str:
    """The key of a new probe, never used before."""
    return f"{_PREFIX}{secrets.token_hex(16)}.json"


def body(store: Store, number: int) -> bytes:
    """What to write to a probe: who wrote it and when, and a number that tells its versions apart."""
    return f"{process_identity.identity()}\n{store.now().isoformat()}\n{number}".encode()


def sweep(store: Store) -> None:
    """Delete the probes that runs left because they were killed."""
    if leftovers := [*_leftovers(store)]:
        store.delete(leftovers)


def _leftovers(store: Store) -> Iterator[str]:
    for listed in store.list(_PREFIX):
        found = store.get(listed.key)
        if found and _is_leftover(found.body, store.now()):
            yield listed.key


def _is_leftover(content: bytes, now: datetime) -> bool:
    try:
        process, at, _ = content.decode().split("\n")
        age = now - datetime.fromisoformat(at).astimezone(UTC)
    except ValueError:  # of a request without credentials, which is not read
        return True
    return process_identity.has_ended(process) or abs(age) > _LONGEST
