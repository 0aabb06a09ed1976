"""A bucket in memory: versions, conditional puts, listings. Independent of HTTP and faults."""

import hashlib
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from secrets import token_hex
from typing import Final

from tests.support.stores.s3.behaviour import Behaviour

#: The id of a version that was written while versions were not kept.
NULL: Final = "null"


class RefusedError(Exception):
    """What S3 answers with an error; nothing was changed."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object, or the marker that says that the object was deleted."""

    key: str
    id: str
    body: bytes
    etag: str
    headers: Mapping[str, str]
    modified: float
    is_marker: bool


class Bucket:
    """Every method is atomic and may be called from any thread."""

    def __init__(self, behaviour: Behaviour, clock: Callable[[], float]) -> None:
        #: "", "Enabled" or "Suspended", as in GetBucketVersioning.
        self.versioning = ""
        self._behaviour = behaviour
        self._clock = clock
        self._lock = threading.RLock()
        self._histories: dict[str, list[Version]] = {}  # oldest first, never empty
        self._sorted: list[str] | None = None
        self._numbers = count(1)

    def current(self) -> dict[str, Version]:
        """Every object that can be read."""
        with self._lock:
            return {key: history[-1] for key, history in self._histories.items() if not history[-1].is_marker}

    def get(self, key: str) -> Version:
        """The object that can be read under this key."""
        with self._lock:
            history = self._histories.get(key)
        if history is None or history[-1].is_marker:
            raise RefusedError(404, "NoSuchKey", "The specified key does not exist.")
        return history[-1]

    def put(self, key: str, body: bytes, headers: Mapping[str, str], match: str = "", none_match: str = "") -> Version:
        """Write an object if the conditions hold, which are as the headers have them."""
        with self._lock:
            if not self._behaviour.ignores_conditions:
                self._check(key, match, none_match)
            digest = token_hex(16) if self._behaviour.opaque_etags else hashlib.md5(body).hexdigest()  # noqa: S324 - S3's
            return self._append(key, body, f'"{digest}"', headers, is_marker=False)

    def _check(self, key: str, match: str, none_match: str) -> None:
        history = self._histories.get(key)
        current = None if history is None or history[-1].is_marker else history[-1]
        if none_match and current is not None:
            raise RefusedError(412, "PreconditionFailed", "The object exists.")
        if not match:
            return
        if current is None:
            raise RefusedError(404, "NoSuchKey", "The specified key does not exist.")
        expected = match if self._behaviour.bare_etags else match.strip('"')
        if expected != current.etag.strip('"'):
            raise RefusedError(412, "PreconditionFailed", "The object has another ETag.")

    def delete(self, key: str) -> None:
        """Delete an object; a marker is left where versions are kept."""
        with self._lock:
            if self.versioning:
                self._append(key, b"", "", {}, is_marker=True)
            else:
                self._histories.pop(key, None)
                self._sorted = None

    def delete_version(self, key: str, version_id: str) -> None:
        """Delete one version or marker for good."""
        with self._lock:
            kept = [version for version in self._histories.get(key, ()) if version.id != version_id]
            self._histories[key] = kept
            if not kept:
                del self._histories[key]
                self._sorted = None

    def list_objects(self, prefix: str, after: str, limit: int) -> tuple[list[Version], bool]:
        """Objects whose keys begin with `prefix` and come after `after`, and whether there are more."""
        limit = min(limit, self._behaviour.page_size)
        with self._lock:
            found = (self._histories[key][-1] for key in self._keys(prefix, after))
            page = list(islice((version for version in found if not version.is_marker), limit + 1))
        return page[:limit], len(page) > limit

    def list_versions(self, prefix: str, after: tuple[str, str], limit: int) -> tuple[list[Version], bool]:
        """Versions and markers after a key and a version id, the newest of each key first; and whether there are more.

        When the version to go on after is gone, so is the rest of its key, as in radosgw.
        """
        limit = min(limit, self._behaviour.page_size)
        with self._lock:
            found = [version for key in self._keys(prefix, "") for version in reversed(self._histories[key])]
        places = [(version.key, version.id) for version in found]
        start = (
            places.index(after) + 1
            if after in places
            else bisect_right(found, after[0], key=lambda version: version.key)
        )
        return found[start : start + limit], start + limit < len(found)

    def is_current(self, version: Version) -> bool:
        """Whether this version or marker is the newest of its key."""
        with self._lock:
            return self._histories.get(version.key, [None])[-1] is version

    def _keys(self, prefix: str, after: str) -> Iterator[str]:
        if self._sorted is None:
            self._sorted = sorted(self._histories)
        start = max(bisect_left(self._sorted, prefix), bisect_right(self._sorted, after) if after else 0)
        for key in islice(self._sorted, start, None):
            if not key.startswith(prefix):
                return
            yield key

    def _append(self, key: str, body: bytes, etag: str, headers: Mapping[str, str], *, is_marker: bool) -> Version:
        name = str(next(self._numbers)) if self.versioning == "Enabled" else NULL
        version = Version(key, name, body, etag, headers, self._clock(), is_marker)
        history = self._histories.get(key)
        if history is None:
            self._histories[key] = [version]
            self._sorted = None
        else:
            self._histories[key] = [old for old in history if old.id != name] + [version]
        return version
