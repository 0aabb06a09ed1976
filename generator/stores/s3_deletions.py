"""Deletes objects and their old versions from a bucket: in bulk if the store supports it, otherwise one by one."""

from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from generator.errors import StoreError
from generator.stores.requests import parallel_map
from generator.stores.s3_connection import Connection
from generator.stores.s3_errors import DeniedError, is_transient, is_unsupported, of_answer
from generator.stores.store import MOST_DELETED, BeforeEach

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from types_boto3_s3.type_defs import (
        DeleteMarkerEntryTypeDef,
        DeleteObjectsOutputTypeDef,
        ListObjectVersionsOutputTypeDef,
        ObjectIdentifierTypeDef,
        ObjectVersionTypeDef,
    )

    _Select = Callable[[ListObjectVersionsOutputTypeDef], list[ObjectIdentifierTypeDef]]

#: Deletions at once, in a store that deletes no batches.
PARALLEL: Final = 16
_OK: Final = 200
_VERSIONED: Final = ("Enabled", "Suspended")
_PERMISSIONS: Final = "allow these credentials s3:GetBucketVersioning, s3:ListBucketVersions and s3:DeleteObjectVersion"


class Deletions:
    """Deletes by full keys, with the target's prefix."""

    def __init__(self, connection: Connection, parallel: int = PARALLEL) -> None:
        self._connection = connection
        self._name = connection.name
        self._bucket = connection.bucket
        self._s3 = connection.client
        self._parallel = parallel
        self._supports_bulk = True
        self._supports_versions = True

    def delete(self, objects: "Sequence[ObjectIdentifierTypeDef]", before_each: BeforeEach) -> None:
        """Delete objects, or the given versions of them, whether they exist or not."""
        for start in range(0, len(objects), MOST_DELETED):
            batch = objects[start : start + MOST_DELETED]
            before_each()
            if not (self._supports_bulk and self._delete_batch(batch)):
                self._supports_bulk = False
                self._delete_singly(batch, before_each)

    def purge_versions(self, prefix: str, before_each: BeforeEach) -> int:
        """Delete old versions and delete markers; return their number."""
        try:
            if not self.is_versioned():
                return 0
            # In this order: without its delete marker, an old version would become current again.
            return self._purge(prefix, _old_versions, before_each) + self._purge(prefix, _delete_markers, before_each)
        except DeniedError as error:
            raise StoreError(f"{self._name}: cannot delete old versions; {_PERMISSIONS}") from error

    def _delete_batch(self, objects: "Sequence[ObjectIdentifierTypeDef]") -> bool:
        with self._connection.translated(self._name):
            try:
                answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
            except ClientError as error:
                # No such operation, or it wants a Content-MD5, which boto3 no longer sends.
                if is_unsupported(error):
                    return False
                raise
        self._check(answer)
        return True

    def _check(self, answer: "DeleteObjectsOutputTypeDef") -> None:
        # Errors come with a 200. Raise a permanent one before one that a retry may resolve.
        for error in sorted(answer.get("Errors", []), key=lambda error: is_transient(_OK, error.get("Code", ""))):
            if error.get("Code") != "NoSuchKey":
                asked = self._connection.asked(f"s3://{self._bucket}/{error.get('Key', '')}", "DeleteObject")
                raise of_answer(asked, _OK, error.get("Code", ""), error.get("Message") or "")

    def _delete_singly(self, objects: "Sequence[ObjectIdentifierTypeDef]", before_each: BeforeEach) -> None:
        def delete(identifier: "ObjectIdentifierTypeDef") -> None:
            before_each()
            self._delete_one(identifier)

        for _ in parallel_map(delete, objects, self._parallel):
            pass

    def _delete_one(self, identifier: "ObjectIdentifierTypeDef") -> None:
        with self._connection.translated(f"s3://{self._bucket}/{identifier['Key']}"):
            self._s3.delete_object(Bucket=self._bucket, **_named(identifier))

    def is_versioned(self) -> bool:
        """Whether the bucket keeps old versions, or did once."""
        if self._supports_versions:
            with self._connection.translated(self._name):
                try:
                    return self._s3.get_bucket_versioning(Bucket=self._bucket).get("Status") in _VERSIONED
                except ClientError as error:
                    if not is_unsupported(error):
                        raise
                    self._supports_versions = False
        return False

    def _purge(self, prefix: str, select: "_Select", before_each: BeforeEach) -> int:
        count = 0
        found: list[ObjectIdentifierTypeDef] = []
        with self._connection.translated(self._name):
            pages = self._s3.get_paginator("list_object_versions").paginate(Bucket=self._bucket, Prefix=prefix)
            for page in pages:
                # One page behind: some stores continue only from a version that still exists.
                self.delete(found, before_each)
                before_each()
                found = select(page)
                count += len(found)
            self.delete(found, before_each)
        return count


def _old_versions(page: "ListObjectVersionsOutputTypeDef") -> "list[ObjectIdentifierTypeDef]":
    return [_identifier(found) for found in page.get("Versions", []) if not found["IsLatest"]]


def _delete_markers(page: "ListObjectVersionsOutputTypeDef") -> "list[ObjectIdentifierTypeDef]":
    return [_identifier(found) for found in page.get("DeleteMarkers", [])]


def _named(identifier: "ObjectIdentifierTypeDef") -> Any:  # the only members that DeleteObject has, too
    return {name: value for name, value in identifier.items() if name in {"Key", "VersionId"}}


def _identifier(found: "ObjectVersionTypeDef | DeleteMarkerEntryTypeDef") -> "ObjectIdentifierTypeDef":
    return {"Key": found["Key"], "VersionId": found["VersionId"]}
