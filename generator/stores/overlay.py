"""The store of a dry run: it reads another one, keeps what is written to itself, and answers as if it were stored."""

import heapq
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from generator.api.contract import API_VERSION
from generator.stores.store import (
    MOST_DELETED,
    BeforeEach,
    Condition,
    ConditionFailedError,
    If,
    Listed,
    Store,
    Stored,
    Wrapper,
    nothing,
)

#: How the keys of published objects begin, which may be large and very many.
_PUBLISHED: Final = f"{API_VERSION}/"


@dataclass(frozen=True, slots=True)
class _Written:
    """An object that was put; its body is kept if it is not a published one."""

    etag: str
    size: int
    body: bytes | None


class Overlay(Wrapper):
    """Writes nothing to the store below. Bodies of published objects are not kept; `source` has them, by key.

    A condition on a published object that was not written here is taken to hold: asking would take a request for each
    of very many.
    """

    def __init__(self, store: Store, source: Callable[[str], bytes | None]) -> None:
        super().__init__(store)
        self._source = source
        #: What was put here, by key; None for what was deleted.
        self._written: dict[str, _Written | None] = {}
        self._lock = threading.Lock()

    def together(self) -> AbstractContextManager[None]:
        """Nothing is shared."""
        return nullcontext()

    def get(self, key: str) -> Stored | None:
        """Read an object."""
        if key not in self._written:
            return self._store.get(key)
        if (written := self._written[key]) is None:
            return None
        body = self._source(key) if written.body is None else written.body
        return None if body is None else Stored(body, written.etag)

    def head(self, key: str) -> str | None:
        """Return an object's ETag."""
        if key not in self._written:
            return self._store.head(key)
        written = self._written[key]
        return written.etag if written else None

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Keep an object; raise ConditionFailedError if the condition does not hold."""
        with self._lock:
            is_published = key.startswith(_PUBLISHED)
            if condition is not If.ALWAYS and (key in self._written or not is_published):
                wanted = None if condition is If.ABSENT else condition
                if self.head(key) != wanted:
                    raise ConditionFailedError(key)
            etag = self.etag_of(body) or secrets.token_hex(16)
            self._written[key] = _Written(etag, len(body), None if is_published else body)
            return etag

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        """Have objects gone."""
        for start in range(0, len(keys), MOST_DELETED):
            before_each()
            with self._lock:
                self._written |= dict.fromkeys(keys[start : start + MOST_DELETED])

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """List objects."""
        written = {**self._written}
        below = (listed for listed in self._store.list(prefix, after) if listed.key not in written)
        here = (
            Listed(key, found.size, found.etag)
            for key, found in sorted(written.items())
            if found and key.startswith(prefix) and key > after
        )
        yield from heapq.merge(below, here, key=attrgetter("key"))

    def keys(self, prefix: str) -> Iterator[str]:
        """List keys."""
        return (listed.key for listed in self.list(prefix))

    def purge_versions(self, prefix: str, before_each: BeforeEach = nothing) -> int:  # noqa: ARG002 - the protocol's
        """Delete nothing."""
        return 0

    def flush(self) -> None:
        """Do nothing: nothing was written."""

    def is_open_to_everyone(self) -> bool:
        """Not asked: that takes a write."""
        return False
