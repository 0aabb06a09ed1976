"""The `Store` protocol: the place of published objects, bucket or directory. A single writer is a store, too.

A store makes each request once and never retries, so the caller knows what a failure leaves unknown.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, Protocol, TypeAlias

from generator.errors import StoreError


class If(Enum):
    """Conditions of a put that name no version."""

    ALWAYS = "always"
    ABSENT = "absent"


#: The most objects that one request deletes (S3 API, DeleteObjects).
MOST_DELETED: Final = 1_000
#: The most objects that one request lists (S3 API, ListObjectsV2).
MOST_LISTED: Final = 1_000
#: When a put may take effect; a string stands for: only while this is the object's ETag.
Condition: TypeAlias = If | str
#: Called before each request of a method that makes many, in any thread; an error it raises ends the method.
BeforeEach: TypeAlias = Callable[[], object]


def nothing() -> None:
    """Do nothing before each request."""


class ConditionFailedError(Exception):
    """The condition of a put did not hold; nothing was written."""


class UnavailableError(Exception):
    """The store did not answer, or cannot at the moment; a write may have been applied nevertheless."""


class UnsupportedError(StoreError):
    """The store does not support such a request."""


class UnreachableError(UnavailableError):
    """No connection to the store can be made, and none was made before: its address is probably wrong."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object's bytes and its ETag, an opaque token."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a listing; `size` in bytes. The ETag is empty where it would take reading the object."""

    key: str
    size: int
    etag: str


class Store(Protocol):
    """Objects by key. Keys are relative to the target; headers follow from the key (`keys.headers`).

    Every method may raise UnavailableError, which is worth another try, and StoreError, which is not.
    """

    @property
    def name(self) -> str:
        """The target, for messages."""

    @property
    def parallel(self) -> int:
        """The number of concurrent requests that gives the best throughput."""

    @property
    def at_once(self) -> int:
        """The number of puts that a thread best makes one after the other in `together`."""

    @property
    def requests(self) -> int:
        """The number of requests made so far."""

    def together(self) -> AbstractContextManager[None]:
        """A short block whose puts by this thread may share what each needs, such as a lock."""

    def now(self) -> datetime:
        """The store's clock, timezone-aware."""

    def get(self, key: str) -> Stored | None:
        """Read an object; None if there is none."""

    def head(self, key: str) -> str | None:
        """Return an object's ETag; None if there is none."""

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object and return its new ETag; raise ConditionFailedError if the condition does not hold."""

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        """Delete objects, whether they exist or not."""

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield every object whose key begins with `prefix` and comes after the key `after`, in order of keys."""

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield their keys alone: some stores would read the objects for more."""

    def purge_versions(self, prefix: str, before_each: BeforeEach = nothing) -> int:
        """Delete old versions of overwritten and deleted objects; return their number."""

    def etag_of(self, body: bytes) -> str | None:
        """The ETag that an object of these bytes would have; None if the store's ETags cannot be predicted."""

    def flush(self) -> None:
        """Make everything that was put durable."""

    def is_open_to_everyone(self) -> bool:
        """Whether anyone can write here without credentials."""

    def is_versioned(self) -> bool:
        """Whether overwritten and deleted objects remain readable as old versions."""


class Wrapper:
    """Delegates to another store whatever a subclass does not do itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.name = store.name
        self.parallel = store.parallel
        self.at_once = store.at_once

    @property
    def requests(self) -> int:
        """The number of requests made to the wrapped store."""
        return self._store.requests

    def together(self) -> AbstractContextManager[None]:
        """A block whose puts share what each needs."""
        return self._store.together()

    def now(self) -> datetime:
        """The store's clock."""
        return self._store.now()

    def get(self, key: str) -> Stored | None:
        """Read an object."""
        return self._store.get(key)

    def head(self, key: str) -> str | None:
        """Return an object's ETag."""
        return self._store.head(key)

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object."""
        return self._store.put(key, body, condition)

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        """Delete objects."""
        self._store.delete(keys, before_each)

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """List objects."""
        return self._store.list(prefix, after)

    def keys(self, prefix: str) -> Iterator[str]:
        """List keys."""
        return self._store.keys(prefix)

    def purge_versions(self, prefix: str, before_each: BeforeEach = nothing) -> int:
        """Delete old versions."""
        return self._store.purge_versions(prefix, before_each)

    def etag_of(self, body: bytes) -> str | None:
        """Predict an ETag."""
        return self._store.etag_of(body)

    def flush(self) -> None:
        """Make everything durable."""
        self._store.flush()

    def is_open_to_everyone(self) -> bool:
        """Whether anyone can write here without credentials."""
        return self._store.is_open_to_everyone()

    def is_versioned(self) -> bool:
        """Whether old versions are kept."""
        return self._store.is_versioned()


class SingleWriter(Wrapper):
    """Checks conditions before it puts, for a store that ignores them. Not safe with concurrent writers."""

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Check the condition, then write."""
        if condition is not If.ALWAYS and self.head(key) != (None if condition is If.ABSENT else condition):
            raise ConditionFailedError(key)
        return self._store.put(key, body, If.ALWAYS)


class Watched(Wrapper):
    """Notes whether a put or deletion got no answer: it may still take effect, also after it was made again."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.is_unanswered = False

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object."""
        with self._watching():
            return self._store.put(key, body, condition)

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        """Delete objects."""
        with self._watching():
            self._store.delete(keys, before_each)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        try:
            yield
        except UnreachableError:  # nothing was sent
            raise
        except UnavailableError:
            self.is_unanswered = True
            raise
