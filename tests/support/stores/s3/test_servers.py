"""Our S3 server answers as Ceph's radosgw does, to every kind of request of publishing."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tests.support.stores.s3.server import BUCKET, S3Server
from tests.support.stores.s3.servers import Endpoint

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


def outcome(ask: Callable[[], Any]) -> str:
    try:
        answer = ask()["ResponseMetadata"]
    except ClientError as error:
        answer = error.response["ResponseMetadata"]
    return str(answer["HTTPStatusCode"])


def conversation(client: "S3Client", bucket: str) -> Iterator[Any]:
    """A server's answers to every kind of request of publishing; they should be the same everywhere."""
    keys = [f"b/{number}" for number in range(5)]
    for key in ("b/3", "b/1", "b/4", "b/0", "b/2", "c"):
        yield client.put_object(Bucket=bucket, Key=key, Body=key.encode())["ETag"]
    etag = client.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
    conditions: list[Any] = [{"IfNoneMatch": "*"}, {"IfMatch": "0" * 32}, {"IfMatch": etag.strip('"')}]
    for condition in conditions:
        yield outcome(partial(client.put_object, Bucket=bucket, Key="a", Body=b"2", **condition))
    yield client.get_object(Bucket=bucket, Key="a")["Body"].read()
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix="b/", PaginationConfig={"PageSize": 2}
    )
    yield [[(found["Key"], found["Size"], found["ETag"]) for found in page["Contents"]] for page in pages]
    many = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in (*keys[1:], "never")]})
    yield sorted(deleted["Key"] for deleted in many["Deleted"])
    yield outcome(lambda: client.delete_object(Bucket=bucket, Key="never"))
    yield outcome(lambda: client.head_object(Bucket=bucket, Key="b/1"))
    yield client.get_bucket_versioning(Bucket=bucket).get("Status")
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    yield client.get_bucket_versioning(Bucket=bucket).get("Status")
    client.put_object(Bucket=bucket, Key="b/0", Body=b"again")
    yield client.delete_object(Bucket=bucket, Key="b/0")["DeleteMarker"]
    yield versions(client, bucket, "b/0")
    delete_versions(client, bucket, [*version_pages(client, bucket, "b/")])
    yield versions(client, bucket, "")
    for _ in range(4):
        client.put_object(Bucket=bucket, Key="d")
    delete_versions(client, bucket, version_pages(client, bucket, "d"))  # while listing them, which misses some
    assert len(versions(client, bucket, "d")) == 2


def versions(client: "S3Client", bucket: str, prefix: str) -> list[Any]:
    found = client.list_object_versions(Bucket=bucket, Prefix=prefix)
    listed = [(version["Key"], version["IsLatest"], version["Size"]) for version in found.get("Versions", [])]
    return [*listed, *((marker["Key"], marker["IsLatest"]) for marker in found.get("DeleteMarkers", []))]


def version_pages(client: "S3Client", bucket: str, prefix: str) -> Iterator[Any]:
    paginator = client.get_paginator("list_object_versions")
    return iter(paginator.paginate(Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": 2}))


def delete_versions(client: "S3Client", bucket: str, pages: Iterable[Any]) -> None:
    for page in pages:
        for version in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
            client.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])


def test_it_answers_as_another_does(s3: S3Server, radosgw: Endpoint) -> None:
    with closing(Endpoint(s3.url).client()) as client, closing(radosgw.client()) as other:
        assert [*conversation(client, BUCKET)] == [*conversation(other, radosgw.new_bucket())]
