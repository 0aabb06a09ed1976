"""The S3 operations on a bucket and their answers, without connections and faults."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from tests.support.stores.s3.bucket import Bucket, RefusedError, Version
from tests.support.stores.s3.wire import Answer, Request, Tree, document, error

_PAGE: Final = 1000
#: Headers of a put that every later answer repeats.
_KEPT: Final = ("cache-control", "content-type")
_XML: Final = {"Content-Type": "application/xml"}

#: The code with which the deletion of a key fails in DeleteObjects; empty if it does not.
Fails = Callable[[str], str]


def applied(bucket: Bucket, request: Request, fails: Fails) -> Answer:
    """Do what the request asks for, all of it or nothing."""
    operation = _OPERATIONS.get(request.operation)
    if operation is None:
        return error(501, "NotImplemented", f"{request.method} with {sorted(request.query)} is not known here.")
    try:
        return operation(bucket, request, fails)
    except RefusedError as refused:
        return error(refused.status, refused.code, str(refused))


def _get(bucket: Bucket, request: Request, _: Fails) -> Answer:
    version = bucket.get(request.key)
    modified = {"Last-Modified": formatdate(version.modified, usegmt=True), "ETag": version.etag}
    return Answer(200, version.body, {**version.headers, **modified})


def _put(bucket: Bucket, request: Request, _: Fails) -> Answer:
    conditions = request.headers.get("if-match", ""), request.headers.get("if-none-match", "")
    kept = {name: request.headers[name] for name in _KEPT if name in request.headers}
    version = bucket.put(request.key, request.body, kept, *conditions)
    return Answer(200, b"", {"ETag": version.etag})


def _delete(bucket: Bucket, request: Request, _: Fails) -> Answer:
    if "versionId" in request.query:
        bucket.delete_version(request.key, request.query["versionId"])
    else:
        bucket.delete(request.key)
    return Answer(204)


def _delete_many(bucket: Bucket, request: Request, fails: Fails) -> Answer:
    """Answers with the errors alone, as is asked for by `Quiet`."""
    root = ET.fromstring(request.body)  # noqa: S314 - from a test
    result: Tree = []
    for element in root.iterfind("{*}Object"):
        key, version_id = element.findtext("{*}Key", ""), element.findtext("{*}VersionId")
        if code := fails(key):
            result.append(("Error", [("Key", key), ("Code", code), ("Message", "We failed.")]))
        elif version_id is None:
            bucket.delete(key)
        else:
            bucket.delete_version(key, version_id)
    return Answer(200, document("DeleteResult", result), _XML)


def _list(bucket: Bucket, request: Request, _: Fails) -> Answer:
    query = request.query
    token = query.get("continuation-token")
    after = urlsafe_b64decode(token).decode() if token else query.get("start-after", "")
    page, more = bucket.list_objects(query.get("prefix", ""), after, _PAGE)
    head: Tree = [("Prefix", _spelled(query.get("prefix", ""), query)), ("KeyCount", str(len(page)))]
    if more:
        head.append(("NextContinuationToken", urlsafe_b64encode(page[-1].key.encode()).decode()))
    contents: Tree = [("Contents", _listed(version, query)) for version in page]
    tail: Tree = [("IsTruncated", str(more).lower()), *_encoding(query)]
    return Answer(200, document("ListBucketResult", head + contents + tail), _XML)


def _list_versions(bucket: Bucket, request: Request, _: Fails) -> Answer:
    query = request.query
    after = (query.get("key-marker", ""), query.get("version-id-marker", ""))
    page, more = bucket.list_versions(query.get("prefix", ""), after, _PAGE)
    head: Tree = [("IsTruncated", str(more).lower()), *_encoding(query)]
    if more:
        head += [("NextKeyMarker", _spelled(page[-1].key, query)), ("NextVersionIdMarker", page[-1].id)]
    listed: Tree = [
        (
            "DeleteMarker" if version.is_marker else "Version",
            [
                ("VersionId", version.id),
                ("IsLatest", str(bucket.is_current(version)).lower()),
                *_listed(version, query),
            ],
        )
        for version in page
    ]
    return Answer(200, document("ListVersionsResult", head + listed), _XML)


def _listed(version: Version, query: Mapping[str, str]) -> Tree:
    modified = datetime.fromtimestamp(version.modified, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    named: Tree = [("Key", _spelled(version.key, query)), ("LastModified", modified)]
    return named if version.is_marker else [*named, ("ETag", version.etag), ("Size", str(len(version.body)))]


def _spelled(key: str, query: Mapping[str, str]) -> str:
    return quote(key) if query.get("encoding-type") == "url" else key


def _encoding(query: Mapping[str, str]) -> Tree:
    return [("EncodingType", "url")] if query.get("encoding-type") == "url" else []


def _get_versioning(bucket: Bucket, _: Request, __: Fails) -> Answer:
    status: Tree = [("Status", bucket.versioning)] if bucket.versioning else []
    return Answer(200, document("VersioningConfiguration", status), _XML)


def _head_bucket(_: Bucket, __: Request, ___: Fails) -> Answer:
    return Answer(200)


_OPERATIONS: Final[Mapping[str, Callable[[Bucket, Request, Fails], Answer]]] = {
    "GetObject": _get, "HeadObject": _get, "PutObject": _put, "DeleteObject": _delete, "DeleteObjects": _delete_many,
    "ListObjectsV2": _list, "ListObjectVersions": _list_versions,
    "GetBucketVersioning": _get_versioning, "HeadBucket": _head_bucket,
}  # fmt: skip
