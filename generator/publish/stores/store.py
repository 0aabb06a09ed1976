"""The `Store` protocol: where published objects lie, whoever keeps them. Dry run and single writer are stores, too.

A store does what it is told, once: it never retries, so that whoever calls knows what a failure leaves unknown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, Protocol, TypeAlias


class If(Enum):
    """Conditions of a put that name no version."""

    ALWAYS = "always"
    ABSENT = "absent"


#: When a put may take effect; a text means: only while the object's ETag is this.
Condition: TypeAlias = If | str


class ConditionFailedError(Exception):
    """The condition of a put did not hold; nothing was written."""


class UnavailableError(Exception):
    """The store did not answer or answered that it cannot now; a write may have been applied all the same."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object's bytes and its ETag, an opaque token."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What a listing tells of an object; `size` in bytes."""

    key: str
    size: int
    etag: str


class Store(Protocol):
    """Objects by key. Keys are relative to the target; headers follow from the key (`keys.headers`).

    Every method may raise UnavailableError, which is worth another try, and StoreError, which is not.
    """

    @property
    def name(self) -> str:
        """The target as people write it."""

    @property
    def parallel(self) -> int:
        """How many requests at once are worth having."""

    @property
    def requests(self) -> int:
        """How many requests were made so far."""

    def now(self) -> datetime:
        """The store's clock, aware, as last heard or asked for now."""

    def get(self, key: str) -> Stored | None:
        """Read an object; None when there is none."""

    def head(self, key: str) -> str | None:
        """Tell an object's ETag; None when there is none."""

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object and return its new ETag; raise ConditionFailedError when the condition does not hold."""

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, whether they exist or not."""

    def list(self, prefix: str) -> Iterator[Listed]:
        """Every object whose key begins with `prefix`, in the order of the keys."""

    def purge_versions(self, prefix: str) -> int:
        """Delete what a versioned store keeps of overwritten and deleted objects; returns how many versions."""

    def etag_of(self, body: bytes) -> str | None:
        """The ETag that an object of these bytes would have; None where ETags cannot be foretold."""

    def flush(self) -> None:
        """Have everything that was put survive a power cut."""

    def is_open_to_everyone(self) -> bool:
        """Whether somebody without credentials can write here."""

    def is_versioned(self) -> bool:
        """Whether what is overwritten or deleted is kept, for whoever knows a version's name."""


class _Around:
    """A store around another one, which does everything that a subclass does not do itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.name = store.name
        self.parallel = store.parallel

    @property
    def requests(self) -> int:
        """How many requests were really made."""
        return self._store.requests

    def now(self) -> datetime:
        """The store's clock."""
        return self._store.now()

    def get(self, key: str) -> Stored | None:
        """Read an object."""
        return self._store.get(key)

    def head(self, key: str) -> str | None:
        """Tell an object's ETag."""
        return self._store.head(key)

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object."""
        return self._store.put(key, body, condition)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects."""
        self._store.delete(keys)

    def list(self, prefix: str) -> Iterator[Listed]:
        """List objects."""
        return self._store.list(prefix)

    def purge_versions(self, prefix: str) -> int:
        """Delete old versions."""
        return self._store.purge_versions(prefix)

    def etag_of(self, body: bytes) -> str | None:
        """Foretell an ETag."""
        return self._store.etag_of(body)

    def flush(self) -> None:
        """Have everything survive a power cut."""
        self._store.flush()

    def is_open_to_everyone(self) -> bool:
        """Whether somebody without credentials can write here."""
        return self._store.is_open_to_everyone()

    def is_versioned(self) -> bool:
        """Whether old versions are kept."""
        return self._store.is_versioned()


_PRETENDED: Final = "dry run"


class DryRun(_Around):
    """Reads from a store, and pretends to write."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._pretended: set[str] = set()

    def head(self, key: str) -> str | None:
        """Tell an object's ETag, or the one that it would have."""
        return _PRETENDED if key in self._pretended else super().head(key)

    def put(self, key: str, body: bytes, condition: Condition) -> str:  # noqa: ARG002 - the protocol's
        """Write nothing."""
        self._pretended.add(key)
        return _PRETENDED

    def delete(self, keys: Sequence[str]) -> None:
        """Delete nothing."""

    def purge_versions(self, prefix: str) -> int:  # noqa: ARG002 - the protocol's
        """Delete nothing."""
        return 0

    def flush(self) -> None:
        """Nothing was written."""

    def is_open_to_everyone(self) -> bool:
        """To find out takes a write."""
        return False


class SingleWriter(_Around):
    """Looks before it puts, for a store that ignores conditions. Two writers at once can do each other harm."""

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Look, then write."""
        if condition is not If.ALWAYS and self.head(key) != (None if condition is If.ABSENT else condition):
            raise ConditionFailedError(key)
        return self._store.put(key, body, If.ALWAYS)
