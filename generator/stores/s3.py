"""A bucket as a store: uploads through obstore, everything else through boto3.

Where other stores differ from Amazon S3, it detects the difference and remembers it.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Protocol

from botocore.exceptions import ClientError

from generator.api import keys
from generator.stores import probes
from generator.stores.requests import ITEMS_PER_TASK
from generator.stores.s3_connection import LONGEST_REQUEST, Connection
from generator.stores.s3_deletions import PARALLEL, Deletions
from generator.stores.s3_errors import is_missing, is_unsupported, status_of
from generator.stores.store import BeforeEach, Condition, ConditionFailedError, If, Listed, Stored, nothing

_LOG: Final = logging.getLogger("public_markets")
_REFUSED: Final = range(300, 500)
#: Statuses with several causes, which only the body of the answer tells apart.
_AMBIGUOUS: Final = (400, 401, 403)


class _Uploads(Protocol):
    @property
    def parallel(self) -> int: ...
    def put(self, key: str, body: bytes, headers: Mapping[str, str], condition: Condition) -> str: ...


@dataclass(frozen=True)
class RequestOptions:
    """The Cache-Control of immutable objects, and the longest that a request may last."""

    immutable: str = keys.IMMUTABLE
    longest: timedelta = LONGEST_REQUEST
    deletions: int = PARALLEL


class Bucket:
    """Objects of the bucket whose keys begin with `prefix`; `immutable` is the Cache-Control of immutable ones.

    ETags are without quotation marks here.
    """

    at_once: Final = ITEMS_PER_TASK

    def __init__(
        self,
        bucket: str,
        prefix: str,
        *,
        endpoint_url: str | None,
        client: Literal["obstore", "boto3"],
        options: RequestOptions = RequestOptions(),
    ) -> None:
        self.name = f"s3://{bucket}/{prefix}".rstrip("/")
        self._bucket = bucket
        self._prefix = prefix
        self._immutable = options.immutable
        self._connection = Connection(self.name, bucket, endpoint_url, options.longest)
        self._s3 = self._connection.client
        self._uploads = _uploads(client, self._connection)
        self._deletions = Deletions(self._connection, options.deletions)
        self.parallel = self._uploads.parallel
        #: Whether the store wants quoted ETags in If-Match; None until a put has shown it.
        self._quoted: bool | None = None
        #: Whether ETags are the MD5 of the bytes; None until a put has shown it.
        self._is_md5: bool | None = None

    @property
    def requests(self) -> int:
        """The number of requests made so far."""
        return self._connection.requests

    def together(self) -> AbstractContextManager[None]:
        """Nothing: the requests of a block have nothing in common."""
        return nullcontext()

    def now(self) -> datetime:
        """The store's clock, from the Date of its last answer."""
        return self._connection.now()

    def get(self, key: str) -> Stored | None:
        """Read an object."""
        with self._connection.translated(self._url(key)):
            try:
                answer = self._s3.get_object(Bucket=self._bucket, Key=self._prefix + key)
            except ClientError as error:
                if is_missing(error):
                    return None
                raise
            return Stored(answer["Body"].read(), _unquoted(answer["ETag"]))

    def head(self, key: str) -> str | None:
        """Return an object's ETag."""
        with self._connection.translated(self._url(key)):
            try:
                return _unquoted(self._s3.head_object(Bucket=self._bucket, Key=self._prefix + key)["ETag"])
            except ClientError as error:
                if is_missing(error):
                    return None
                if status_of(error) not in _AMBIGUOUS:
                    raise
        # The answer to HEAD has no body, and so no error code; GET has.
        found = self.get(key)
        return found.etag if found else None

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        """Write an object with its headers."""
        etag = self._replace(key, body, condition) if isinstance(condition, str) else self._put(key, body, condition)
        if self._is_md5 is None:
            self._is_md5 = etag == _md5(body)
        return etag

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        """Delete objects, in bulk if the store supports it."""
        self._deletions.delete([{"Key": self._prefix + key} for key in keys], before_each)

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """List objects, up to a thousand per request."""
        resumed: Any = {"StartAfter": self._prefix + after} if after else {}
        with self._connection.translated(self._url(prefix)):
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix, **resumed
            )
            for page in pages:
                for found in page.get("Contents", []):
                    yield Listed(found["Key"].removeprefix(self._prefix), found["Size"], _unquoted(found["ETag"]))

    def keys(self, prefix: str) -> Iterator[str]:
        """List keys, as many per request."""
        return (listed.key for listed in self.list(prefix))

    def purge_versions(self, prefix: str, before_each: BeforeEach = nothing) -> int:
        """Delete the old versions that a versioned bucket keeps."""
        return self._deletions.purge_versions(self._prefix + prefix, before_each)

    def is_versioned(self) -> bool:
        """Whether the bucket keeps old versions."""
        return self._deletions.is_versioned()

    def etag_of(self, body: bytes) -> str | None:
        """The MD5 of the bytes, once a put has shown that this store's ETags are MD5."""
        return _md5(body) if self._is_md5 else None

    def flush(self) -> None:
        """Do nothing: a put that was answered is durable."""

    def is_open_to_everyone(self) -> bool:
        """Try to write an object without credentials, and delete it again."""
        key = probes.new_key()
        with self._connection.translated(self._url(key)):
            try:
                self._connection.anonymous().put_object(
                    Bucket=self._bucket, Key=self._prefix + key, Body=b"{}", IfNoneMatch="*"
                )
            except ClientError as error:
                if status_of(error) in _REFUSED or is_unsupported(error):  # a store without conditional puts
                    return False
                raise
        self.delete([key])
        return True

    def _url(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{key}"

    def _put(self, key: str, body: bytes, condition: Condition) -> str:
        return _unquoted(self._uploads.put(self._prefix + key, body, keys.headers(key, self._immutable), condition))

    def _replace(self, key: str, body: bytes, etag: str) -> str:
        try:
            stored = self._put(key, body, etag if self._quoted is False else _quoted(etag))
        except ConditionFailedError:
            if self._quoted is not None or self.head(key) != etag:
                raise
            # Ceph compares If-Match with its own form of the ETag, without quotation marks.
            stored = self._put(key, body, etag)
            self._quoted = False
        else:
            self._quoted = self._quoted is not False
        return stored


def _uploads(client: Literal["obstore", "boto3"], connection: Connection) -> _Uploads:
    if client == "obstore":
        try:
            # A binary package that not every platform has.
            from generator.stores.s3_uploads import Uploads  # noqa: PLC0415

            return Uploads(connection)
        except ImportError as error:
            _LOG.warning("obstore cannot be imported (%s); uploading through boto3, which is slower", error)
    return _Boto3Uploads(connection)


class _Boto3Uploads:
    """Uploads through boto3; more threads would not make it faster."""

    parallel: Final = 16

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, key: str, body: bytes, headers: Mapping[str, str], condition: Condition) -> str:
        """Write an object and return its ETag; an ETag as condition is sent as it is."""
        bucket = self._connection.bucket
        arguments: dict[str, Any] = {name.replace("-", ""): value for name, value in headers.items()}
        if isinstance(condition, str):
            arguments["IfMatch"] = condition
        elif condition is If.ABSENT:
            arguments["IfNoneMatch"] = "*"
        with self._connection.translated(f"s3://{bucket}/{key}"):
            return self._connection.client.put_object(Bucket=bucket, Key=key, Body=body, **arguments)["ETag"]


def _quoted(etag: str) -> str:
    return etag if etag.startswith("W/") else f'"{etag}"'


def _unquoted(etag: str) -> str:
    return etag.strip('"')


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()
