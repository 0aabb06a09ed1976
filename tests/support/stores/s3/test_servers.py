"""Our S3 server answers as Ceph's radosgw does, and fails on demand, and only then."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from generator.stores.store import UnavailableError
from tests.support.stores.places import open_bucket, use_credentials
from tests.support.stores.s3.behaviour import Fault
from tests.support.stores.s3.server import BUCKET, S3Server
from tests.support.stores.s3.servers import Endpoint
from tests.support.stores.s3.wire import Request

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


def versions(client: "S3Client", bucket: str, prefix: str) -> list[Any]:
    found = client.list_object_versions(Bucket=bucket, Prefix=prefix)
    listed = [(version["Key"], version["IsLatest"], version["Size"]) for version in found.get("Versions", [])]
    return [*listed, *((marker["Key"], marker["IsLatest"]) for marker in found.get("DeleteMarkers", []))]


def version_pages(client: "S3Client", bucket: str, prefix: str = "") -> Iterator[Any]:
    paginator = client.get_paginator("list_object_versions")
    return iter(paginator.paginate(Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": 2}))


def delete_versions(client: "S3Client", bucket: str, pages: Iterable[Any]) -> None:
    for page in pages:
        for version in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
            client.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("name", ["s3", "radosgw"])
def test_deleting_versions_while_listing_them_misses_some(name: str, request: pytest.FixtureRequest) -> None:
    server: S3Server | Endpoint = request.getfixturevalue(name)
    endpoint, bucket = (Endpoint(server.url), BUCKET) if isinstance(server, S3Server) else (server, server.new_bucket())
    with closing(endpoint.client()) as client:
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        for _ in range(4):
            client.put_object(Bucket=bucket, Key="a")
        delete_versions(client, bucket, version_pages(client, bucket))
        assert len(versions(client, bucket, "")) == 2


@pytest.mark.campaign(short=0)
def test_it_answers_as_another_does(s3: S3Server, radosgw: Endpoint) -> None:
    with closing(Endpoint(s3.url).client()) as client, closing(radosgw.client()) as other:
        assert [*conversation(client, BUCKET)] == [*conversation(other, radosgw.new_bucket())]


def test_an_error_in_a_hook_fails_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch)

    def fail(_: Request) -> Fault | None:
        pytest.fail("as the test expected")

    with pytest.raises(pytest.fail.Exception, match="as the test expected"), S3Server() as server:  # noqa: PT012
        server.before = fail
        with suppress(UnavailableError):
            open_bucket(server, "obstore").head("a")
